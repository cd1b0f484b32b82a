//! Init's side of a file operation: it carries content between the edge and the helper, and watches over its progress.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::message::{MESSAGE_BYTES_MAX, Message};
use crate::connection::to_json;
use crate::frame::Stream;
use crate::init::channels::{Pumped, Use};
use crate::init::group::send_signal;
use crate::init::poll::Token;
use crate::init::runner::wire::{FileLaunch, Launch, Packet};
use crate::init::timers::Timer;
use crate::init::{Init, Owner};
use crate::protocol::{Empty, End, ErrorCode, Failure};

const OPERATIONS_MAX: usize = 256;
/// A helper that makes no progress for so long is killed.
const PROGRESS_MS: u64 = 60_000;
const SIGKILL: i32 = 9;

/// One file operation that runs.
#[derive(Debug)]
pub struct Operation {
    /// The channel that asked for it, until that is ended or lost.
    channel: Option<u32>,
    socket: OwnedFd,
    pub(in crate::init) forked: bool,
    pub(in crate::init) pid: Option<i32>,
    /// Content comes from the edge.
    writes: bool,
    sends_content: bool,
    /// Messages that the helper has not taken.
    outbox: VecDeque<Vec<u8>>,
    /// The edge has sent everything.
    complete: bool,
    /// Content that the edge has no credit for.
    inbox: Vec<u8>,
    progress_at_ms: u64,
}

impl Init {
    pub(in crate::init) fn open_file(&mut self, channel: u32, launch: FileLaunch) {
        if self.operations.len() >= OPERATIONS_MAX {
            return self.end_error(channel, ErrorCode::TooMany, "too many file operations run");
        }
        let result = self.start_operation(channel, launch);
        if let Err(error) = result {
            let message = format!("cannot start a file operation: {error}");
            self.end_error(channel, ErrorCode::Internal, &message);
        }
    }

    fn start_operation(&mut self, channel: u32, launch: FileLaunch) -> std::io::Result<()> {
        self.ensure_runner()?;
        let (socket, helper) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        self.last_operation += 1;
        let id = self.last_operation;
        let writes = matches!(launch, FileLaunch::Write(_));
        let sends_content = matches!(launch, FileLaunch::Read(_) | FileLaunch::List(_));
        let number = Owner::File(id).launch();
        let packet = Packet::new(number, &Launch::File(launch), vec![helper])?;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        self.poll.add(&socket, Token::File(id), flags)?;
        let operation = Operation {
            channel: Some(channel),
            socket,
            forked: false,
            pid: None,
            writes,
            sends_content,
            outbox: VecDeque::new(),
            complete: false,
            inbox: Vec::new(),
            progress_at_ms: self.timers.now_ms(),
        };
        self.operations.insert(id, operation);
        self.uses.insert(channel, Use::File(id));
        self.timers.set_in(PROGRESS_MS, Timer::File(id));
        self.runner.submit(packet);
        Ok(())
    }

    pub(in crate::init) fn on_file_socket(&mut self, id: u64) {
        self.write_to_helper(id);
        match self.operations.get(&id).map(|operation| operation.channel) {
            Some(Some(channel)) => self.mark_ready(channel),
            Some(None) => while self.pump_file(id) == Pumped::More {},
            None => {}
        }
    }

    /// Content from the edge for a writing helper.
    pub(in crate::init) fn push_content(&mut self, id: u64, bytes: Vec<u8>) {
        let Some(operation) = self.operations.get_mut(&id) else {
            return;
        };
        for chunk in bytes.chunks(MESSAGE_BYTES_MAX - 1) {
            operation
                .outbox
                .push_back(Message::Data(chunk.to_vec()).encode());
        }
        self.write_to_helper(id);
    }

    pub(in crate::init) fn complete_content(&mut self, id: u64) {
        if let Some(operation) = self.operations.get_mut(&id) {
            operation.complete = true;
            operation.outbox.push_back(Message::Eof.encode());
            self.write_to_helper(id);
        }
    }

    fn write_to_helper(&mut self, id: u64) {
        let Some(operation) = self.operations.get_mut(&id) else {
            return;
        };
        let mut used = 0;
        while let Some(message) = operation.outbox.front() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(&operation.socket, message, flags) {
                Ok(_) => {
                    operation.progress_at_ms = self.timers.now_ms();
                    used += message.len() - 1;
                    operation.outbox.pop_front();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // The helper has ended; why is in what it sent before, or in its end.
                Err(_) => {
                    used += operation
                        .outbox
                        .drain(..)
                        .map(|one| one.len() - 1)
                        .sum::<usize>();
                }
            }
        }
        if let Some(channel) = operation.channel {
            self.consumed(channel, used);
        }
    }

    /// Takes one message of the helper, and sends content as far as there is credit.
    pub(in crate::init) fn pump_file(&mut self, id: u64) -> Pumped {
        let Some(operation) = self.operations.get_mut(&id) else {
            return Pumped::Waits;
        };
        if !operation.inbox.is_empty() && !self.send_content(id) {
            return self.when_not_all_sent(id);
        }
        let Some(operation) = self.operations.get_mut(&id) else {
            return Pumped::Waits;
        };
        let mut buffer = [0; MESSAGE_BYTES_MAX];
        match rustix::net::recv(&operation.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((count, _)) => {
                operation.progress_at_ms = self.timers.now_ms();
                self.take_message(id, Message::decode(&buffer[..count]))
            }
            Err(Errno::AGAIN) => Pumped::Waits,
            // RESET: the helper left content unread. What it sent before is still there.
            Err(Errno::INTR | Errno::CONNRESET) => Pumped::More,
            Err(_) => self.take_message(id, None),
        }
    }

