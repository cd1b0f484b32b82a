//! What the edge asks for.

use super::Init;
use super::channels::{Reader, Use};
use super::group::send_signal;
use super::runner::wire::FileLaunch;
use crate::connection::{Incoming, parse, to_json};
use crate::frame::{DATA_BYTES_MAX, Stream};
use crate::protocol::{
    Acknowledge, Attach, Cause, CommandsAnswer, Empty, ErrorCode, ExecAccepted, InitRequest, Signal,
};

/// Room that a `commands` answer may take of a frame.
const COMMANDS_BYTES_MAX: usize = DATA_BYTES_MAX - 1024;
const SIGKILL: i32 = 9;

impl Init {
    pub(super) fn handle(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Hello(_) => {}
            Incoming::Open { channel, payload } => match parse::<InitRequest>(&payload) {
                Ok(request) => self.open(channel, request),
                Err(failure) => self.end_failure(channel, &failure),
            },
            Incoming::Data {
                channel,
                stream,
                bytes,
            } => self.take_data(channel, stream, bytes),
            Incoming::Eof { channel, stream } => self.take_eof(channel, stream),
            Incoming::Cancel { channel } => self.cancel(channel),
            Incoming::Credit { channel } => self.mark_ready(channel),
            Incoming::Accept { channel, .. } => self.service_accepted(channel),
            Incoming::End { channel, .. } => self.release(channel),
        }
    }

    fn open(&mut self, channel: u32, request: InitRequest) {
        match request {
            InitRequest::Exec(request) => self.exec(channel, *request),
            InitRequest::Attach(request) => self.attach(channel, &request),
            InitRequest::Commands {} => self.list_commands(channel),
            InitRequest::Acknowledge(request) => self.acknowledge(channel, &request),
            InitRequest::Signal(request) => self.signal(channel, &request),
            InitRequest::FileRead(request) => self.open_file(channel, FileLaunch::Read(request)),
            InitRequest::FileWrite(request) => self.open_file(channel, FileLaunch::Write(request)),
            InitRequest::FileList(request) => self.open_file(channel, FileLaunch::List(request)),
            InitRequest::FileStat(request) => self.open_file(channel, FileLaunch::Stat(request)),
            InitRequest::FileRemove(request) => {
                self.open_file(channel, FileLaunch::Remove(request));
            }
            InitRequest::FileMkdir(request) => self.open_file(channel, FileLaunch::Mkdir(request)),
            InitRequest::Shutdown {} => self.shut_down(channel),
        }
    }

    fn take_data(&mut self, channel: u32, stream: Stream, bytes: Vec<u8>) {
        match (self.uses.get_mut(&channel), stream) {
            (Some(Use::Collecting(_)), Stream::Input) => self.collect(channel, &bytes),
            (Some(Use::Reader(reader)), Stream::Input) => {
                let number = reader.command;
                self.push_input(number, channel, bytes);
            }
            (Some(Use::File(id)), Stream::Input) => {
                let id = *id;
                self.push_content(id, bytes);
            }
            (Some(Use::Service(id)), Stream::Output) => {
                let id = *id;
                self.push_to_service(id, bytes);
            }
            // Nobody wants these bytes.
            _ => self.consumed(channel, bytes.len()),
        }
    }

    fn take_eof(&mut self, channel: u32, stream: Stream) {
        match (self.uses.get_mut(&channel), stream) {
            (Some(Use::Collecting(_)), Stream::Input) => self.collected(channel),
            (Some(Use::Reader(reader)), Stream::Input) => {
                let number = reader.command;
                self.complete_input(number);
            }
            (Some(Use::File(id)), Stream::Input) => {
                let id = *id;
                self.complete_content(id);
            }
            (Some(Use::Service(id)), Stream::Output) => {
                let id = *id;
                self.complete_service(id);
            }
            _ => {}
        }
    }

    fn cancel(&mut self, channel: u32) {
        match self.uses.get(&channel) {
            Some(Use::File(id)) => {
                let id = *id;
                self.cancel_file(id);
            }
            _ => self.end_error(channel, ErrorCode::Cancelled, "given up"),
        }
    }

    fn attach(&mut self, channel: u32, request: &Attach) {
        match self.commands.by_id(&request.command_id) {
            Some(number) => {
                let offsets = [request.stdout_offset, request.stderr_offset];
                self.attach_reader(channel, number, offsets, true);
            }
            None => self.end_error(channel, ErrorCode::NotFound, "no such command"),
        }
    }

    /// Accepts a channel as a reader of a command's output.
    pub(super) fn attach_reader(
        &mut self,
        channel: u32,
        number: u64,
        offsets: [u64; 2],
        replay: bool,
    ) {
        let Some(command) = self.commands.get_mut(number) else {
            return;
        };
        command.channels.push(channel);
        let accepted = ExecAccepted {
            command_id: command.id.clone(),
            replay,
        };
        let reader = Reader {
            command: number,
            offsets,
            eof_sent: [false; 2],
            queued: false,
        };
        self.uses.insert(channel, Use::Reader(reader));
        if let Some(connection) = self.peers.current() {
            connection.accept(channel, &accepted);
        }
        self.mark_ready(channel);
    }

    /// Lists what runs and what ended without the edge's acknowledgement, newest first as far as a frame has room.
    fn list_commands(&mut self, channel: u32) {
        let mut commands = Vec::new();
        let mut room = COMMANDS_BYTES_MAX;
        for number in self.commands.numbers().into_iter().rev() {
            let Some(command) = self.commands.get(number) else {
                continue;
            };
            if command.acknowledged {
                continue;
            }
            let entry = command.entry();
            let bytes = to_json(&entry).len() + 1;
            if bytes > room {
                break;
            }
            room -= bytes;
            commands.push(entry);
        }
        commands.reverse();
        if let Some(connection) = self.peers.current() {
            connection.end_ok(channel, &CommandsAnswer { commands });
        }
    }

    fn acknowledge(&mut self, channel: u32, request: &Acknowledge) {
        for id in &request.command_ids {
            let Some(number) = self.commands.by_id(id) else {
                continue;
            };
            if let Some(command) = self.commands.get_mut(number)
                && command.outcome.is_some()
            {
                command.acknowledged = true;
            }
            self.forget_if_done(number);
        }
        self.end_empty(channel);
    }

    fn signal(&mut self, channel: u32, request: &Signal) {
        if !(1..=31).contains(&request.signal) {
            return self.end_error(channel, ErrorCode::Invalid, "not a signal from 1 to 31");
        }
        let Some(number) = self.commands.by_id(&request.command_id) else {
            return self.end_error(channel, ErrorCode::NotFound, "no such command");
        };
        if request.tree && request.signal == SIGKILL {
            self.kill_tree(number, Cause::Killed);
            return self.end_empty(channel);
        }
        let Some(command) = self.commands.get_mut(number) else {
            return;
        };
        if command.first_end.is_none() {
            command.signals_sent |= 1 << request.signal;
            match command.pid {
                None => command.early_signals |= 1 << request.signal,
                Some(pid) if !request.tree => send_signal(pid, request.signal),
                Some(_) => {}
            }
        } else if !request.tree {
            return self.end_error(channel, ErrorCode::NotFound, "the command is not running");
        }
        let id = command.id.clone();
        if request.tree && self.groups.signal(&id, request.signal).is_err() {
            return self.end_error(channel, ErrorCode::NotFound, "nothing of it is running");
        }
        self.end_empty(channel);
    }

    pub(super) fn end_empty(&mut self, channel: u32) {
        if let Some(connection) = self.peers.current() {
            connection.end_ok(channel, &Empty {});
        }
    }
}
