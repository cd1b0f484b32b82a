//! Signals of the spawner as a descriptor.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// Blocked signals that arrive on a descriptor instead. Forked children start with none blocked.
pub struct Signals {
    descriptor: OwnedFd,
}

impl Signals {
    /// Blocks SIGCHLD, SIGTERM and SIGINT in this process.
    pub fn block() -> io::Result<Signals> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset makes the set valid before anything reads it, and signalfd gives a new
        // descriptor that nobody else owns.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT] {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let error = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            if error != 0 {
                return Err(io::Error::from_raw_os_error(error));
            }
            let descriptor =
                libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Signals {
                descriptor: OwnedFd::from_raw_fd(descriptor),
            })
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Takes what arrived; true when the process is asked to end.
    pub fn take(&self) -> io::Result<bool> {
        const RECORD_BYTES: usize = size_of::<libc::signalfd_siginfo>();
        let mut buffer = [0_u8; RECORD_BYTES * 8];
        let mut asked_to_end = false;
        loop {
            let length = match rustix::io::read(&self.descriptor, &mut buffer) {
                Err(rustix::io::Errno::AGAIN) => return Ok(asked_to_end),
                Err(rustix::io::Errno::INTR) => continue,
                length => length?,
            };
            for record in buffer[..length].chunks_exact(RECORD_BYTES) {
                // The signal's number is the first field of the record.
                let number = record.first_chunk::<4>().map(|it| i32::from_ne_bytes(*it));
                asked_to_end |= number != Some(libc::SIGCHLD);
            }
        }
    }
}
