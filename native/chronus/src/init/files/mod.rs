//! File operations. Init never opens a path: a helper with the caller's ids does, and init carries its messages.

mod change;
mod content;
pub(in crate::init) mod helper;
pub mod message;
pub(in crate::init) mod operation;
mod stat;

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{PROC_SUPER_MAGIC, fstatfs};

use crate::protocol::{ErrorCode, Failure};

const SYSFS_MAGIC: u64 = 0x6265_6572;
const CGROUP_MAGIC: u64 = 0x0027_e0eb;
const CGROUP2_MAGIC: u64 = 0x6367_7270;
const PATH_BYTES_MAX: usize = 4096;

/// Whether a file lies on procfs, sysfs or a cgroup hierarchy, where writing is an order to the kernel.
pub fn is_of_kernel(file: impl AsFd) -> Result<bool, rustix::io::Errno> {
    let magic = u64::try_from(fstatfs(file)?.f_type).unwrap_or(0);
    let proc = u64::try_from(PROC_SUPER_MAGIC).unwrap_or(0);
    Ok([proc, SYSFS_MAGIC, CGROUP_MAGIC, CGROUP2_MAGIC].contains(&magic))
}

/// An absolute path within bounds.
fn checked_path(path: &str) -> Result<&Path, Failure> {
    match path.starts_with('/') && path.len() < PATH_BYTES_MAX && !path.contains('\0') {
        true => Ok(Path::new(path)),
        false => Err(Failure::new(ErrorCode::Invalid, "not an absolute path")),
    }
}

/// The wire's form of an error of the file system.
fn failure(path: &str, error: &io::Error) -> Failure {
    let code = match error.raw_os_error() {
        Some(libc::ENOENT) => ErrorCode::NotFound,
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => ErrorCode::Denied,
        Some(libc::EEXIST) => ErrorCode::Exists,
        Some(libc::ENOTDIR) => ErrorCode::NotDirectory,
        Some(libc::EISDIR) => ErrorCode::IsDirectory,
        Some(libc::ENOTEMPTY) => ErrorCode::NotEmpty,
        Some(libc::ENOSPC | libc::EDQUOT) => ErrorCode::DiskQuota,
        Some(libc::EFBIG) => ErrorCode::TooLarge,
        Some(libc::EMFILE | libc::ENFILE) => ErrorCode::TooMany,
        Some(libc::EBUSY | libc::ETXTBSY) => ErrorCode::Busy,
        Some(libc::ELOOP | libc::EINVAL | libc::ENAMETOOLONG | libc::ENXIO) => ErrorCode::Invalid,
        _ => ErrorCode::Internal,
    };
    Failure::new(code, format!("{path}: {error}"))
}
