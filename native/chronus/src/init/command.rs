//! Commands: what is known of each, and the table of all.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;

use super::output::{CommandNumber, Source};
use crate::protocol::{Cause, CommandEntry, Outcome};

/// Ended commands that are remembered.
pub(super) const ENDED_MAX: usize = 1024;
/// Commands that may run at once.
pub(super) const RUNNING_MAX: usize = 1024;

/// Input of a command.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) pipe: OwnedFd,
    /// Bytes not yet written, with the channel that gets the credit back.
    pub(super) queue: VecDeque<(u32, Vec<u8>)>,
    /// Bytes of the queue's first entry that are written.
    pub(super) written: usize,
    /// No more will come.
    pub(super) complete: bool,
    pub(super) polled: bool,
}

/// The command's group.
#[derive(Debug)]
pub(super) enum Group {
    /// The first process runs.
    Used,
    /// The first process ended before the others; the descriptor is the group's `cgroup.events`.
    LeftOver(OwnedFd),
    Gone,
}

/// How the first process ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstEnd {
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) cpu_ms: u64,
    pub(super) peak_memory_bytes: Option<u64>,
    pub(super) ended_at_ms: u64,
}

#[derive(Debug)]
pub(super) struct Command {
    pub(super) id: String,
    pub(super) action_id: String,
    pub(super) started_at_ms: u64,
    /// Process id of the first process while it is not reaped.
    pub(super) pid: Option<i32>,
    pub(super) input: Option<Input>,
    /// Ends of stdout and stderr that init reads, until they are closed.
    pub(super) outputs: [Option<OwnedFd>; 2],
    /// Channels that read the output.
    pub(super) channels: Vec<u32>,
    pub(super) timeout: Option<u64>,
    pub(super) end_tree: bool,
    /// Why all processes of the command were killed.
    pub(super) tree_kill: Option<Cause>,
    /// Signals that the edge sent to the first process, one bit each.
    pub(super) signals_sent: u32,
    /// Those of them that came before the process existed.
    pub(super) early_signals: u32,
    pub(super) oom_kills_before: u64,
    pub(super) group: Group,
    pub(super) first_end: Option<FirstEnd>,
    /// Why the program was not run, or why the runner could not say what became of it.
    pub(super) failure: Option<(Cause, String)>,
    pub(super) outcome: Option<Outcome>,
    /// Deadline of the timer that expires its output.
    pub(super) expires: Option<u64>,
    pub(super) acknowledged: bool,
    pub(super) expired: bool,
}

impl Command {
    pub(super) fn output(&mut self, source: Source) -> &mut Option<OwnedFd> {
        match source {
            Source::Stdout => &mut self.outputs[0],
            Source::Stderr => &mut self.outputs[1],
        }
    }

    /// Nothing refers to it any more, so it may be forgotten.
    pub(super) fn is_idle(&self) -> bool {
        self.outcome.is_some() && self.channels.is_empty() && matches!(self.group, Group::Gone)
    }

    pub(super) fn entry(&self) -> CommandEntry {
        CommandEntry {
            command_id: self.id.clone(),
            action_id: self.action_id.clone(),
            running: self.outcome.is_none(),
            started_at_ms: self.started_at_ms,
            outcome: self.outcome.clone(),
        }
    }
}

/// All commands: those that run and the last that ended.
#[derive(Debug, Default)]
pub(super) struct Table {
    commands: HashMap<CommandNumber, Command>,
    by_action: HashMap<String, CommandNumber>,
    /// Oldest first.
    ended: VecDeque<CommandNumber>,
    last: CommandNumber,
    running: usize,
}

impl Table {
    pub(super) fn is_full(&self) -> bool {
        self.running >= RUNNING_MAX
    }

    /// The number of the next command and its id.
    pub(super) fn next_number(&mut self) -> (CommandNumber, String) {
        self.last += 1;
        (self.last, format!("c{:012x}", self.last))
    }

    pub(super) fn insert(&mut self, number: CommandNumber, command: Command) {
        self.by_action.insert(command.action_id.clone(), number);
        self.commands.insert(number, command);
        self.running += 1;
    }

    pub(super) fn get(&self, number: CommandNumber) -> Option<&Command> {
        self.commands.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: CommandNumber) -> Option<&mut Command> {
        self.commands.get_mut(&number)
    }

    pub(super) fn by_action(&self, action_id: &str) -> Option<CommandNumber> {
        self.by_action.get(action_id).copied()
    }

    pub(super) fn by_id(&self, id: &str) -> Option<CommandNumber> {
        let number = CommandNumber::from_str_radix(id.strip_prefix('c')?, 16).ok()?;
        let command = self.commands.get(&number)?;
        (command.id == id).then_some(number)
    }

    /// Marks a command as ended and gives those that are to be forgotten for it.
    pub(super) fn ended(&mut self, number: CommandNumber) -> Vec<(CommandNumber, Command)> {
        self.running = self.running.saturating_sub(1);
        self.ended.push_back(number);
        let mut forgotten = Vec::new();
        // Those that are read or have processes stay; each end looks at a few only.
        for _ in 0..8 {
            if self.ended.len() <= ENDED_MAX {
                break;
            }
            let Some(oldest) = self.ended.pop_front() else {
                break;
            };
            if self.commands.get(&oldest).is_some_and(Command::is_idle) {
                forgotten.extend(self.drop_command(oldest).map(|command| (oldest, command)));
            } else {
                self.ended.push_back(oldest);
            }
        }
        forgotten
    }

    /// Forgets an ended command.
    pub(super) fn forget(&mut self, number: CommandNumber) {
        self.ended.retain(|&other| other != number);
        // Its timer has fired: only commands with expired output are forgotten here.
        drop(self.drop_command(number));
    }

    fn drop_command(&mut self, number: CommandNumber) -> Option<Command> {
        let command = self.commands.remove(&number)?;
        self.by_action.remove(&command.action_id);
        Some(command)
    }

    /// Numbers of all commands, in order of start.
    pub(super) fn numbers(&self) -> Vec<CommandNumber> {
        let mut numbers: Vec<_> = self.commands.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }
}
