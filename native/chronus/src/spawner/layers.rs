//! Layers: read-only EROFS mounts in the nursery namespace.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, mkdirat, unlinkat};
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};
use rustix::process::fchdir;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::pins::is_mount;
use crate::protocol::{Empty, ErrorCode, Failure, MountLayer, MountLayerAnswer, UnmountLayer};
use crate::sandbox::Nursery;
use crate::sandbox::failure::Step;
use crate::sandbox::mounts::{INERT, attach, new_mount};
use crate::sandbox::request::{is_name, is_plain_path};

/// Bounded so that the list fits one frame.
const LAYERS_MAX: usize = 1_500;
/// Longest value of a mount option.
const OPTION_BYTES_MAX: usize = 255;

/// Mounts a layer; the calling process ends up in the nursery and must end.
pub fn mount_layer(
    request: &MountLayer,
    nursery: Nursery<'_>,
) -> Result<MountLayerAnswer, Failure> {
    check_id(&request.layer_id)?;
    for path in [Some(&request.meta_path), request.data_path.as_ref()]
        .into_iter()
        .flatten()
    {
        check_path(path)?;
    }
    let id = Path::new(&request.layer_id);
    if is_layer(nursery, id)? {
        return Ok(MountLayerAnswer { mounted: false });
    }
    if list_layers(nursery)?.len() >= LAYERS_MAX {
        let message = format!("{LAYERS_MAX} layers are mounted already");
        return Err(Failure::new(ErrorCode::TooMany, message));
    }
    let mut options = vec![("source", request.meta_path.as_str())];
    options.extend(request.data_path.as_deref().map(|data| ("device", data)));
    let read_only = INERT | MountAttrFlags::MOUNT_ATTR_RDONLY;
    // Paths are the host's: the file system is made before the namespace changes.
    let mount = new_mount("erofs", &options, read_only).step("mount the layer")?;
    move_into_link_name_space(nursery.namespace, Some(LinkNameSpaceType::Mount))
        .step("enter the nursery")?;
    match mkdirat(nursery.layers, id, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error).step("make the layer's mount point"),
    }
    attach(mount.as_fd(), nursery.layers, &request.layer_id).step("attach the layer")?;
    Ok(MountLayerAnswer { mounted: true })
}

/// Detaches a layer; overlays that use it keep it. The calling process ends up in the nursery and must end.
pub fn unmount_layer(request: &UnmountLayer, nursery: Nursery<'_>) -> Result<Empty, Failure> {
    check_id(&request.layer_id)?;
    let id = Path::new(&request.layer_id);
    if !is_layer(nursery, id)? {
        return Err(Failure::new(
            ErrorCode::NotFound,
            "the layer is not mounted",
        ));
    }
    move_into_link_name_space(nursery.namespace, Some(LinkNameSpaceType::Mount))
        .step("enter the nursery")?;
    fchdir(nursery.layers).step("enter the directory of layers")?;
    unmount(id, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).step("unmount the layer")?;
    unlinkat(nursery.layers, id, AtFlags::REMOVEDIR).step("remove the layer's mount point")?;
    Ok(Empty {})
}

/// Ids of mounted layers, sorted.
pub fn list_layers(nursery: Nursery<'_>) -> Result<Vec<String>, Failure> {
    read_layers(nursery).step("list the layers")
}

fn read_layers(nursery: Nursery<'_>) -> io::Result<Vec<String>> {
    let mut layers = Vec::new();
    for entry in Dir::read_from(nursery.layers)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        // What is no mount is left of a mount that was killed half-way; the next mount of it uses it.
        if is_name(name) && is_mount(nursery.layers, Path::new(name))? {
            layers.push(name.to_owned());
        }
    }
    layers.sort_unstable();
    Ok(layers)
}

fn is_layer(nursery: Nursery<'_>, id: &Path) -> Result<bool, Failure> {
    match is_mount(nursery.layers, id) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        found => found.step("look for the layer"),
    }
}

fn check_id(id: &str) -> Result<(), Failure> {
    if is_name(id) {
        Ok(())
    } else {
        Err(Failure::new(ErrorCode::Invalid, "layerId is not an id"))
    }
}

fn check_path(path: &str) -> Result<(), Failure> {
    if !is_plain_path(path) || path.len() > OPTION_BYTES_MAX {
        let message = "a path is not absolute and plain, or longer than 255 bytes";
        return Err(Failure::new(ErrorCode::Invalid, message));
    }
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(Failure::new(ErrorCode::Invalid, "a path is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Failure::new(
            ErrorCode::NotFound,
            "a file of the layer is missing",
        )),
        Err(error) => Err(error).step("look at a file of the layer"),
    }
}
