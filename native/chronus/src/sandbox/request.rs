//! What the `create` operation refuses beyond its types.

use std::path::{Component, Path};

use crate::protocol::{Create, ErrorCode, Failure};

const LAYERS_MAX: usize = 100;
const SERVICES_MAX: usize = 64;
const ID_COUNT: u32 = 65_536;
/// Longest path of a unix socket: `sun_path` less the closing zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Refuses a request that cannot be carried out, or whose strings would mean something else to the system.
pub fn check(request: &Create) -> Result<(), Failure> {
    check_names(request)?;
    check_paths(request)?;
    let sizes = [
        request.shm_bytes,
        request.open_files_max,
        u64::from(request.ptys_max),
    ];
    require(
        sizes.into_iter().all(|size| size > 0),
        "shmBytes, openFilesMax and ptysMax must be positive",
    )?;
    require(request.id_count == ID_COUNT, "idCount must be 65536")?;
    require(
        request.id_base >= ID_COUNT && request.id_base.checked_add(ID_COUNT).is_some(),
        "idBase leaves no room for 65536 ids apart from the host's",
    )
}

fn check_names(request: &Create) -> Result<(), Failure> {
    require(is_name(&request.sandbox_id), "sandboxId is not an id")?;
    require(
        is_host_name(&request.hostname),
        "hostname is not a host name",
    )?;
    require(
        (1..=LAYERS_MAX).contains(&request.layers.len()),
        "layers must be 1 to 100",
    )?;
    require(
        request.layers.iter().all(|layer| is_name(layer)),
        "a layer's id is not an id",
    )?;
    require(
        request.services.len() <= SERVICES_MAX,
        "services must be at most 64",
    )?;
    require(
        request
            .services
            .iter()
            .all(|service| is_host_name(&service.name) && service.port > 0),
        "a service needs a host name and a port",
    )
}

fn check_paths(request: &Create) -> Result<(), Failure> {
    let cgroups = &request.cgroups;
    let single = [
        &request.upper_path,
        &request.work_path,
        &request.socket_path,
        &request.output_path,
        &cgroups.commands,
    ];
    let all = single
        .into_iter()
        .chain(&cgroups.procs)
        .chain(&cgroups.oom_file);
    for path in all {
        require(is_plain_path(path), "a path is not absolute and plain")?;
    }
    let [upper, work] = [&request.upper_path, &request.work_path].map(Path::new);
    require(
        upper.parent() == work.parent() && upper != work,
        "upperPath and workPath must be two directories of one parent",
    )?;
    require(
        request.socket_path.len() <= SOCKET_PATH_BYTES_MAX,
        "socketPath is longer than 107 bytes",
    )
}

/// Letters, digits and `.`, `_`, `:`, `-`, at most 128, not starting with a dot: safe as a file name.
pub fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=128).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(allowed)
}

/// Absolute, not the root itself, and without `..`.
pub fn is_plain_path(path: &str) -> bool {
    let path = Path::new(path);
    path.is_absolute()
        && path.file_name().is_some()
        && path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

fn is_host_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    (1..=63).contains(&name.len())
        && name.bytes().all(allowed)
        && name
            .split('.')
            .all(|label| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-'))
}

fn require(condition: bool, message: &str) -> Result<(), Failure> {
    if condition {
        Ok(())
    } else {
        Err(Failure::new(ErrorCode::Invalid, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::CgroupPaths;

    fn request() -> Create {
        serde_json::from_str(
            r#"{"sandboxId":"sb1","hostname":"sandbox","layers":["sha256:ab"],
                "upperPath":"/d/upper","workPath":"/d/work","socketPath":"/r/sb1.sock","outputPath":"/d/output",
                "idBase":65536,"idCount":65536,"shmBytes":1,"openFilesMax":1,"ptysMax":1,"inotifyInstancesMax":1,
                "cgroups":{"procs":[],"commands":"/c","oomFile":null},"services":[]}"#,
        )
        .expect("the request is complete")
    }

    #[test]
    fn a_complete_request_passes_and_unknown_keys_do_not() {
        assert_eq!(check(&request()), Ok(()));
        let parsed: Result<CgroupPaths, _> =
            serde_json::from_str(r#"{"procs":[],"commands":"/c","oomFile":null,"more":1}"#);
        assert!(parsed.is_err());
    }

    #[test]
    fn each_wrong_value_is_refused() {
        let spoil: [fn(&mut Create); 12] = [
            |it| it.sandbox_id = "../x".into(),
            |it| it.hostname = "a b".into(),
            |it| it.hostname = "a\n127.0.0.1 b".into(),
            |it| it.layers.clear(),
            |it| it.layers = vec!["l".into(); 101],
            |it| it.layers = vec!["..".into()],
            |it| it.upper_path = "/elsewhere/upper".into(),
            |it| it.work_path = "/d/upper".into(),
            |it| it.output_path = "/d/../etc".into(),
            |it| it.id_base = 0,
            |it| it.id_base = u32::MAX - 65_535,
            |it| it.id_count = 1,
        ];
        for (index, spoil) in spoil.into_iter().enumerate() {
            let mut request = request();
            spoil(&mut request);
            let code = check(&request).expect_err(&format!("case {index}")).code;
            assert_eq!(code, ErrorCode::Invalid);
        }
    }
}
