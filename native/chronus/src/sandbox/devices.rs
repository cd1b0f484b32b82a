//! `/dev` of a sandbox: its own tmpfs with its own nodes, so that nothing done to it reaches the host's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, makedev, mkdirat, mknodat, openat,
    symlinkat,
};
use rustix::mount::MountAttrFlags;

use super::mounts::{INERT, attach, new_mount};

const NODES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

const LINKS: [(&str, &str); 5] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Group `tty` of every distribution that has one by number.
const TTY_GROUP: u32 = 5;

/// What `/dev` needs to know.
pub struct Devices {
    pub id_base: u32,
    pub shm_bytes: u64,
    pub ptys_max: u32,
}

/// Directory of the device tmpfs that `/dev/shm` will cover: files put there are seen only where they are bound.
const HIDDEN: &str = "shm";

/// A detached `/dev` without its inner mounts. The umask is 0.
pub fn new_devices(devices: &Devices) -> io::Result<OwnedFd> {
    let owner = devices.id_base.to_string();
    let mount = new_mount(
        "tmpfs",
        &[
            ("source", "tmpfs"),
            ("mode", "0755"),
            ("size", "65536"),
            ("nr_inodes", "256"),
            ("uid", &owner),
            ("gid", &owner),
        ],
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    )?;
    let directory = mount.as_fd();
    for (name, major, minor) in NODES {
        let mode = Mode::from_raw_mode(0o666);
        let device = makedev(major, minor);
        mknodat(directory, name, FileType::CharacterDevice, mode, device)?;
        give(directory, name, devices.id_base)?;
    }
    for (name, target) in LINKS {
        symlinkat(target, directory, name)?;
        give(directory, name, devices.id_base)?;
    }
    for name in ["pts", HIDDEN, "mqueue"] {
        mkdirat(directory, name, Mode::from_raw_mode(0o755))?;
    }
    Ok(mount)
}

/// Puts a file of the platform's into the part of `/dev` that is covered later, owned by the sandbox's root.
pub fn put_hidden_file(
    devices: BorrowedFd<'_>,
    name: &str,
    content: &str,
    owner: u32,
) -> io::Result<()> {
    let path = format!("{HIDDEN}/{name}");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(devices, &path, flags, Mode::from_raw_mode(0o644))?;
    rustix::io::write(&file, content.as_bytes())?;
    give(devices, &path, owner)
}

/// The path of a hidden file below `/dev`.
pub fn hidden_path(name: &str) -> String {
    format!("{HIDDEN}/{name}")
}

/// An empty directory in the covered part, for masking directories.
pub fn put_hidden_directory(devices: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let path = hidden_path(name);
    mkdirat(devices, &path, Mode::from_raw_mode(0o555))?;
    Ok(())
}

/// Attaches pts, shm and mqueue. `directory` is `/dev`, attached in the caller's mount namespace.
pub fn attach_inner(directory: BorrowedFd<'_>, devices: &Devices) -> io::Result<()> {
    let tty = (devices.id_base + TTY_GROUP).to_string();
    let ptys_max = devices.ptys_max.to_string();
    let pts = new_mount(
        "devpts",
        &[
            ("source", "devpts"),
            ("mode", "0620"),
            ("ptmxmode", "0666"),
            ("gid", &tty),
            ("max", &ptys_max),
        ],
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    )?;
    attach(pts.as_fd(), directory, "pts")?;
    let owner = devices.id_base.to_string();
    let size = devices.shm_bytes.to_string();
    let shm = new_mount(
        "tmpfs",
        &[
            ("source", "shm"),
            ("mode", "1777"),
            ("size", &size),
            ("uid", &owner),
            ("gid", &owner),
        ],
        INERT,
    )?;
    attach(shm.as_fd(), directory, "shm")?;
    let mqueue = new_mount("mqueue", &[("source", "mqueue")], INERT)?;
    attach(mqueue.as_fd(), directory, "mqueue")
}

fn give(directory: BorrowedFd<'_>, path: &str, owner: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(owner), Gid::from_raw(owner));
    chownat(
        directory,
        path,
        Some(uid),
        Some(gid),
        AtFlags::SYMLINK_NOFOLLOW,
    )?;
    Ok(())
}
