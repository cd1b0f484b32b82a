//! The root of a sandbox: a clone of the empty namespace whose only mounts are the sandbox's own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, mkdirat, openat2};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{chdir, pivot_root};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::devices::{Devices, attach_inner, hidden_path, put_hidden_directory, put_hidden_file};
use super::failure::Step;
use super::mounts::{attach, attach_at, clone_tree};
use super::proc::{Masks, harden};
use crate::protocol::{Create, ErrorCode, Failure};

/// Directory in the root of the empty namespace on which a sandbox's root is put for a moment.
pub const STAGE: &str = "stage";

/// Detached mounts that make the root.
pub struct Mounts {
    pub overlay: OwnedFd,
    pub proc: OwnedFd,
    pub devices: OwnedFd,
}

/// Enters a new mount namespace that has the overlay as its root, and nothing of the host.
pub fn enter_root(empty: BorrowedFd<'_>, overlay: BorrowedFd<'_>) -> io::Result<()> {
    move_into_link_name_space(empty, Some(LinkNameSpaceType::Mount))?;
    // SAFETY: a new mount namespace shares no descriptor table with anybody.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    attach_at(overlay, STAGE)?;
    chdir(STAGE)?;
    // The old root lands on top of the new one, and goes.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")?;
    Ok(())
}

/// Attaches `/proc`, `/dev` and the platform's files in `/etc`. The caller is in the sandbox's root.
pub fn furnish(mounts: &Mounts, request: &Create, settings: &Devices) -> Result<(), Failure> {
    let owner = request.id_base;
    let (proc, devices) = (mounts.proc.as_fd(), mounts.devices.as_fd());
    attach_on(proc, "/proc", owner)?;
    attach_on(devices, "/dev", owner)?;
    put_hidden_directory(devices, "empty").step("prepare masks")?;
    let masks = Masks {
        devices,
        file: "null",
        directory: &hidden_path("empty"),
    };
    harden(proc, &masks).step("mask /proc")?;
    for (name, content) in [
        ("hosts", hosts(request)),
        ("hostname", format!("{}\n", request.hostname)),
    ] {
        bind_file(devices, name, &content, owner).step("bind a file of /etc")?;
    }
    attach_inner(devices, settings).step("mount the inner parts of /dev")
}

/// Attaches a mount on a directory of the root, which is made if the layers lack it and refused if it is a link.
fn attach_on(mount: BorrowedFd<'_>, path: &str, owner: u32) -> Result<(), Failure> {
    let made = match mkdirat(CWD, path, Mode::from_raw_mode(0o755)) {
        Err(rustix::io::Errno::EXIST) => Ok(()),
        Ok(()) => {
            let (uid, gid) = (Uid::from_raw(owner), Gid::from_raw(owner));
            chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
        }
        Err(error) => Err(error),
    };
    made.step("make a mount point")?;
    let target = open_plain(path, OFlags::PATH | OFlags::DIRECTORY);
    let target = target.map_err(|error| {
        let message = format!("{path} of the layers is not a directory: {error}");
        Failure::new(ErrorCode::Invalid, message)
    })?;
    let flags = rustix::mount::MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH
        | rustix::mount::MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, "", target, "", flags).step("attach a mount")
}

/// Puts a file of the platform's on `/etc/<name>`, unless the layers have a link or no `/etc` there.
fn bind_file(devices: BorrowedFd<'_>, name: &str, content: &str, owner: u32) -> io::Result<()> {
    let path = format!("/etc/{name}");
    let target = match open_plain(&path, OFlags::PATH) {
        Err(rustix::io::Errno::NOENT) => create_empty(&path, owner),
        found => found,
    };
    match target {
        Ok(_) => {}
        // The layers decide: a link is theirs, and without /etc nothing reads the file.
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    }
    put_hidden_file(devices, name, content, owner)?;
    let file = clone_tree(devices, &hidden_path(name))?;
    attach(file.as_fd(), CWD, &path)
}

fn create_empty(path: &str, owner: u32) -> rustix::io::Result<OwnedFd> {
    let file = open_plain(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
    rustix::fs::fchown(
        &file,
        Some(Uid::from_raw(owner)),
        Some(Gid::from_raw(owner)),
    )?;
    Ok(file)
}

/// Opens a path of the root in which nothing is a link.
fn open_plain(path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let mode = if flags.contains(OFlags::CREATE) {
        Mode::from_raw_mode(0o644)
    } else {
        Mode::empty()
    };
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS)
}

fn hosts(request: &Create) -> String {
    let mut hosts = String::from("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n");
    hosts.push_str(&format!("127.0.1.1\t{}\n", request.hostname));
    for service in &request.services {
        hosts.push_str(&format!("127.0.0.1\t{}\n", service.name));
    }
    hosts
}
