//! A non-blocking connection to the edge: HELLO, channels, credit and a bounded queue of what is to be sent.
//!
//! The owner polls [`Connection::fd`] for [`Connection::wants_read`] and [`Connection::wants_write`], calls
//! [`Connection::receive`] and [`Connection::flush`], and takes what arrived with [`Connection::next_incoming`].
//! Any error ends the connection: the owner drops it.

mod channel;
mod ended;

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use ended::Ended;

use channel::{Channel, stream_bit};

use crate::frame::{Body, DATA_BYTES_MAX, Decoder, Frame, PAYLOAD_BYTES_MAX, Stream, Violation};
use crate::frame::{encode, encode_data};
use crate::protocol::{Empty, End, ErrorCode, Failure, Hello, PROTOCOL_VERSION};

/// Credit that each direction of a channel starts with, in bytes.
pub const CREDIT_INITIAL: u32 = 262_144;
/// Most credit that may be outstanding in one direction of a channel.
pub const CREDIT_MAX: u32 = 16 * 1024 * 1024;
/// Most channels open at once.
pub const CHANNELS_MAX: usize = 4096;
/// DATA is queued up to here; its source waits beyond.
const QUEUE_DATA_MAX: usize = 1024 * 1024;
/// Nothing more is read from a peer that leaves this much unread.
const QUEUE_READ_MAX: usize = 2 * 1024 * 1024;
/// A peer that leaves this much unread is given up.
const QUEUE_MAX: usize = 16 * 1024 * 1024;
/// Bytes of one DATA frame that this side sends.
const DATA_CHUNK: usize = 65_536;
/// Consumed bytes are given back as credit in steps of at least this many.
const CREDIT_STEP: u32 = 65_536;

/// What the edge sent, checked against the rules of channels and credit. PING and CREDIT are handled inside.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// The first thing on every connection.
    Hello(Hello),
    /// The edge opened a channel. The owner ends it once, with [`Connection::end_ok`] or [`Connection::end_error`].
    Open {
        channel: u32,
        payload: Vec<u8>,
    },
    /// The edge accepted a channel of ours.
    Accept {
        channel: u32,
        payload: Vec<u8>,
    },
    /// The edge ended a channel of ours.
    End {
        channel: u32,
        payload: Vec<u8>,
    },
    Cancel {
        channel: u32,
    },
    /// The owner calls [`Connection::consumed`] once it has used the bytes.
    Data {
        channel: u32,
        stream: Stream,
        bytes: Vec<u8>,
    },
    Eof {
        channel: u32,
        stream: Stream,
    },
    /// [`Connection::sendable`] of the channel grew.
    Credit {
        channel: u32,
    },
}

/// One connection of the edge to this process.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    decoder: Decoder,
    queue: Vec<u8>,
    queue_start: usize,
    channels: HashMap<u32, Channel>,
    last_of_peer: u32,
    last_of_us: u32,
    greeted: bool,
}

impl Connection {
    /// Takes a connected stream socket in non-blocking mode and queues our HELLO.
    pub fn new(socket: OwnedFd, hello: &Hello) -> Self {
        let mut connection = Self {
            socket,
            decoder: Decoder::default(),
            queue: Vec::new(),
            queue_start: 0,
            channels: HashMap::new(),
            last_of_peer: 0,
            last_of_us: 0,
            greeted: false,
        };
        connection.send(0, Body::Hello(to_json(hello)));
        connection
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// False while the peer leaves too much of what we queued unread.
    pub fn wants_read(&self) -> bool {
        self.queued() < QUEUE_READ_MAX
    }

    pub fn wants_write(&self) -> bool {
        self.queued() > 0
    }

    /// True once the peer's HELLO arrived.
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Reads once. Then take everything with [`Connection::next_incoming`].
    pub fn receive(&mut self) -> Result<(), Ended> {
        match self.decoder.read_from(self.socket.as_fd()) {
            Ok(0) => Err(Ended::Closed),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(Ended::Io(errno.into())),
        }
    }

    /// Writes as much of the queue as the socket takes.
    pub fn flush(&mut self) -> Result<(), Ended> {
        if self.queued() > QUEUE_MAX {
            return Err(Ended::Overflow);
        }
        while self.queued() > 0 {
            let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
            match rustix::net::send(&self.socket, &self.queue[self.queue_start..], flags) {
                Ok(count) => self.queue_start += count,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Ended::Closed),
                Err(errno) => return Err(Ended::Io(errno.into())),
            }
        }
        self.compact();
        Ok(())
    }