    fn take_message(&mut self, id: u64, message: Option<Message>) -> Pumped {
        let Some(operation) = self.operations.get_mut(&id) else {
            return Pumped::Waits;
        };
        let channel = operation.channel;
        match message {
            Some(Message::Accept(json)) => {
                if let (Some(channel), Some(connection)) = (channel, self.peers.current()) {
                    connection.accept_json(channel, json);
                }
                Pumped::More
            }
            Some(Message::Data(bytes)) => {
                if channel.is_some() {
                    operation.inbox = bytes;
                    self.send_content(id);
                }
                Pumped::More
            }
            Some(Message::End(json)) => {
                self.end_operation(id, json);
                Pumped::Waits
            }
            // The end of the socket without an END: the helper was killed.
            _ => {
                let text = "the process of the file operation was killed";
                let failure = Failure::new(ErrorCode::AgentKilled, text);
                self.end_operation(id, to_json(&End::<Empty>::Error(failure)));
                Pumped::Waits
            }
        }
    }

    /// Sends what waits for credit; true when nothing is left.
    fn send_content(&mut self, id: u64) -> bool {
        let Some(operation) = self.operations.get_mut(&id) else {
            return true;
        };
        let (Some(channel), Some(connection)) = (operation.channel, self.peers.current()) else {
            operation.inbox.clear();
            return true;
        };
        let count = connection.sendable(channel).min(operation.inbox.len());
        let rest = operation.inbox.split_off(count);
        connection.send_data(channel, Stream::Output, &operation.inbox);
        operation.inbox = rest;
        operation.inbox.is_empty()
    }

    /// Without credit, CREDIT brings the channel back; without room in the queue, it stays in turn.
    fn when_not_all_sent(&mut self, id: u64) -> Pumped {
        let channel = self
            .operations
            .get(&id)
            .and_then(|operation| operation.channel);
        match (channel, self.peers.current()) {
            (Some(channel), Some(connection)) if connection.credit(channel) > 0 => Pumped::More,
            _ => Pumped::Waits,
        }
    }

    fn end_operation(&mut self, id: u64, json: Vec<u8>) {
        let Some(operation) = self.operations.remove(&id) else {
            return;
        };
        let Some(channel) = operation.channel else {
            return;
        };
        self.uses.remove(&channel);
        if let Some(connection) = self.peers.current() {
            if operation.sends_content {
                connection.send_eof(channel, Stream::Output);
            }
            connection.end_json(channel, json);
        }
    }

    /// The edge gives the operation up; its END follows when the helper has cleaned up.
    pub(in crate::init) fn cancel_file(&mut self, id: u64) {
        let Some(operation) = self.operations.get_mut(&id) else {
            return;
        };
        if operation.writes {
            operation.outbox.clear();
            operation.outbox.push_back(Message::Cancel.encode());
            self.write_to_helper(id);
        } else {
            self.kill_operation(id, ErrorCode::Cancelled, "given up");
        }
    }

    /// The channel is ended or lost: a write is given up, anything else ends at once.
    pub(in crate::init) fn abandon_file(&mut self, id: u64) {
        self.cancel_file(id);
        if let Some(operation) = self.operations.get_mut(&id) {
            operation.channel = None;
        }
        while self.pump_file(id) == Pumped::More {}
    }

    pub(in crate::init) fn file_not_forked(&mut self, id: u64, text: &str) {
        let failure = Failure::new(ErrorCode::Busy, text);
        self.end_operation(id, to_json(&End::<Empty>::Error(failure)));
    }

    /// Kills a helper that has made no progress although it was its turn.
    pub(in crate::init) fn check_progress(&mut self, id: u64) {
        let now = self.timers.now_ms();
        let Some(operation) = self.operations.get_mut(&id) else {
            return;
        };
        let edge_writes = operation.writes && operation.outbox.is_empty() && !operation.complete;
        let waits_for_edge = edge_writes || !operation.inbox.is_empty();
        if waits_for_edge && operation.channel.is_some() {
            operation.progress_at_ms = now;
        }
        let idle = now.saturating_sub(operation.progress_at_ms);
        if idle >= PROGRESS_MS {
            let text = "the file operation made no progress for 60 s";
            self.kill_operation(id, ErrorCode::Deadline, text);
        } else {
            self.timers.set_in(PROGRESS_MS - idle, Timer::File(id));
        }
    }

    fn kill_operation(&mut self, id: u64, code: ErrorCode, text: &str) {
        let pid = self.operations.get(&id).and_then(|operation| operation.pid);
        if let Some(pid) = pid {
            send_signal(pid, SIGKILL);
        }
        self.end_operation(id, to_json(&End::<Empty>::Error(Failure::new(code, text))));
    }
}
