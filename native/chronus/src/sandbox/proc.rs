//! The procfs of a sandbox: made before its root, hardened once attached.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::mount::MountAttrFlags;

use super::mounts::{Change, INERT, attach, change, clone_tree, new_mount};

/// Files that say something of the host or act on it. Those that this kernel lacks are passed over.
const MASKED_FILES: [&str; 17] = [
    "kcore",
    "keys",
    "key-users",
    "kmsg",
    "timer_list",
    "timer_stats",
    "sched_debug",
    "latency_stats",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "kallsyms",
    "slabinfo",
    "vmallocinfo",
    "pagetypeinfo",
    "config.gz",
    "sysrq-trigger",
];

const MASKED_DIRECTORIES: [&str; 4] = ["acpi", "asound", "driver", "scsi"];

const READ_ONLY: [&str; 4] = ["bus", "fs", "irq", "sys"];

/// A detached procfs of the caller's pid namespace.
pub fn new_proc() -> io::Result<OwnedFd> {
    new_mount("proc", &[("source", "proc")], INERT)
}

/// What covers files and directories: paths below the sandbox's `/dev`.
pub struct Masks<'a> {
    pub devices: BorrowedFd<'a>,
    pub file: &'a str,
    pub directory: &'a str,
}

/// Covers what must not be seen or written. All mounts are attached in the caller's mount namespace.
pub fn harden(proc: BorrowedFd<'_>, masks: &Masks<'_>) -> io::Result<()> {
    for name in MASKED_FILES {
        cover(proc, name, || clone_tree(masks.devices, masks.file))?;
    }
    for name in MASKED_DIRECTORIES {
        cover(proc, name, || clone_tree(masks.devices, masks.directory))?;
    }
    for name in READ_ONLY {
        cover(proc, name, || {
            let tree = clone_tree(proc, name)?;
            let read_only = Change {
                set: MountAttrFlags::MOUNT_ATTR_RDONLY,
                ..Change::default()
            };
            change(tree.as_fd(), &read_only)?;
            Ok(tree)
        })?;
    }
    Ok(())
}

/// Puts what `mount` gives on `name`, unless this kernel has no such name.
fn cover(
    proc: BorrowedFd<'_>,
    name: &str,
    mount: impl FnOnce() -> io::Result<OwnedFd>,
) -> io::Result<()> {
    match rustix::fs::accessat(
        proc,
        name,
        rustix::fs::Access::EXISTS,
        rustix::fs::AtFlags::empty(),
    ) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        found => found?,
    }
    attach(mount()?.as_fd(), proc, name)
}
