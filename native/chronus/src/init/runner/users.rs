//! Users of the sandbox: names are read from its `/etc/passwd` and `/etc/group`, which are hostile, with its root's rights.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, Mode, OFlags};

use crate::protocol::User;
use crate::session::{self, Credentials};

const FILE_BYTES_MAX: u64 = 1024 * 1024;
const LINE_BYTES_MAX: usize = 4096;
const GROUPS_MAX: usize = 1024;
const ID_END: u32 = 65_536;

/// Joins the sandbox's user namespace and takes the user's ids; a session (`Some(no_new_privs)`) is confined as well.
///
/// Must be called in a process of one thread that does nothing else afterwards. The error is text for people.
pub fn enter(
    user_namespace: BorrowedFd<'_>,
    user: &User,
    no_new_privs: Option<bool>,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot take the user's ids: {error}");
    session::join_user_namespace(user_namespace).map_err(failed)?;
    // The capabilities that joining gave go away only on the way from the namespace's root to somebody else.
    let root = Credentials {
        uid: 0,
        gid: 0,
        groups: Vec::new(),
    };
    session::take_ids(&root).map_err(failed)?;
    let credentials = match user {
        // Root is uid 0 whatever the sandbox's files say, and needs no look at them.
        User::Name(name) if name == "root" => root.clone(),
        User::Name(name) => look_up(name)?,
        User::Ids(ids) => Credentials {
            uid: ids.uid.into(),
            gid: ids.gid.into(),
            groups: ids.groups.iter().map(|&group| group.into()).collect(),
        },
    };
    if let Some(no_new_privs) = no_new_privs {
        session::confine(no_new_privs).map_err(failed)?;
    }
    if credentials == root {
        return Ok(());
    }
    session::take_ids(&credentials).map_err(failed)
}

fn look_up(name: &str) -> Result<Credentials, String> {
    let passwd = open("/etc/passwd").map_err(|error| format!("user {name:?}: {error}"))?;
    let (uid, gid) = find_user(passwd, name)
        .ok_or_else(|| format!("user {name:?} is not in the sandbox's /etc/passwd"))?;
    let groups = match open("/etc/group") {
        Ok(group) => find_groups(group, name),
        // A sandbox without the file has no supplementary groups.
        Err(_) => Vec::new(),
    };
    Ok(Credentials { uid, gid, groups })
}

/// Opens a regular file of the sandbox that is not on procfs or sysfs.
fn open(path: &str) -> Result<impl Read, String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let failed = |errno: rustix::io::Errno| format!("{path}: {}", std::io::Error::from(errno));
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file || crate::init::files::is_of_kernel(&file).map_err(failed)? {
        return Err(format!("{path} is not a plain file"));
    }
    Ok(std::fs::File::from(file).take(FILE_BYTES_MAX))
}

/// Fields of each line within its bound; longer ones are passed over.
fn lines(file: impl Read) -> impl Iterator<Item = Vec<String>> {
    let mut reader = BufReader::new(file);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        match reader.read_until(b'\n', &mut line) {
            Ok(count) if count > 0 => Some(line),
            _ => None,
        }
    })
    .filter(|line| line.len() <= LINE_BYTES_MAX)
    .filter_map(|line| String::from_utf8(line).ok())
    .map(|line| {
        line.trim_end_matches('\n')
            .split(':')
            .map(str::to_owned)
            .collect()
    })
}

fn parse_id(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&id| id < ID_END)
}

/// The ids of a user by the lines of a passwd file.
pub fn find_user(file: impl Read, name: &str) -> Option<(u32, u32)> {
    lines(file).find_map(|fields| match fields.as_slice() {
        [user, _, uid, gid, ..] if user == name => Some((parse_id(uid)?, parse_id(gid)?)),
        _ => None,
    })
}

/// The groups that list a user by the lines of a group file.
pub fn find_groups(file: impl Read, name: &str) -> Vec<u32> {
    lines(file)
        .filter_map(|fields| match fields.as_slice() {
            [_, _, gid, members, ..] if members.split(',').any(|member| member == name) => {
                parse_id(gid)
            }
            _ => None,
        })
        .take(GROUPS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{find_groups, find_user};

    #[test]
    fn users_and_groups_are_found_within_bounds() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nbig:x:70000:1::/:/bin/sh\nada:x:1000:1001::/h:/bin/sh";
        assert_eq!(find_user(passwd.as_bytes(), "root"), Some((0, 0)));
        assert_eq!(find_user(passwd.as_bytes(), "ada"), Some((1000, 1001)));
        assert_eq!(find_user(passwd.as_bytes(), "big"), None);
        assert_eq!(find_user(passwd.as_bytes(), "x"), None);
        let group = "sudo:x:27:ada,bob\nada:x:1001:\naudio:x:29:bob";
        assert_eq!(find_groups(group.as_bytes(), "ada"), [27]);
        let long = format!("{}:x:1:1::/:/bin/sh\nada:x:5:6::/:", "y".repeat(5000));
        assert_eq!(find_user(long.as_bytes(), "ada"), Some((5, 6)));
    }
}
