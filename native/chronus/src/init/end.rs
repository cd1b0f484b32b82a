//! Ends of commands: what is left of them, and their outcomes.

use std::os::fd::AsFd;

use rustix::event::epoll::EventFlags;

use super::Init;
use super::command::{Command, FirstEnd, Group};
use super::group::{is_populated, oom_kills};
use super::output::{CommandNumber, Source};
use super::poll::Token;
use super::timers::Timer;
use crate::protocol::{Cause, Event, Outcome, StreamCount};

const SIGKILL: i32 = 9;
/// What a shell exits with when its last program was killed.
const EXIT_OF_KILLED: i32 = 128 + SIGKILL;
/// Output of an ended command is kept for so long.
const OUTPUT_KEPT_MS: u64 = 600_000;
/// Killed processes are waited for so long before the end is reported without them.
const VANISH_MS: u64 = 5_000;

impl Init {
    /// The first process of a command has ended.
    pub(super) fn on_first_end(&mut self, number: CommandNumber, first_end: FirstEnd) {
        let Some(command) = self.commands.get_mut(number) else {
            return;
        };
        command.pid = None;
        command.first_end = Some(first_end);
        if let Some(deadline) = command.timeout.take() {
            self.timers.remove(deadline, Timer::Timeout(number));
        }
        let id = command.id.clone();
        self.close_input(number);
        if self.groups.remove(&id) {
            if let Some(command) = self.commands.get_mut(number) {
                command.group = Group::Gone;
            }
            return self.finish(number, false);
        }
        self.end_with_left_over(number, &id);
    }

    fn end_with_left_over(&mut self, number: CommandNumber, id: &str) {
        let Some(command) = self.commands.get_mut(number) else {
            return;
        };
        let waits = command.end_tree || command.tree_kill.is_some();
        match self.groups.events(id) {
            Ok(events) => {
                let token = Token::Group(number);
                // Unwatched, the group is looked at again when it is killed, and at the end of the sandbox.
                let _ = self.poll.add(events.as_fd(), token, EventFlags::PRI);
                command.group = Group::LeftOver(events);
            }
            Err(_) => command.group = Group::Gone,
        }
        if waits {
            self.groups.kill(id);
            self.timers.set_in(VANISH_MS, Timer::Vanish(number));
        } else {
            self.finish(number, true);
        }
        self.check_group(number);
    }

    /// Looks whether the left-over processes of a command are gone.
    pub(super) fn check_group(&mut self, number: CommandNumber) {
        let Some(command) = self.commands.get_mut(number) else {
            return;
        };
        if let Group::LeftOver(events) = &command.group {
            if is_populated(events.as_fd()) {
                return;
            }
            let id = command.id.clone();
            if !self.groups.remove(&id) {
                return;
            }
            command.group = Group::Gone;
        }
        if command.outcome.is_none() {
            self.finish(number, false);
        } else {
            self.drain_outputs(number);
            self.close_outputs(number);
            self.forget_if_done(number);
        }
    }

    /// The killed processes are still there, in an uninterruptible wait: the end is reported, and says so.
    pub(super) fn on_not_vanished(&mut self, number: CommandNumber) {
        let waits = self.commands.get(number).is_some_and(|command| {
            command.outcome.is_none() && matches!(command.group, Group::LeftOver(_))
        });
        if waits {
            self.finish(number, true);
        }
    }

    /// Kills all processes of a command, those that left its session included.
    pub(super) fn kill_tree(&mut self, number: CommandNumber, cause: Cause) {
        let Some(command) = self.commands.get_mut(number) else {
            return;
        };
        if matches!(command.group, Group::Gone) {
            return;
        }
        if command.first_end.is_none() {
            command.tree_kill.get_or_insert(cause);
        }
        let id = command.id.clone();
        self.groups.kill(&id);
    }

    pub(super) fn on_timeout(&mut self, number: CommandNumber) {
        if let Some(command) = self.commands.get_mut(number) {
            command.timeout = None;
        }
        self.kill_tree(number, Cause::Timeout);
    }

    /// Makes the outcome from what is known now, stores and reports it.
    fn finish(&mut self, number: CommandNumber, left_running: bool) {
        self.drain_outputs(number);
        let counts = Source::BOTH.map(|source| self.store.count(number, source));
        let oom_kills = oom_kills(self.oom_file.as_ref());
        let Some(command) = self.commands.get_mut(number) else {
            return;
        };
        let Some(outcome) = outcome_of(command, oom_kills, counts, left_running) else {
            return;
        };
        command.outcome = Some(outcome.clone());
        command.expires = Some(self.timers.set_in(OUTPUT_KEPT_MS, Timer::Expire(number)));
        let is_gone = matches!(command.group, Group::Gone);
        if is_gone {
            self.close_outputs(number);
        }
        self.store.end(number);
        if let Some(connection) = self.peers.current() {
            connection.event(&Event::CommandEnded { outcome });
        }
        self.mark_readers(number);
        for (forgotten, command) in self.commands.ended(number) {
            self.store.forget(forgotten);
            if let Some(deadline) = command.expires {
                self.timers.remove(deadline, Timer::Expire(forgotten));
            }
        }
    }