    /// The next thing the peer sent, or `None` until more was received.
    pub fn next_incoming(&mut self) -> Result<Option<Incoming>, Ended> {
        while let Some(frame) = self.decoder.next_frame()? {
            if let Some(incoming) = self.take(frame)? {
                return Ok(Some(incoming));
            }
        }
        Ok(None)
    }

    /// DATA bytes that may be sent on the channel now: within its credit, the queue's room and one frame.
    pub fn sendable(&self, channel: u32) -> usize {
        let room = QUEUE_DATA_MAX.saturating_sub(self.queued());
        let credit = self.credit(channel);
        room.min(credit).min(DATA_CHUNK)
    }

    /// Credit left for DATA on the channel; 0 when it is closed.
    pub fn credit(&self, channel: u32) -> usize {
        let channel = self.channels.get(&channel);
        channel.map_or(0, |channel| channel.send_credit as usize)
    }

    /// Queues DATA. `bytes` must be within [`Connection::sendable`]; of a closed channel they are dropped.
    pub fn send_data(&mut self, channel: u32, stream: Stream, bytes: &[u8]) {
        let Some(state) = self.channels.get_mut(&channel) else {
            return;
        };
        if bytes.is_empty() {
            return;
        }
        let cost = u32::try_from(bytes.len().min(DATA_BYTES_MAX)).unwrap_or(u32::MAX);
        assert!(cost <= state.send_credit, "DATA beyond the peer's credit");
        state.send_credit -= cost;
        encode_data(&mut self.queue, channel, stream, bytes);
    }

    /// Whether more DATA should be queued at all.
    pub fn has_room(&self) -> bool {
        self.queued() < QUEUE_DATA_MAX
    }

    /// Lets the peer use a stream again that it ended: `exec` with `more` ends its input twice.
    pub fn reopen_stream(&mut self, channel: u32, stream: Stream) {
        if let Some(state) = self.channels.get_mut(&channel) {
            state.ended_streams &= !stream_bit(stream);
        }
    }

    pub fn send_eof(&mut self, channel: u32, stream: Stream) {
        self.send_if_open(channel, Body::Eof(stream));
    }

    pub fn send_gap(&mut self, channel: u32, stream: Stream, bytes: u64) {
        self.send_if_open(channel, Body::Gap(stream, bytes));
    }

    pub fn accept(&mut self, channel: u32, answer: &impl Serialize) {
        self.accept_json(channel, to_json(answer));
    }

    /// Accepts with a payload that is JSON already.
    pub fn accept_json(&mut self, channel: u32, json: Vec<u8>) {
        self.send_if_open(channel, Body::Accept(json));
    }

    /// Ends a channel that the peer opened. Does nothing when it is closed already.
    pub fn end_ok(&mut self, channel: u32, answer: &impl Serialize) {
        self.end_json(channel, to_json(&End::Ok(answer)));
    }

    pub fn end_error(&mut self, channel: u32, failure: &Failure) {
        self.end_json(channel, to_json(&End::<Empty>::Error(failure.clone())));
    }

    /// Ends with a payload that is JSON already.
    pub fn end_json(&mut self, channel: u32, json: Vec<u8>) {
        if self.channels.remove(&channel).is_some() {
            self.send(channel, Body::End(json));
        }
    }

    pub fn event(&mut self, event: &impl Serialize) {
        self.send(0, Body::Event(to_json(event)));
    }

    /// Opens a channel of our own; `None` when as many are open as may be.
    pub fn open(&mut self, request: &impl Serialize) -> Option<u32> {
        if self.channels.len() >= CHANNELS_MAX {
            return None;
        }
        self.last_of_us = self.last_of_us.checked_add(2)?;
        self.channels.insert(self.last_of_us, Channel::new(false));
        self.send(self.last_of_us, Body::Open(to_json(request)));
        Some(self.last_of_us)
    }

    /// Gives a channel of our own up; the peer's END still follows.
    pub fn cancel(&mut self, channel: u32) {
        self.send_if_open(channel, Body::Cancel);
    }

