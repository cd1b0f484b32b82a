//! Starting commands.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;

use super::channels::Use;
use super::command::{Command, Group, Input};
use super::group::oom_kills;
use super::output::Source;
use super::poll::Token;
use super::runner::wire::{Launch, Packet, SessionLaunch};
use super::timers::{Timer, wall_ms};
use super::{Init, Owner};
use crate::connection::parse;
use crate::frame::Stream;
use crate::protocol::{ErrorCode, Exec, ExecMore, Failure};

const ARGUMENTS_MAX: usize = 4096;
/// The kernel's bound of one argument or variable, its NUL not counted.
const STRING_BYTES_MAX: usize = 131_071;
const ALL_BYTES_MAX: usize = 2 * 1024 * 1024;
/// JSON of arguments and environment that arrive as DATA; escapes make it longer than what it says.
const COLLECTED_BYTES_MAX: usize = 8 * 1024 * 1024;
const ACTION_ID_BYTES_MAX: usize = 256;

/// An `exec` whose arguments arrive as DATA.
#[derive(Debug)]
pub(super) struct Collected {
    request: Exec,
    bytes: Vec<u8>,
}

impl Init {
    pub(super) fn exec(&mut self, channel: u32, request: Exec) {
        if request.more {
            if request.argv.is_some() || request.env.is_some() {
                let message = "argv and env follow as DATA when more is set";
                return self.end_error(channel, ErrorCode::Invalid, message);
            }
            let bytes = Vec::new();
            let collected = Box::new(Collected { request, bytes });
            self.uses.insert(channel, Use::Collecting(collected));
            return;
        }
        let (Some(argv), Some(env)) = (request.argv.clone(), request.env.clone()) else {
            return self.end_error(channel, ErrorCode::Invalid, "argv and env are missing");
        };
        self.exec_complete(channel, &request, argv, env);
    }

    pub(super) fn collect(&mut self, channel: u32, bytes: &[u8]) {
        if let Some(Use::Collecting(collected)) = self.uses.get_mut(&channel) {
            collected.bytes.extend_from_slice(bytes);
            if collected.bytes.len() > COLLECTED_BYTES_MAX {
                let message = "argv and env are over 2 MiB";
                return self.end_error(channel, ErrorCode::TooLarge, message);
            }
        }
        self.consumed(channel, bytes.len());
    }

    pub(super) fn collected(&mut self, channel: u32) {
        let Some(Use::Collecting(collected)) = self.uses.remove(&channel) else {
            return;
        };
        // The command's own input follows on the same stream.
        if let Some(connection) = self.peers.current() {
            connection.reopen_stream(channel, Stream::Input);
        }
        match parse::<ExecMore>(&collected.bytes) {
            Ok(more) => self.exec_complete(channel, &collected.request, more.argv, more.env),
            Err(failure) => self.end_failure(channel, &failure),
        }
    }

    fn exec_complete(
        &mut self,
        channel: u32,
        request: &Exec,
        argv: Vec<String>,
        env: BTreeMap<String, String>,
    ) {
        if let Err(failure) = check(request, &argv, &env) {
            return self.end_failure(channel, &failure);
        }
        if let Some(number) = self.commands.by_action(&request.action_id) {
            return self.attach_reader(channel, number, [0, 0], true);
        }
        if self.commands.is_full() {
            return self.end_error(channel, ErrorCode::TooMany, "too many commands run");
        }
        let launch = SessionLaunch {
            argv,
            env,
            cwd: request.cwd.clone(),
            user: request.user.clone(),
            no_new_privs: request.no_new_privs,
        };
        match self.start_command(request, launch) {
            Ok(number) => self.attach_reader(channel, number, [0, 0], false),
            Err(error) => {
                let message = format!("cannot start a command: {error}");
                self.end_error(channel, ErrorCode::Internal, &message);
            }
        }
    }

    fn start_command(&mut self, request: &Exec, launch: SessionLaunch) -> io::Result<u64> {
        self.ensure_runner()?;
        let (number, id) = self.commands.next_number();
        let group = self.groups.make(&id)?;
        let started = self.start_in(number, &id, group, (request, launch));
        if started.is_err() {
            self.groups.remove(&id);
        }
        started.map(|()| number)
    }

