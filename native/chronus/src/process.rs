//! Forking without a thread library in between.

use std::io;
use std::mem::MaybeUninit;

use rustix::process::Pid;

/// Which side of a fork this is.
pub enum Forked {
    Child,
    Parent(Pid),
}

/// Forks the calling process, which must have one thread only.
pub fn fork() -> io::Result<Forked> {
    fork_into(0)
}

/// Forks into new namespaces, given by `CLONE_NEW*` flags. The child has default signal handlers
/// and no blocked signals; ignored ones stay ignored.
pub fn fork_into(namespaces: u64) -> io::Result<Forked> {
    const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
    #[repr(C)]
    #[derive(Default)]
    struct CloneArguments {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
    }
    let arguments = CloneArguments {
        flags: namespaces | CLONE_CLEAR_SIGHAND,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArguments::default()
    };
    // SAFETY: without CLONE_VM this is a fork: the child runs on its own copy of this stack. The process has
    // one thread, so that no lock is held by a thread that the child lacks.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const arguments,
            size_of::<CloneArguments>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let pid = i32::try_from(result).map_err(io::Error::other)?;
    Ok(match Pid::from_raw(pid) {
        Some(child) => Forked::Parent(child),
        None => {
            unblock_signals();
            Forked::Child
        }
    })
}

fn unblock_signals() {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset makes the set valid before it is read. Neither call can fail with these arguments.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Ends a forked child at once: no destructors, no exit handlers of the parent's.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory.
    unsafe { libc::_exit(code) }
}
