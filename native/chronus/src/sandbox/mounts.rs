//! Mounts by descriptor: nothing is attached anywhere until it is complete.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

/// `MOUNT_ATTR_NOSUID | NODEV | NOEXEC`.
pub const INERT: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// A detached mount of a new file system; `options` are keys with values.
pub fn new_mount(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, *value)?;
    }
    finish(context.as_fd(), attributes)
}

/// Creates the configured file system and gives its detached mount.
pub fn finish(context: BorrowedFd<'_>, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    fsconfig_create(context).map_err(|error| explain(context, error.into()))?;
    Ok(fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Sets an option that has no value.
pub fn set_flag(context: BorrowedFd<'_>, key: &str) -> io::Result<()> {
    fsconfig_set_flag(context, key).map_err(|error| explain(context, error.into()))
}

/// Adds what the file system said about the failure, which an error number alone does not tell.
pub fn explain(context: BorrowedFd<'_>, error: io::Error) -> io::Error {
    let mut words = Vec::new();
    let mut buffer = [0_u8; 512];
    while let Ok(length) = rustix::io::read(context, &mut buffer) {
        if length == 0 || words.len() > 512 {
            break;
        }
        if !words.is_empty() {
            words.extend(b"; ");
        }
        words.extend(buffer[..length].trim_ascii_end());
    }
    if words.is_empty() {
        return error;
    }
    io::Error::new(
        error.kind(),
        format!("{error}: {}", String::from_utf8_lossy(&words)),
    )
}

/// A detached copy of the mount at `path`, with only that directory or file as its root.
pub fn clone_tree(directory: BorrowedFd<'_>, path: &str) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW
        | OpenTreeFlags::AT_NO_AUTOMOUNT;
    Ok(open_tree(directory, path, flags)?)
}

/// Puts a detached mount on `path` of `directory`; links are not followed.
pub fn attach(mount: BorrowedFd<'_>, directory: BorrowedFd<'_>, path: &str) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(mount, "", directory, path, flags)?)
}

/// Puts a detached mount on `path` of the current root.
pub fn attach_at(mount: BorrowedFd<'_>, path: &str) -> io::Result<()> {
    attach(mount, CWD, path)
}

/// Changes of a mount's attributes.
pub struct Change<'fd> {
    pub set: MountAttrFlags,
    pub clear: MountAttrFlags,
    /// Ids on this mount are seen through the map of this user namespace.
    pub ids: Option<BorrowedFd<'fd>>,
}

impl Default for Change<'_> {
    fn default() -> Self {
        Change {
            set: MountAttrFlags::empty(),
            clear: MountAttrFlags::empty(),
            ids: None,
        }
    }
}

/// `mount_setattr` on a mount that the caller holds.
pub fn change(mount: BorrowedFd<'_>, change: &Change<'_>) -> io::Result<()> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let mut attributes = MountAttr {
        set: u64::from(change.set.bits()),
        clear: u64::from(change.clear.bits()),
        propagation: 0,
        user_namespace: 0,
    };
    if let Some(ids) = change.ids {
        attributes.set |= u64::from(MountAttrFlags::MOUNT_ATTR_IDMAP.bits());
        attributes.user_namespace = u64::try_from(ids.as_raw_fd()).map_err(io::Error::other)?;
    }
    let empty: &CStr = c"";
    // SAFETY: the path is a string that lives through the call, and the kernel reads the structure, whose
    // size is given, during the call only.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            empty.as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
