//! Forking by `clone3`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The constant of libc is too narrow for its value.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Whose child the new process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    Caller,
    /// The caller's parent: the new process is a sibling.
    ParentOfCaller,
}

#[derive(Debug)]
pub enum Forked {
    Child,
    Parent(i32),
}

/// Forks, into a cgroup of the v2 hierarchy if one is given.
///
/// The caller is single-threaded, so the child may do all that the caller may. The child never returns from the work
/// it was forked for: it execs or exits.
pub fn fork(cgroup: Option<BorrowedFd<'_>>, parent: Parent) -> io::Result<Forked> {
    // SAFETY: an all-zero clone_args is valid.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    match parent {
        Parent::Caller => arguments.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs()),
        Parent::ParentOfCaller => {
            arguments.flags |= u64::from(libc::CLONE_PARENT.unsigned_abs());
        }
    }
    if let Some(cgroup) = cgroup {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = u64::from(cgroup.as_raw_fd().unsigned_abs());
    }
    let size = std::mem::size_of::<libc::clone_args>();
    // SAFETY: without CLONE_VM the child has its own copy of memory; the process has one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size) };
    match i32::try_from(pid) {
        Ok(0) => Ok(Forked::Child),
        Ok(pid) if pid > 0 => Ok(Forked::Parent(pid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends this process at once, without exit handlers.
pub fn exit(code: i32) -> ! {
    // SAFETY: always sound.
    unsafe { libc::_exit(code) }
}
