//! File operations.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use chronus::frame::Body;
use serde_json::{Value, json};

use crate::Test;
use crate::client::{Client, Received, shell};
use crate::sandbox::{ID_BASE, Sandbox};

pub const TESTS: &[Test] = &[
    ("files of all sizes go up and down whole", round_trip),
    (
        "a write replaces atomically, keeps mode and owner, follows a link",
        replace,
    ),
    ("a cancelled write leaves the old content", cancelled_write),
    (
        "writes to the kernel's file systems are denied",
        kernel_files,
    ),
    ("reads happen with the caller's rights", callers_rights),
    ("only regular files are read and written", irregular),
    ("files are listed, described, made and removed", others),
    (
        "a helper that is killed or stopped is the agent's doing",
        killed_helper,
    ),
];

fn root() -> Value {
    json!({"uid": 0, "gid": 0})
}

fn write(client: &mut Client, path: &Path, bytes: &[u8], user: Value) -> Received {
    let channel = client.open(&json!({
        "op": "file_write", "path": path, "user": user, "mode": 0o640, "makeParents": true,
    }));
    client.write(channel, bytes);
    client.eof(channel);
    client.finish(channel)
}

fn read(client: &mut Client, path: &Path, user: Value) -> Received {
    client.call(&json!({
        "op": "file_read", "path": path, "user": user, "offset": 0, "length": null,
    }))
}

fn round_trip(sandbox: &Sandbox, client: &mut Client) {
    let path = sandbox.files().join("a/b/file");
    for size in [0, 1, 18_000, 65_535, 65_536, 65_537, 1_000_000, 16_000_000] {
        let bytes: Vec<u8> = (0..size).map(|at: u32| (at % 251) as u8).collect();
        let stat = write(client, &path, &bytes, root()).ok()["stat"].clone();
        assert_eq!(stat["sizeBytes"], size);
        assert_eq!(stat["mode"], 0o640);
        assert_eq!(fs::metadata(&path).unwrap().uid(), ID_BASE);
        let received = read(client, &path, root());
        assert_eq!(received.accept.unwrap()["stat"]["sizeBytes"], size);
        assert!(received.streams[0] == bytes, "{size} bytes differ");
        assert_eq!(received.eofs, 1);
    }
    let part = client.call(&json!({
        "op": "file_read", "path": path, "user": root(), "offset": 250, "length": 3,
    }));
    assert_eq!(part.streams[0], [250, 0, 1]);
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        1,
        "no temporary file"
    );
}

fn replace(sandbox: &Sandbox, client: &mut Client) {
    let (file, link) = (sandbox.files().join("target"), sandbox.files().join("link"));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::chown(&file, Some(ID_BASE + 5), Some(ID_BASE + 6)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("target", &link).unwrap();
    write(client, &link, b"new", root()).ok();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let facts = fs::metadata(&file).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert_eq!((facts.uid(), facts.gid()), (ID_BASE + 5, ID_BASE + 6));
    assert_eq!(facts.mode() & 0o7777, 0o755);
    let dangling = sandbox.files().join("dangling");
    symlink(sandbox.files().join("made"), &dangling).unwrap();
    write(client, &dangling, b"through", root()).ok();
    assert_eq!(
        fs::read_to_string(sandbox.files().join("made")).unwrap(),
        "through"
    );
    symlink("circle", sandbox.files().join("circle")).unwrap();
    assert_eq!(
        write(client, &sandbox.files().join("circle"), b"x", root()).error_code(),
        "invalid"
    );
}

fn cancelled_write(sandbox: &Sandbox, client: &mut Client) {
    let path = sandbox.files().join("kept");
    write(client, &path, b"old", root()).ok();
    let before = fs::read_dir(sandbox.files()).unwrap().count();
    let channel = client.open(&json!({
        "op": "file_write", "path": path, "user": root(), "mode": 0o600, "makeParents": false,
    }));
    client.write(channel, b"half of the new");
    client.send(channel, Body::Cancel);
    assert_eq!(client.finish(channel).error_code(), "cancelled");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    let channel = client.open(&json!({
        "op": "file_write", "path": path, "user": root(), "mode": 0o600, "makeParents": false,
    }));
    client.write(channel, b"half of the new");
    *client = Client::connect(&sandbox.socket());
    crate::commands::eventually(|| fs::read_dir(sandbox.files()).unwrap().count() == before);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

fn kernel_files(sandbox: &Sandbox, client: &mut Client) {
    let trap = sandbox.files().join("out.txt");
    for target in [
        "/proc/self/mem",
        "/proc/self/comm",
        "/proc/sys/kernel/core_pattern",
        "/sys/power/state",
    ] {
        let _ = fs::remove_file(&trap);
        symlink(target, &trap).unwrap();
        for path in [trap.as_path(), Path::new(target)] {
            let code = write(client, path, b"x", root()).error_code();
            assert!(
                ["denied", "not_found"].contains(&code.as_str()),
                "{target}: {code}"
            );
        }
    }
    let _ = fs::remove_file(&trap);
    symlink("/proc/self/environ", &trap).unwrap();
    assert_eq!(read(client, &trap, root()).error_code(), "denied");
    assert!(!read(client, Path::new("/proc/meminfo"), root()).streams[0].is_empty());
}

fn callers_rights(sandbox: &Sandbox, client: &mut Client) {
    let trap = sandbox.files().join("shadow");
    symlink("/etc/shadow", &trap).unwrap();
    assert_eq!(
        read(client, &trap, root()).error_code(),
        "denied",
        "it is the host's root's"
    );
    let private = sandbox.files().join("private");
    write(client, &private, b"mine", root()).ok();
    let other = json!({"uid": 1000, "gid": 1000});
    assert_eq!(read(client, &private, other.clone()).error_code(), "denied");
    assert_eq!(
        write(client, &private, b"x", other.clone()).error_code(),
        "denied"
    );
    let away = json!({"op": "file_remove", "path": private, "user": other, "recursive": false});
    assert_eq!(client.call(&away).error_code(), "denied");
    for path in ["/proc/1/root/etc/passwd", "/proc/1/environ"] {
        assert_eq!(read(client, Path::new(path), root()).error_code(), "denied");
    }
}

fn irregular(sandbox: &Sandbox, client: &mut Client) {
    let pipe = sandbox.files().join("pipe");
    let path = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the string lives for the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o666) }, 0);
    assert_eq!(read(client, &pipe, root()).error_code(), "invalid");
    assert_eq!(write(client, &pipe, b"x", root()).error_code(), "invalid");
    assert_eq!(
        read(client, Path::new("/dev/zero"), root()).error_code(),
        "invalid"
    );
    assert_eq!(
        read(client, &sandbox.files(), root()).error_code(),
        "is_directory"
    );
    assert_eq!(
        write(client, &sandbox.files(), b"x", root()).error_code(),
        "is_directory"
    );
    assert_eq!(
        read(client, Path::new("relative"), root()).error_code(),
        "invalid"
    );
    assert_eq!(
        read(client, Path::new("/no/where"), root()).error_code(),
        "not_found"
    );
}

