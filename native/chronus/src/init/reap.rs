//! Children: reports of the runner, and the reaping of everything that ends in the sandbox.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use super::command::FirstEnd;
use super::group::{oom_kills, send_signal};
use super::runner::wire::Report;
use super::timers::wall_ms;
use super::{Init, Owner};
use crate::protocol::Cause;

/// How a child ended.
#[derive(Debug, Clone, Copy)]
struct Reaped {
    exit_code: Option<i32>,
    signal: Option<i32>,
    cpu_ms: u64,
    peak_memory_bytes: Option<u64>,
}

impl Reaped {
    /// For a child that was reaped before it was known to be one of ours.
    const UNSEEN: Self = Self {
        exit_code: None,
        signal: Some(libc::SIGKILL),
        cpu_ms: 0,
        peak_memory_bytes: None,
    };

    fn first_end(self) -> FirstEnd {
        FirstEnd {
            exit_code: self.exit_code,
            signal: self.signal,
            cpu_ms: self.cpu_ms,
            peak_memory_bytes: self.peak_memory_bytes,
            ended_at_ms: wall_ms(),
        }
    }
}

/// Blocks SIGCHLD and gives a descriptor that is readable when one is pending.
pub(super) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised before use; signalfd gives a new descriptor that nothing else owns.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        match fd {
            fd if fd < 0 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// A child that has ended and is not reaped.
fn next_zombie() -> Option<i32> {
    // SAFETY: an all-zero siginfo is valid, and waitid fills it.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let result = libc::waitid(libc::P_ALL, 0, &raw mut info, flags);
        (result == 0 && info.si_pid() > 0).then(|| info.si_pid())
    }
}

fn reap(pid: i32) -> Reaped {
    let mut status = 0;
    // SAFETY: an all-zero rusage is valid, and wait4 fills both.
    let (waited, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let waited = libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage);
        (waited, usage)
    };
    if waited != pid {
        return Reaped::UNSEEN;
    }
    let ms = |time: libc::timeval| time.tv_sec * 1000 + time.tv_usec / 1000;
    let number = |value: i64| u64::try_from(value).unwrap_or(0);
    Reaped {
        exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        cpu_ms: number(ms(usage.ru_utime) + ms(usage.ru_stime)),
        peak_memory_bytes: Some(number(usage.ru_maxrss) * 1024),
    }
}

impl Init {
    pub(super) fn on_child_signal(&mut self) {
        let mut buffer = [0; 1024];
        while rustix::io::read(&self.signals, &mut buffer).is_ok_and(|count| count > 0) {}
        while let Some(pid) = next_zombie() {
            // A child reports its pid before it can end: after this, who is unknown is an orphan.
            if !self.children.contains_key(&pid) {
                self.take_reports();
            }
            let reaped = reap(pid);
            if self.runner.is(pid) {
                self.on_runner_end();
            } else if let Some(owner) = self.children.remove(&pid) {
                self.on_child_end(owner, reaped);
            }
        }
    }

    fn on_child_end(&mut self, owner: Owner, reaped: Reaped) {
        match owner {
            Owner::Command(number) => {
                // Why a program was not run is reported before the exit, too.
                if reaped.exit_code == Some(127) {
                    self.take_reports();
                }
                self.on_first_end(number, reaped.first_end());
            }
            Owner::File(id) => {
                if let Some(operation) = self.operations.get_mut(&id) {
                    operation.pid = None;
                }
            }
        }
    }

    /// Takes all reports that the runner and its children have sent.
    pub(super) fn take_reports(&mut self) {
        while let Some(report) = self.runner.report() {
            match report {
                Report::Forked { launch, pid } => self.on_forked(Owner::of_launch(launch), pid),
                Report::NotForked { launch, text } => {
                    self.on_not_forked(Owner::of_launch(launch), text);
                }
                Report::NotStarted { launch, text } => {
                    if let Owner::Command(number) = Owner::of_launch(launch)
                        && let Some(command) = self.commands.get_mut(number)
                    {
                        command.failure.get_or_insert((Cause::StartFailed, text));
                    }
                }
            }
        }
    }

    /// Comes twice for each process, from the runner and from itself; the second is of no interest.
    fn on_forked(&mut self, owner: Owner, pid: i32) {
        match owner {
            Owner::Command(number) => {
                let Some(command) = self.commands.get_mut(number) else {
                    return;
                };
                if command.pid.is_some() || command.first_end.is_some() {
                    return;
                }
                command.pid = Some(pid);
                for signal in (1..=31).filter(|signal| command.early_signals & 1 << signal != 0) {
                    send_signal(pid, signal);
                }
                self.children.insert(pid, owner);
                if command.tree_kill.is_some() {
                    let id = command.id.clone();
                    self.groups.kill(&id);
                }
                self.notice_unseen_end(owner, pid);
            }
            Owner::File(id) => {
                let Some(operation) = self.operations.get_mut(&id) else {
                    return;
                };
                if operation.forked {
                    return;
                }
                operation.forked = true;
                operation.pid = Some(pid);
                self.children.insert(pid, owner);
                self.notice_unseen_end(owner, pid);
            }
        }
    }

    /// A child that was killed before it could report itself has been reaped as an orphan.
    fn notice_unseen_end(&mut self, owner: Owner, pid: i32) {
        // SAFETY: signal 0 only asks whether the process exists.
        let exists = unsafe { libc::kill(pid, 0) } == 0;
        if !exists {
            self.children.remove(&pid);
            self.on_child_end(owner, Reaped::UNSEEN);
        }
    }

    fn on_not_forked(&mut self, owner: Owner, text: String) {
        match owner {
            Owner::Command(number) => self.never_ran(number, Cause::StartFailed, text),
            Owner::File(id) => self.file_not_forked(id, &text),
        }
    }

    /// The runner is gone, by the OOM killer for all we know. The next launch starts another.
    fn on_runner_end(&mut self) {
        self.take_reports();
        self.runner.ended();
        let oom_kills = oom_kills(self.oom_file.as_ref());
        for number in self.commands.numbers() {
            let Some(command) = self.commands.get(number) else {
                continue;
            };
            if command.pid.is_none() && command.first_end.is_none() && command.outcome.is_none() {
                let cause = match oom_kills > command.oom_kills_before {
                    true => Cause::Oom,
                    false => Cause::AgentKilled,
                };
                let text = "the process that starts commands was killed".to_owned();
                self.never_ran(number, cause, text);
            }
        }
    }

    /// A command whose first process never came to be.
    fn never_ran(&mut self, number: u64, cause: Cause, text: String) {
        let Some(command) = self.commands.get_mut(number) else {
            return;
        };
        if command.first_end.is_some() {
            return;
        }
        command.failure = Some((cause, text));
        self.on_first_end(
            number,
            FirstEnd {
                exit_code: None,
                signal: None,
                cpu_ms: 0,
                peak_memory_bytes: None,
                ended_at_ms: wall_ms(),
            },
        );
    }
}
