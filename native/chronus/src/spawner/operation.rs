//! Operations that run in a child of their own, so that none can hold up or bring down the spawner.
//!
//! A child reports over a pipe. One that ends without a report has failed; one that is late is killed. The
//! answer goes out once the child is gone, or, for a sandbox, once its init says that it serves.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::connection::{parse, to_json};
use crate::process::{Forked, exit_now, fork_into};
use crate::protocol::{End, ErrorCode, Failure};

/// A child that takes longer is killed.
const DEADLINE: Duration = Duration::from_secs(30);
const REPORT_BYTES_MAX: usize = 8_192;

/// First bytes of what a child says.
const READY: u8 = b'R';
const BOUND: u8 = b'B';
const RESULT: u8 = b'=';

/// What an operation is for, as far as its end needs it.
#[derive(Debug)]
pub enum Kind {
    Layer,
    Create {
        sandbox_id: String,
        socket_path: String,
    },
}

/// Where the answer goes: a channel of a connection, if that connection is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub connection: u64,
    pub channel: u32,
}

/// A child at work.
#[derive(Debug)]
pub struct Operation {
    pub kind: Kind,
    pub caller: Caller,
    pub pid: Pid,
    report: OwnedFd,
    said: Vec<u8>,
    /// The child closed the pipe: nothing more comes.
    silent: bool,
    deadline: Instant,
    late: bool,
}

/// The child's side of the report.
pub struct Reporter {
    report: OwnedFd,
}

impl Reporter {
    /// Says that the socket has its name, which the spawner must remove if the child fails.
    pub fn bound(&self) {
        self.say(&[BOUND]);
    }

    /// A descriptor for init, on which the one byte `R` says that it serves.
    pub fn ready(&self) -> io::Result<OwnedFd> {
        self.report.try_clone()
    }

    /// Says how the operation ended, and ends the child.
    pub fn finish<T: Serialize>(&self, result: Result<T, Failure>) -> ! {
        let (end, code) = match result {
            Ok(answer) => (End::Ok(answer), 0),
            Err(failure) => (End::Error(failure), 1),
        };
        let mut message = vec![RESULT];
        message.extend(to_json(&end));
        self.say(&message);
        exit_now(code)
    }

    fn say(&self, bytes: &[u8]) {
        // A report that nobody reads any more is of no use: the spawner is gone.
        let _ = rustix::io::write(&self.report, bytes);
    }
}

impl Operation {
    /// Forks a child that runs `work` in new `namespaces`; `work` ends the child.
    pub fn start(
        kind: Kind,
        caller: Caller,
        namespaces: u64,
        work: impl FnOnce(Reporter),
    ) -> io::Result<Operation> {
        let (report, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        match fork_into(namespaces)? {
            Forked::Child => {
                work(Reporter { report: theirs });
                exit_now(1)
            }
            Forked::Parent(pid) => {
                fcntl_setfl(&report, OFlags::NONBLOCK)?;
                Ok(Operation {
                    kind,
                    caller,
                    pid,
                    report,
                    said: Vec::new(),
                    silent: false,
                    deadline: Instant::now() + DEADLINE,
                    late: false,
                })
            }
        }
    }

    /// The pipe to wait on, while more may come.
    pub fn report(&self) -> Option<BorrowedFd<'_>> {
        (!self.silent).then(|| self.report.as_fd())
    }

    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Takes what the child said; true once it says that init serves.
    pub fn hear(&mut self) -> bool {
        let mut buffer = [0_u8; 1_024];
        loop {
            match rustix::io::read(&self.report, &mut buffer) {
                Ok(0) => {
                    self.silent = true;
                    break;
                }
                Ok(length) if self.said.len() + length <= REPORT_BYTES_MAX => {
                    self.said.extend(&buffer[..length]);
                }
                Ok(_) => self.kill(),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        self.is_ready()
    }

    /// Kills the child if its time is over.
    pub fn enforce_deadline(&mut self, now: Instant) {
        if now >= self.deadline {
            self.late = true;
            self.deadline = now + DEADLINE;
            self.kill();
        }
    }

    /// Kills the child; its end is seen as any other.
    pub fn kill(&self) {
        // It is our child and not yet waited for, so that the pid is its own; it may have ended.
        let _ = kill_process(self.pid, Signal::KILL);
    }

    /// True when the child gave the socket its name.
    pub fn has_bound(&self) -> bool {
        self.said.first() == Some(&BOUND)
    }

    /// The payload of END, once the child is gone without having become an init.
    pub fn result(&self) -> Result<serde_json::Value, Failure> {
        if self.late {
            return Err(Failure::new(
                ErrorCode::Deadline,
                "the operation took too long",
            ));
        }
        let message = self.after_bound();
        let Some((&RESULT, json)) = message.split_first() else {
            let message = "the process that did the operation was killed";
            return Err(Failure::new(ErrorCode::Internal, message));
        };
        match parse::<End<serde_json::Value>>(json) {
            Ok(End::Ok(answer)) => Ok(answer),
            Ok(End::Error(failure)) => Err(failure),
            Err(_) => Err(Failure::new(
                ErrorCode::Internal,
                "the report was cut short",
            )),
        }
    }

    fn is_ready(&self) -> bool {
        self.after_bound().first() == Some(&READY)
    }

    fn after_bound(&self) -> &[u8] {
        self.said.strip_prefix(&[BOUND]).unwrap_or(&self.said)
    }
}
