//! Groups of commands on the v2 hierarchy: one directory a command, without controllers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

const PIDS_BYTES_MAX: usize = 1024 * 1024;

/// The directory in which the groups are made.
#[derive(Debug)]
pub(super) struct Groups {
    directory: OwnedFd,
}

impl Groups {
    pub(super) fn new(directory: OwnedFd) -> Self {
        Self { directory }
    }

    /// Makes the group of a command; the descriptor serves CLONE_INTO_CGROUP.
    pub(super) fn make(&self, id: &str) -> io::Result<OwnedFd> {
        rustix::fs::mkdirat(&self.directory, id, Mode::from_raw_mode(0o755))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(
            &self.directory,
            id,
            flags,
            Mode::empty(),
        )?)
    }

    /// Removes the group; false while processes are in it.
    pub(super) fn remove(&self, id: &str) -> bool {
        match rustix::fs::unlinkat(&self.directory, id, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => true,
            Err(_) => false,
        }
    }

    /// Kills all processes of the group, and those that they fork meanwhile.
    pub(super) fn kill(&self, id: &str) {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if let Ok(file) = self.open(id, "cgroup.kill", flags) {
            // A group that is gone has nothing to kill.
            let _ = rustix::io::write(&file, b"1");
        }
    }

    /// Opens the file that changes when the group gets empty.
    pub(super) fn events(&self, id: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(self.open(id, "cgroup.events", flags)?)
    }

    /// Sends a signal to each process of the group.
    pub(super) fn signal(&self, id: &str, signal: i32) -> io::Result<()> {
        let file = self.open(id, "cgroup.procs", OFlags::RDONLY | OFlags::CLOEXEC)?;
        let mut text = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let count = rustix::io::read(&file, &mut buffer)?;
            text.extend_from_slice(&buffer[..count]);
            if count == 0 || text.len() > PIDS_BYTES_MAX {
                break;
            }
        }
        let text = String::from_utf8_lossy(&text);
        for pid in text.lines().filter_map(|line| line.parse::<i32>().ok()) {
            send_signal(pid, signal);
        }
        Ok(())
    }

    fn open(&self, id: &str, file: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(
            &self.directory,
            format!("{id}/{file}"),
            flags,
            Mode::empty(),
        )
    }
}

/// Whether any process is in the group of an open `cgroup.events`.
pub(super) fn is_populated(events: BorrowedFd<'_>) -> bool {
    let mut buffer = [0; 256];
    match rustix::io::pread(events, &mut buffer, 0) {
        Ok(count) => String::from_utf8_lossy(&buffer[..count]).contains("populated 1"),
        // ENODEV: the group is gone.
        Err(_) => false,
    }
}

/// Sends a signal to a process above 1.
pub(super) fn send_signal(pid: i32, signal: i32) {
    if pid > 1 {
        // SAFETY: kill has no memory effects. A process that ended meanwhile needs no signal.
        unsafe { libc::kill(pid, signal) };
    }
}

/// The `oom_kill` counter of v1 `memory.oom_control` or v2 `memory.events`; 0 when it cannot be read.
pub(super) fn oom_kills(file: Option<&OwnedFd>) -> u64 {
    let mut buffer = [0; 1024];
    let read = file.and_then(|file| rustix::io::pread(file.as_fd(), &mut buffer, 0).ok());
    let text = String::from_utf8_lossy(&buffer[..read.unwrap_or(0)]).into_owned();
    let counter = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    counter
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}
