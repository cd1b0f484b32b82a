//! What binds a session: user namespace, capabilities, system calls and ids.
//!
//! The order matters: the bounding set and the filter need the capabilities that `setns(U)` gives and that
//! taking an ordinary user's ids removes. [`enter`] does all of it in the right order.

use std::io;
use std::os::fd::BorrowedFd;

/// Ids inside the sandbox, each below 65,536.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// Joins U, confines the caller and takes the ids: all that a session child does before its `exec`.
pub fn enter(
    user_namespace: BorrowedFd<'_>,
    credentials: &Credentials,
    no_new_privs: bool,
) -> io::Result<()> {
    join_user_namespace(user_namespace)?;
    confine(no_new_privs)?;
    take_ids(credentials)
}

/// Joins U by `setns`: the caller (single-threaded) then has all capabilities in U and none on the host.
pub fn join_user_namespace(user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    let _ = user_namespace;
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Drops the bounding set to what root inside may have and loads the system call filter.
///
/// Called after `setns(U)` and BEFORE `setgroups`, `setgid` and `setuid`: an ordinary user may do neither.
pub fn confine(no_new_privs: bool) -> io::Result<()> {
    let _ = no_new_privs;
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Takes the ids for good: `setgroups`, `setresgid`, `setresuid`.
pub fn take_ids(credentials: &Credentials) -> io::Result<()> {
    let _ = credentials;
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