fn others(sandbox: &Sandbox, client: &mut Client) {
    let directory = sandbox.files().join("made/not-there");
    let make = |parents: bool, path: &Path| json!({"op": "file_mkdir", "path": path, "user": root(), "mode": 0o750, "parents": parents});
    let _ = fs::remove_file(sandbox.files().join("made"));
    assert_eq!(
        client.call(&make(false, &directory)).error_code(),
        "not_found"
    );
    let stat = client.call(&make(true, &directory)).ok()["stat"].clone();
    assert_eq!(
        (&stat["kind"], &stat["mode"]),
        (&json!("directory"), &json!(0o750))
    );
    assert_eq!(client.call(&make(false, &directory)).error_code(), "exists");
    client.call(&make(true, &directory)).ok();
    for number in 0..500 {
        fs::write(directory.join(format!("file-{number}")), "x").unwrap();
    }
    symlink("file-1", directory.join("link")).unwrap();
    let list =
        |max: u32| json!({"op": "file_list", "path": directory, "user": root(), "entriesMax": max});
    let received = client.call(&list(1000));
    assert_eq!(received.ok(), json!({"truncated": false}));
    let lines: Vec<Value> = received
        .stdout()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 501);
    let link = lines.iter().find(|stat| stat["name"] == "link").unwrap();
    assert_eq!(
        (&link["kind"], &link["target"]),
        (&json!("symlink"), &json!("file-1"))
    );
    let received = client.call(&list(10));
    assert_eq!(received.ok(), json!({"truncated": true}));
    assert_eq!(received.stdout().lines().count(), 10);
    let stat = |follow: bool| json!({"op": "file_stat", "path": directory.join("link"), "user": root(), "follow": follow});
    assert_eq!(client.call(&stat(true)).ok()["stat"]["kind"], "file");
    assert_eq!(client.call(&stat(false)).ok()["stat"]["kind"], "symlink");
    let remove = |recursive: bool| json!({"op": "file_remove", "path": directory, "user": root(), "recursive": recursive});
    assert_eq!(client.call(&remove(false)).error_code(), "not_empty");
    client.call(&remove(true)).ok();
    assert_eq!(client.call(&remove(true)).error_code(), "not_found");
}

fn killed_helper(sandbox: &Sandbox, client: &mut Client) {
    let channel = client.open(&json!({
        "op": "file_write", "path": sandbox.files().join("never"), "user": root(), "mode": 0o600, "makeParents": false,
    }));
    client.write(channel, b"some");
    let script = "sleep 0.2; for p in /proc/[0-9]*; do test $(cat $p/comm) = runner && kill -9 ${p#/proc/} 2>/dev/null && echo killed; done; true";
    let received = client.call(&shell("kill-helper", script));
    assert_eq!(
        received.stdout(),
        "killed\n",
        "the helper, and not the runner"
    );
    assert_eq!(client.finish(channel).error_code(), "agent_killed");
    assert_eq!(
        client
            .call(&shell("after-kill-helper", "echo alive"))
            .stdout(),
        "alive\n"
    );
}