    /// Says that received DATA bytes were used: the peer gets them back as credit.
    pub fn consumed(&mut self, channel: u32, bytes: usize) {
        let Some(state) = self.channels.get_mut(&channel) else {
            return;
        };
        state.consumed += u32::try_from(bytes).unwrap_or(u32::MAX);
        if state.consumed >= CREDIT_STEP {
            let credit = std::mem::take(&mut state.consumed);
            state.receive_credit += credit;
            self.send(channel, Body::Credit(credit));
        }
    }

    /// Bytes that wait to be sent.
    pub fn queued(&self) -> usize {
        self.queue.len() - self.queue_start
    }

    fn send_if_open(&mut self, channel: u32, body: Body) {
        if self.channels.contains_key(&channel) {
            self.send(channel, body);
        }
    }

    fn send(&mut self, channel: u32, body: Body) {
        encode(&Frame { channel, body }, &mut self.queue);
    }

    /// Keeps the queue's memory in proportion to what it holds.
    fn compact(&mut self) {
        if self.queued() == 0 {
            self.queue.clear();
            self.queue_start = 0;
            self.queue.shrink_to(4096);
        } else if self.queue_start > QUEUE_DATA_MAX {
            self.queue.drain(..self.queue_start);
            self.queue_start = 0;
        }
    }

    fn take(&mut self, frame: Frame) -> Result<Option<Incoming>, Ended> {
        let channel = frame.channel;
        if !self.greeted {
            return match frame.body {
                Body::Hello(json) => self.greet(&json).map(Some),
                _ => Err(Violation("HELLO must come first").into()),
            };
        }
        match frame.body {
            Body::Ping(bytes) => {
                self.send(0, Body::Pong(bytes));
                Ok(None)
            }
            Body::Open(payload) => Ok(self.take_open(channel, payload)?),
            Body::Hello(_) | Body::Event(_) | Body::Pong(_) | Body::Gap(..) => {
                Err(Violation("a frame that the edge never sends").into())
            }
            body => {
                self.check_known(channel)?;
                Ok(match self.channels.get_mut(&channel) {
                    Some(state) => state.take(channel, body)?,
                    // Sent before the peer saw our END.
                    None => None,
                }
                .inspect(|incoming| {
                    if matches!(incoming, Incoming::End { .. }) {
                        self.channels.remove(&channel);
                    }
                }))
            }
        }
    }

    fn greet(&mut self, json: &[u8]) -> Result<Incoming, Ended> {
        let hello: Hello =
            serde_json::from_slice(json).map_err(|_| Violation("HELLO is not understood"))?;
        if hello.protocol.min > PROTOCOL_VERSION || hello.protocol.max < PROTOCOL_VERSION {
            return Err(Violation("no protocol version in common").into());
        }
        self.greeted = true;
        Ok(Incoming::Hello(hello))
    }

    fn take_open(&mut self, channel: u32, payload: Vec<u8>) -> Result<Option<Incoming>, Violation> {
        if channel.is_multiple_of(2) || channel <= self.last_of_peer {
            return Err(Violation("OPEN of a channel that is not the peer's next"));
        }
        self.last_of_peer = channel;
        let full = self.channels.len() >= CHANNELS_MAX;
        self.channels.insert(channel, Channel::new(true));
        if full {
            let failure = Failure::new(ErrorCode::TooMany, "too many channels are open");
            self.end_error(channel, &failure);
            return Ok(None);
        }
        Ok(Some(Incoming::Open { channel, payload }))
    }

    fn check_known(&self, channel: u32) -> Result<(), Violation> {
        let last = match channel.is_multiple_of(2) {
            true => self.last_of_us,
            false => self.last_of_peer,
        };
        match channel <= last {
            true => Ok(()),
            false => Err(Violation("a channel that was never opened")),
        }
    }
}

/// JSON of a payload of ours, which is within a frame's bound by construction.
pub fn to_json(value: &impl Serialize) -> Vec<u8> {
    // Serialising plain structs with string keys into memory cannot fail.
    let json = serde_json::to_vec(value).unwrap_or_default();
    assert!(json.len() <= PAYLOAD_BYTES_MAX, "payload over its bound");
    json
}

/// Parses a JSON payload of the edge; what is wrong with it is `invalid`.
pub fn parse<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(payload)
        .map_err(|error| Failure::new(ErrorCode::Invalid, format!("not understood: {error}")))
}
