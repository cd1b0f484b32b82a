//! The end of the sandbox, asked for by the edge.

use std::time::{Duration, Instant};

use super::Init;

/// Processes are waited for so long; what is left dies with init, which is pid 1.
const LIMIT: Duration = Duration::from_secs(5);
const POLL_MS: libc::c_int = 50;

impl Init {
    /// Kills everything, removes the groups, answers and exits. The one place where init waits: nothing else is left to do.
    pub(super) fn shut_down(&mut self, channel: u32) {
        // SAFETY: as pid 1, this signals every other process of the pid namespace.
        unsafe { libc::kill(-1, libc::SIGKILL) };
        let start = Instant::now();
        while start.elapsed() < LIMIT {
            self.on_child_signal();
            if !has_children() {
                break;
            }
            let mut poll = libc::pollfd {
                fd: std::os::fd::AsRawFd::as_raw_fd(&self.signals),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one entry, which lives for the call.
            unsafe { libc::poll(&raw mut poll, 1, POLL_MS) };
        }
        for number in self.commands.numbers() {
            if let Some(command) = self.commands.get(number) {
                self.groups.remove(&command.id);
            }
        }
        self.end_empty(channel);
        self.flush();
        std::process::exit(0);
    }
}

fn has_children() -> bool {
    // SAFETY: an all-zero siginfo is valid, and waitid fills it.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_ALL, 0, &raw mut info, flags) == 0
    }
}
