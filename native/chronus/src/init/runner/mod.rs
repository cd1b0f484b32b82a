//! The runner: a small process inside the sandbox's limits that forks commands and file helpers for init.
//!
//! It is outside the sandbox's user namespace, so nobody inside can trace or signal it. What it forks are children of
//! init (CLONE_PARENT), which inherit the runner's v1 cgroups. It keeps no state: when the OOM killer takes it,
//! [`Runner`] starts another with the next launch.

mod fork;
mod serve;
mod session;
pub mod users;
pub mod wire;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

pub use fork::exit as fork_exit;
use wire::{Packet, Report};

/// What a runner, the first one or a later one, is started with.
#[derive(Debug)]
pub struct RunnerParts {
    /// The sandbox's user namespace.
    pub user_namespace: OwnedFd,
    /// `cgroup.procs` files that the runner joins.
    pub procs: Vec<OwnedFd>,
    pub open_files_max: u64,
}

/// Init's side of the runner.
#[derive(Debug)]
pub struct Runner {
    parts: RunnerParts,
    live: Option<Live>,
    /// Launches that the runner has no room for yet.
    waiting: VecDeque<Packet>,
}

#[derive(Debug)]
struct Live {
    pid: i32,
    socket: OwnedFd,
}

impl Runner {
    pub fn new(parts: RunnerParts) -> Self {
        Self {
            parts,
            live: None,
            waiting: VecDeque::new(),
        }
    }

    /// The socket to poll: readable for reports, writable when what waits may go on.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.live.as_ref().map(|live| live.socket.as_fd())
    }

    pub fn is(&self, pid: i32) -> bool {
        self.live.as_ref().is_some_and(|live| live.pid == pid)
    }

    /// Starts a runner unless one lives. True when one was started, whose socket is to be polled.
    pub fn ensure(&mut self) -> io::Result<bool> {
        if self.live.is_some() {
            return Ok(false);
        }
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let pid = match fork::fork(None, fork::Parent::Caller)? {
            fork::Forked::Child => serve::start(theirs, &self.parts),
            fork::Forked::Parent(pid) => pid,
        };
        self.live = Some(Live { pid, socket: ours });
        Ok(true)
    }

    /// Hands a launch to the runner, now or when it has room.
    pub fn submit(&mut self, packet: Packet) {
        self.waiting.push_back(packet);
        self.flush();
    }

    /// Sends what waits, as far as the runner has room.
    pub fn flush(&mut self) {
        let Some(live) = &self.live else {
            return;
        };
        while let Some(packet) = self.waiting.front() {
            match packet.send(live.socket.as_fd()) {
                Ok(()) => drop(self.waiting.pop_front()),
                Err(Errno::INTR) => {}
                // AGAIN: later. Anything else: the runner is dead, and its end is about to be reaped.
                Err(_) => break,
            }
        }
    }

    /// The next report, if there is one.
    pub fn report(&mut self) -> Option<Report> {
        let live = self.live.as_ref()?;
        Report::receive(live.socket.as_fd()).ok().flatten()
    }

    /// Forgets the runner, which has ended. What waits is dropped; the caller answers for every launch in flight.
    pub fn ended(&mut self) {
        self.live = None;
        self.waiting.clear();
    }
}

/// Closes every descriptor from 3 on but those given, which then are 3 and up in order.
pub(in crate::init) fn keep_only(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let floor = 3 + i32::try_from(kept.len()).unwrap_or(0);
    let mut high = Vec::with_capacity(kept.len());
    for fd in kept {
        high.push(rustix::io::fcntl_dupfd_cloexec(fd, floor)?);
    }
    for (at, fd) in (3..).zip(&high) {
        // SAFETY: both are descriptors of this process; the target is not owned by anything that lives on.
        if unsafe { libc::dup3(fd.as_raw_fd(), at, libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    std::mem::forget(high);
    let first = u32::try_from(floor).unwrap_or(u32::MAX);
    // SAFETY: what is closed has no owner in what this process still runs.
    if unsafe { libc::close_range(first, u32::MAX, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
