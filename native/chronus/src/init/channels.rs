//! What open channels are for, and the pump that sends output fairly within credit.

use super::Init;
use super::exec::Collected;
use super::output::{CommandNumber, Piece, Source};
use crate::connection::Connection;
use crate::frame::Stream;
use crate::protocol::{End, ErrorCode, Failure};

const CHUNK_BYTES: usize = 65_536;

/// What a channel is for.
#[derive(Debug)]
pub(super) enum Use {
    /// Output (and input) of a command.
    Reader(Reader),
    /// An `exec` whose arguments still arrive.
    Collecting(Box<Collected>),
    File(u64),
    Service(u64),
}

/// Where a channel is in the output of a command.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) command: CommandNumber,
    pub(super) offsets: [u64; 2],
    pub(super) eof_sent: [bool; 2],
    /// The channel is in the queue of those that may have something to send.
    pub(super) queued: bool,
}

/// Whether a channel has more to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pumped {
    More,
    /// Nothing until it is marked as ready again.
    Waits,
}

impl Init {
    /// Marks a channel as one that may have something to send.
    pub(super) fn mark_ready(&mut self, channel: u32) {
        if let Some(Use::Reader(reader)) = self.uses.get_mut(&channel) {
            if reader.queued {
                return;
            }
            reader.queued = true;
        }
        self.ready.push_back(channel);
    }

    /// Marks all readers of a command as ready.
    pub(super) fn mark_readers(&mut self, number: CommandNumber) {
        let channels = self
            .commands
            .get(number)
            .map(|command| command.channels.clone());
        for channel in channels.unwrap_or_default() {
            self.mark_ready(channel);
        }
    }

    /// Sends from ready channels in turn while the connection has room.
    pub(super) fn pump(&mut self) {
        while let Some(connection) = self.peers.current() {
            if !connection.has_room() {
                break;
            }
            let Some(channel) = self.ready.pop_front() else {
                break;
            };
            let pumped = match self.uses.get_mut(&channel) {
                Some(Use::Reader(reader)) => {
                    reader.queued = false;
                    self.pump_reader(channel)
                }
                Some(Use::File(id)) => {
                    let id = *id;
                    self.pump_file(id)
                }
                Some(Use::Service(id)) => {
                    let id = *id;
                    self.pump_service(id)
                }
                Some(Use::Collecting(_)) | None => Pumped::Waits,
            };
            if pumped == Pumped::More {
                self.mark_ready(channel);
            }
        }
    }

    fn pump_reader(&mut self, channel: u32) -> Pumped {
        let (Some(connection), Some(Use::Reader(reader))) =
            (self.peers.current.as_mut(), self.uses.get_mut(&channel))
        else {
            return Pumped::Waits;
        };
        let connection = &mut connection.connection;
        let Some(command) = self.commands.get(reader.command) else {
            return Pumped::Waits;
        };
        let mut pumped = Pumped::Waits;
        for (at, source) in Source::BOTH.into_iter().enumerate() {
            if reader.eof_sent[at] {
                continue;
            }
            match send_piece(connection, &mut self.store, channel, reader, source) {
                Sent::Some => pumped = Pumped::More,
                Sent::NoCredit => {}
                Sent::AllThereIs => {
                    if command.outcome.is_some() || command.outputs[at].is_none() {
                        connection.send_eof(channel, stream_of(source));
                        reader.eof_sent[at] = true;
                    }
                }
            }
        }
        if reader.eof_sent == [true, true]
            && let Some(outcome) = &command.outcome
        {
            connection.end_json(channel, crate::connection::to_json(&End::Ok(outcome)));
            self.release(channel);
            return Pumped::Waits;
        }
        pumped
    }

    /// Detaches a channel from what it was for; the channel itself is ended by the caller.
    pub(super) fn release(&mut self, channel: u32) {
        match self.uses.remove(&channel) {
            Some(Use::Reader(reader)) => {
                if let Some(command) = self.commands.get_mut(reader.command) {
                    command.channels.retain(|&other| other != channel);
                }
            }
            Some(Use::File(id)) => self.abandon_file(id),
            Some(Use::Service(id)) => self.close_service(id),
            Some(Use::Collecting(_)) | None => {}
        }
    }

    /// The connection is gone, and with it all its channels. Commands go on.
    pub(super) fn release_channels(&mut self) {
        let channels: Vec<u32> = self.uses.keys().copied().collect();
        for channel in channels {
            self.release(channel);
        }
        self.ready.clear();
    }

    pub(super) fn end_error(&mut self, channel: u32, code: ErrorCode, message: &str) {
        self.end_failure(channel, &Failure::new(code, message));
    }

    pub(super) fn end_failure(&mut self, channel: u32, failure: &Failure) {
        self.release(channel);
        if let Some(connection) = self.peers.current() {
            connection.end_error(channel, failure);
        }
    }

    /// Gives DATA bytes back as credit.
    pub(super) fn consumed(&mut self, channel: u32, bytes: usize) {
        if let Some(connection) = self.peers.current() {
            connection.consumed(channel, bytes);
        }
    }
}

enum Sent {
    Some,
    NoCredit,
    AllThereIs,
}

fn send_piece(
    connection: &mut Connection,
    store: &mut super::OutputStore,
    channel: u32,
    reader: &mut Reader,
    source: Source,
) -> Sent {
    let offset = &mut reader.offsets[match source {
        Source::Stdout => 0,
        Source::Stderr => 1,
    }];
    let mut buffer = [0; CHUNK_BYTES];
    let room = connection.sendable(channel).min(CHUNK_BYTES);
    // One byte tells whether there is something to wait for credit with.
    match store.read(reader.command, source, *offset, &mut buffer[..room.max(1)]) {
        Piece::Bytes(_) if room == 0 => Sent::NoCredit,
        Piece::Bytes(count) => {
            connection.send_data(channel, stream_of(source), &buffer[..count]);
            *offset += count as u64;
            Sent::Some
        }
        Piece::Gap(count) => {
            connection.send_gap(channel, stream_of(source), count);
            *offset += count;
            Sent::Some
        }
        Piece::Nothing => Sent::AllThereIs,
    }
}

fn stream_of(source: Source) -> Stream {
    match source {
        Source::Stdout => Stream::Output,
        Source::Stderr => Stream::ErrorOutput,
    }
}
