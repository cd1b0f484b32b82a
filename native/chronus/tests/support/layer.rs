//! Layers for tests: the probe program and what a root needs, as a pair of EROFS files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::{Value, json};

/// Builds the layer `id` below `directory` from a function that fills a tree, and gives its mount request.
pub fn build(directory: &Path, id: &str, fill: impl FnOnce(&Path)) -> Value {
    let tree = directory.join(format!("{id}.tree"));
    fs::create_dir_all(&tree).expect("a tree");
    fill(&tree);
    let meta = directory.join(format!("{id}.meta"));
    let data = directory.join(format!("{id}.data"));
    let status = Command::new("mkfs.erofs")
        .arg("--chunksize=4096")
        .arg(format!("--blobdev={}", data.display()))
        .args([&meta, &tree])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("mkfs.erofs runs").success());
    fs::remove_dir_all(&tree).expect("the tree is removed");
    json!({"op": "mount_layer", "layerId": id, "metaPath": meta, "dataPath": data})
}

/// A root with the probe, a setuid copy of it, and the host's disk as a device that anybody may open.
pub fn base(tree: &Path) {
    for directory in ["etc", "tmp", "usr/bin"] {
        fs::create_dir_all(tree.join(directory)).expect("a directory");
    }
    set_mode(&tree.join("tmp"), 0o1777);
    for (name, mode) in [("probe", 0o755), ("setuid-probe", 0o4755)] {
        let target = tree.join("usr/bin").join(name);
        fs::copy(env!("CARGO_BIN_EXE_probe"), &target).expect("a copy of the probe");
        set_mode(&target, mode);
    }
    let device = tree.join("usr/bin/device");
    let mode = Mode::from_raw_mode(0o666);
    mknodat(CWD, &device, FileType::CharacterDevice, mode, makedev(1, 5)).expect("a device");
    set_mode(&device, 0o666);
}

/// A layer in which `/dev` leads elsewhere.
pub fn with_linked_dev(tree: &Path) {
    symlink("/tmp", tree.join("dev")).expect("a link");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}