    fn start_in(
        &mut self,
        number: u64,
        id: &str,
        group: OwnedFd,
        (request, launch): (&Exec, SessionLaunch),
    ) -> io::Result<()> {
        let (stdout, child_stdout) = pipe(End::Read)?;
        let (stderr, child_stderr) = pipe(End::Read)?;
        let mut descriptors = vec![group, child_stdout, child_stderr];
        let mut input = None;
        if request.stdin {
            let (stdin, child_stdin) = pipe(End::Write)?;
            descriptors.push(child_stdin);
            input = Some(Input::new(stdin));
        }
        let launch_number = Owner::Command(number).launch();
        let packet = Packet::new(launch_number, &Launch::Session(launch), descriptors)?;
        for (pipe, source) in [(&stdout, Source::Stdout), (&stderr, Source::Stderr)] {
            let token = Token::Output(number, source);
            self.poll.add(pipe.as_fd(), token, EventFlags::IN)?;
        }
        let timeout = request.timeout_ms;
        let timeout = timeout.map(|ms| self.timers.set_in(ms, Timer::Timeout(number)));
        self.store.add(number, id);
        let command = Command {
            id: id.to_owned(),
            action_id: request.action_id.clone(),
            started_at_ms: wall_ms(),
            pid: None,
            input,
            outputs: [Some(stdout), Some(stderr)],
            channels: Vec::new(),
            timeout,
            end_tree: request.end_tree,
            tree_kill: None,
            signals_sent: 0,
            early_signals: 0,
            oom_kills_before: oom_kills(self.oom_file.as_ref()),
            group: Group::Used,
            first_end: None,
            failure: None,
            outcome: None,
            expires: None,
            acknowledged: false,
            expired: false,
        };
        self.commands.insert(number, command);
        self.runner.submit(packet);
        Ok(())
    }
}

/// Which end of a pipe is ours.
enum End {
    Read,
    Write,
}

/// A pipe whose end of ours never blocks; gives our end first.
///
/// Its mode lets a program open it again by name, as in `> /dev/stderr`, whatever its ids.
fn pipe(ours: End) -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fchmod(&read, Mode::from_raw_mode(0o666))?;
    let (ours, theirs) = match ours {
        End::Read => (read, write),
        End::Write => (write, read),
    };
    let flags = rustix::fs::fcntl_getfl(&ours)?;
    rustix::fs::fcntl_setfl(&ours, flags | OFlags::NONBLOCK)?;
    Ok((ours, theirs))
}

/// What of a request can be known to be wrong before anything is started.
fn check(request: &Exec, argv: &[String], env: &BTreeMap<String, String>) -> Result<(), Failure> {
    let invalid = |message: &str| Err(Failure::new(ErrorCode::Invalid, message));
    let too_large = |message: &str| Err(Failure::new(ErrorCode::TooLarge, message));
    if request.action_id.is_empty() || request.action_id.len() > ACTION_ID_BYTES_MAX {
        return invalid("actionId must have 1 to 256 bytes");
    }
    if argv.is_empty() || argv.len() > ARGUMENTS_MAX || env.len() > ARGUMENTS_MAX {
        return invalid("argv must have 1 to 4,096 strings, env at most 4,096");
    }
    if !request.cwd.starts_with('/') || request.cwd.contains('\0') {
        return invalid("cwd must be an absolute path");
    }
    let names = || env.keys();
    if names().any(|name| name.is_empty() || name.contains('=')) {
        return invalid("a name in env is empty or holds =");
    }
    let pairs = || env.iter().map(|(name, value)| name.len() + 1 + value.len());
    let has_nul = |text: &String| text.contains('\0');
    if argv.iter().chain(names()).chain(env.values()).any(has_nul) {
        return invalid("argv or env holds a NUL byte");
    }
    let sizes = || argv.iter().map(String::len).chain(pairs());
    if sizes().any(|size| size > STRING_BYTES_MAX) {
        return too_large(
            "an argument or variable is over 131,071 bytes, the kernel's bound for one; put it in a file or on stdin",
        );
    }
    if sizes().map(|size| size + 1).sum::<usize>() > ALL_BYTES_MAX {
        return too_large("argv and env are over 2 MiB together, the kernel's bound");
    }
    Ok(())
}