    fn close_outputs(&mut self, number: CommandNumber) {
        if let Some(command) = self.commands.get_mut(number) {
            command.outputs = [None, None];
        }
        self.mark_readers(number);
    }

    pub(super) fn expire(&mut self, number: CommandNumber) {
        self.store.expire(number);
        if let Some(command) = self.commands.get_mut(number) {
            command.expired = true;
            command.expires = None;
        }
        self.forget_if_done(number);
    }

    /// Forgets a command that the edge has the outcome of and whose output has expired.
    pub(super) fn forget_if_done(&mut self, number: CommandNumber) {
        let done = self
            .commands
            .get(number)
            .is_some_and(|command| command.acknowledged && command.expired && command.is_idle());
        if done {
            self.commands.forget(number);
            self.store.forget(number);
        }
    }
}

fn outcome_of(
    command: &Command,
    oom_kills: u64,
    [stdout, stderr]: [StreamCount; 2],
    left_running: bool,
) -> Option<Outcome> {
    let end = command.first_end?;
    let failed = command.failure.is_some();
    Some(Outcome {
        command_id: command.id.clone(),
        action_id: command.action_id.clone(),
        // The exit code of a process that never ran its program is not the program's.
        exit_code: end.exit_code.filter(|_| !failed),
        signal: end.signal.filter(|_| !failed),
        cause: cause_of(command, end, oom_kills > command.oom_kills_before),
        message: command.failure.as_ref().map(|(_, text)| text.clone()),
        started_at_ms: command.started_at_ms,
        ended_at_ms: end.ended_at_ms,
        cpu_ms: end.cpu_ms,
        peak_memory_bytes: end.peak_memory_bytes,
        stdout,
        stderr,
        left_running,
    })
}

fn cause_of(command: &Command, end: FirstEnd, oom_rose: bool) -> Cause {
    if let Some((cause, _)) = command.failure {
        return cause;
    }
    let killed = end.signal == Some(SIGKILL);
    if let (true, Some(cause)) = (killed, command.tree_kill) {
        return cause;
    }
    if oom_rose && (killed || end.exit_code == Some(EXIT_OF_KILLED)) {
        return Cause::Oom;
    }
    match end.signal {
        Some(signal) if command.signals_sent & (1 << signal.min(31)) != 0 => Cause::Killed,
        Some(_) => Cause::Signal,
        None => Cause::Exit,
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, Command, FirstEnd, Group, cause_of};

    fn command() -> Command {
        Command {
            id: String::new(),
            action_id: String::new(),
            started_at_ms: 0,
            pid: None,
            input: None,
            outputs: [None, None],
            channels: Vec::new(),
            timeout: None,
            end_tree: false,
            tree_kill: None,
            signals_sent: 0,
            early_signals: 0,
            oom_kills_before: 0,
            group: Group::Gone,
            first_end: None,
            failure: None,
            outcome: None,
            expires: None,
            acknowledged: false,
            expired: false,
        }
    }

    fn end(exit_code: Option<i32>, signal: Option<i32>) -> FirstEnd {
        FirstEnd {
            exit_code,
            signal,
            cpu_ms: 0,
            peak_memory_bytes: None,
            ended_at_ms: 0,
        }
    }

    #[test]
    fn causes_are_told_apart() {
        let plain = command();
        let timed_out = Command {
            tree_kill: Some(Cause::Timeout),
            ..command()
        };
        let terminated = Command {
            signals_sent: 1 << 15,
            ..command()
        };
        let cases = [
            (&plain, end(Some(0), None), true, Cause::Exit),
            (&plain, end(None, Some(11)), true, Cause::Signal),
            (&plain, end(None, Some(9)), false, Cause::Signal),
            (&plain, end(None, Some(9)), true, Cause::Oom),
            (&plain, end(Some(137), None), true, Cause::Oom),
            (&plain, end(Some(137), None), false, Cause::Exit),
            (&timed_out, end(None, Some(9)), true, Cause::Timeout),
            (&timed_out, end(Some(0), None), false, Cause::Exit),
            (&terminated, end(None, Some(15)), false, Cause::Killed),
            (&terminated, end(None, Some(9)), false, Cause::Signal),
        ];
        for (command, end, oom, cause) in cases {
            assert_eq!(cause_of(command, end, oom), cause, "{end:?}");
        }
    }
}
