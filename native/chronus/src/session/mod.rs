//! What binds a session: user namespace, capabilities, system calls and ids.
//!
//! The order matters: the bounding set and the filter need the capabilities that `setns(U)` gives and that
//! taking an ordinary user's ids removes. [`enter`] does all of it in the right order.

mod assembler;
mod calls;
mod capabilities;
mod filter;

use std::io;
use std::os::fd::BorrowedFd;

use rustix::thread::{Gid, Uid};
use rustix::thread::{
    LinkNameSpaceType, move_into_link_name_space, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

/// Ids inside the sandbox, each below 65,536.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// Compiles the filter once, so that processes forked later inherit it ready to load.
pub fn prepare() {
    filter::program();
}

/// Joins U, confines the caller and takes the ids: all that a session child does before its `exec`.
pub fn enter(
    user_namespace: BorrowedFd<'_>,
    credentials: &Credentials,
    no_new_privs: bool,
) -> io::Result<()> {
    reset_signals()?;
    join_user_namespace(user_namespace)?;
    confine(no_new_privs)?;
    take_ids(credentials)
}

/// Gives the program that will be executed the signals of a fresh process: none ignored, none blocked.
pub fn reset_signals() -> io::Result<()> {
    // The kernel's own structure: action, flags, restorer, mask. All zeros is the default action. The C library
    // would refuse the two signals that it keeps for itself, and they may have been ignored by an ancestor.
    let default = [0_u64; 4];
    let none = 0_u64;
    let mask_bytes = size_of::<u64>();
    for signal in 1..=64_i64 {
        // SAFETY: the kernel reads the structure during the call; default actions run no code of ours. The two
        // signals that cannot be changed answer an error, which changes nothing.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                std::ptr::null::<u64>(),
                mask_bytes,
            )
        };
    }
    // SAFETY: the kernel reads one mask during the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const none,
            std::ptr::null::<u64>(),
            mask_bytes,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Joins U by `setns`: the caller (single-threaded) then has all capabilities in U and none on the host.
pub fn join_user_namespace(user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    move_into_link_name_space(user_namespace, Some(LinkNameSpaceType::User))?;
    Ok(())
}

/// Drops the bounding set to what root inside may have and loads the system call filter.
///
/// Called after `setns(U)` and BEFORE `setgroups`, `setgid` and `setuid`: an ordinary user may do neither.
/// Capabilities beyond the bounding set are still held until the next `exec`.
pub fn confine(no_new_privs: bool) -> io::Result<()> {
    capabilities::bound()?;
    if no_new_privs {
        set_no_new_privs(true)?;
    }
    filter::load()
}

/// Takes the ids for good: `setgroups`, `setresgid`, `setresuid`.
pub fn take_ids(credentials: &Credentials) -> io::Result<()> {
    let groups: Vec<Gid> = credentials
        .groups
        .iter()
        .map(|&group| Gid::from_raw(group))
        .collect();
    let gid = Gid::from_raw(credentials.gid);
    let uid = Uid::from_raw(credentials.uid);
    set_thread_groups(&groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}
