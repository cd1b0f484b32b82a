//! The overlay of a sandbox: layers of the nursery below, its own storage on top.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::mount::{FsOpenFlags, MountAttrFlags, fsconfig_set_fd, fsconfig_set_string, fsopen};

use super::failure::Step;
use super::mounts::{Change, change, clone_tree, explain, finish, set_flag};
use super::resources::Storage;
use crate::protocol::{ErrorCode, Failure};

/// Clones each layer (lowest first) with ids seen through U. The caller is in the nursery namespace.
pub fn clone_layers(
    nursery_layers: BorrowedFd<'_>,
    layers: &[String],
    user_namespace: BorrowedFd<'_>,
) -> Result<Vec<OwnedFd>, Failure> {
    let mut clones = Vec::with_capacity(layers.len());
    for layer in layers {
        let clone = match clone_tree(nursery_layers, layer) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("layer \"{layer}\" is not mounted");
                return Err(Failure::new(ErrorCode::NotFound, message));
            }
            clone => clone.step("clone a layer")?,
        };
        let mapped = Change {
            set: MountAttrFlags::MOUNT_ATTR_NODEV,
            clear: MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
            ids: Some(user_namespace),
        };
        change(clone.as_fd(), &mapped).step("map the ids of a layer")?;
        clones.push(clone);
    }
    Ok(clones)
}

/// The detached overlay. It refuses devices, and setuid programs work.
pub fn mount_overlay(lowers: &[OwnedFd], storage: &Storage) -> Result<OwnedFd, Failure> {
    configure(lowers, storage).step("mount the overlay")
}

fn configure(lowers: &[OwnedFd], storage: &Storage) -> io::Result<OwnedFd> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let context = context.as_fd();
    fsconfig_set_string(context, "source", "overlay")?;
    // The option appends below: the highest layer comes first.
    for lower in lowers.iter().rev() {
        set_directory(context, "lowerdir+", lower.as_fd())?;
    }
    set_directory(context, "upperdir", storage.upper.as_fd())?;
    set_directory(context, "workdir", storage.work.as_fd())?;
    set_flag(context, "volatile")?;
    // The upper must stand for itself: snapshots read it without its lowers.
    for key in ["redirect_dir", "metacopy", "index", "nfs_export"] {
        fsconfig_set_string(context, key, "off").map_err(|error| explain(context, error.into()))?;
    }
    // No identity of its own: it would be one more attribute on the upper.
    fsconfig_set_string(context, "uuid", "null")?;
    finish(context, MountAttrFlags::MOUNT_ATTR_NODEV)
}

fn set_directory(context: BorrowedFd<'_>, key: &str, directory: BorrowedFd<'_>) -> io::Result<()> {
    fsconfig_set_fd(context, key, directory).map_err(|error| explain(context, error.into()))
}
