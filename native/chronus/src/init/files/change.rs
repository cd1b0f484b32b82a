//! Making and removing.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use super::stat::describe;
use super::{checked_path, failure};
use crate::protocol::{ErrorCode, Failure, FileMkdir, FileRemove, Stat};

pub(super) fn remove(request: &FileRemove) -> Result<(), Failure> {
    let path = checked_path(&request.path)?;
    let failed = |error: io::Error| failure(&request.path, &error);
    let facts = path.symlink_metadata().map_err(failed)?;
    match (facts.is_dir(), request.recursive) {
        (true, true) => std::fs::remove_dir_all(path).map_err(failed),
        (true, false) => std::fs::remove_dir(path).map_err(failed),
        (false, _) => std::fs::remove_file(path).map_err(failed),
    }
}

pub(super) fn make_directory(request: &FileMkdir) -> Result<Stat, Failure> {
    let path = checked_path(&request.path)?;
    let failed = |error: io::Error| failure(&request.path, &error);
    if request.mode > 0o7777 {
        return Err(Failure::new(ErrorCode::Invalid, "mode is not a mode"));
    }
    if request.parents {
        make_parents(path).map_err(failed)?;
    }
    match DirBuilder::new().mode(request.mode & 0o777).create(path) {
        Ok(()) => {
            let mode = Permissions::from_mode(request.mode);
            std::fs::set_permissions(path, mode).map_err(failed)?;
        }
        // With `parents`, a directory that is there already is what was asked for.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && request.parents => {
            if !path.is_dir() {
                return Err(failed(error));
            }
        }
        Err(error) => return Err(failed(error)),
    }
    let facts = path.symlink_metadata().map_err(failed)?;
    Ok(describe(path, &facts))
}

/// Makes the directories above a path where they are missing, with mode 0755.
pub(super) fn make_parents(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => DirBuilder::new().recursive(true).mode(0o755).create(parent),
        None => Ok(()),
    }
}
