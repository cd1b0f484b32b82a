//! Streams from inside: a process connects to a granted service on the loopback interface, and init carries it to the edge.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::Init;
use super::channels::{Pumped, Use};
use super::poll::{Poll, Token};
use crate::context::Service;
use crate::frame::Stream;
use crate::protocol::StreamRequest;

const STREAMS_MAX: usize = 256;
const CHUNK_BYTES: usize = 65_536;

struct Listener {
    name: String,
    socket: TcpListener,
}

struct ServiceStream {
    channel: u32,
    socket: TcpStream,
    accepted: bool,
    /// Bytes from the edge that the process has not taken.
    queue: VecDeque<Vec<u8>>,
    written: usize,
    /// The edge sends no more.
    complete: bool,
    eof_sent: bool,
}

/// Granted services and the streams to them.
pub(super) struct Services {
    listeners: Vec<Listener>,
    streams: HashMap<u64, ServiceStream>,
    last: u64,
}

impl Services {
    pub(super) fn start(services: &[Service], poll: &Poll) -> io::Result<Self> {
        let mut listeners = Vec::new();
        for (index, service) in (0..).zip(services) {
            let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, service.port))?;
            socket.set_nonblocking(true)?;
            poll.add(&socket, Token::ServiceListener(index), EventFlags::IN)?;
            listeners.push(Listener {
                name: service.name.clone(),
                socket,
            });
        }
        Ok(Self {
            listeners,
            streams: HashMap::new(),
            last: 0,
        })
    }
}

impl Init {
    pub(super) fn accept_service(&mut self, index: u64) {
        loop {
            let listener = usize::try_from(index)
                .ok()
                .and_then(|index| self.services.listeners.get(index));
            let Some(listener) = listener else {
                return;
            };
            match listener.socket.accept() {
                Ok((socket, _)) => {
                    let service = listener.name.clone();
                    self.add_stream(socket, service);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Opens a channel for a connection; without an edge, or with too many streams, the process sees it closed.
    fn add_stream(&mut self, socket: TcpStream, service: String) {
        if self.services.streams.len() >= STREAMS_MAX || socket.set_nonblocking(true).is_err() {
            return;
        }
        self.services.last += 1;
        let id = self.services.last;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if self.poll.add(&socket, Token::Service(id), flags).is_err() {
            return;
        }
        let request = StreamRequest::Stream { service };
        let channel = self
            .peers
            .current()
            .and_then(|connection| connection.open(&request));
        let Some(channel) = channel else {
            return;
        };
        self.uses.insert(channel, Use::Service(id));
        let stream = ServiceStream {
            channel,
            socket,
            accepted: false,
            queue: VecDeque::new(),
            written: 0,
            complete: false,
            eof_sent: false,
        };
        self.services.streams.insert(id, stream);
    }

    pub(super) fn service_accepted(&mut self, channel: u32) {
        if let Some(Use::Service(id)) = self.uses.get(&channel)
            && let Some(stream) = self.services.streams.get_mut(id)
        {
            stream.accepted = true;
            self.mark_ready(channel);
        }
    }

    pub(super) fn on_service_socket(&mut self, id: u64) {
        if let Some(stream) = self.services.streams.get(&id) {
            let channel = stream.channel;
            self.write_to_service(id);
            self.mark_ready(channel);
        }
    }

    /// Sends what the process wrote, as far as there is credit.
    pub(super) fn pump_service(&mut self, id: u64) -> Pumped {
        let (Some(stream), Some(peer)) = (
            self.services.streams.get_mut(&id),
            self.peers.current.as_mut(),
        ) else {
            return Pumped::Waits;
        };
        let connection = &mut peer.connection;
        let room = connection.sendable(stream.channel);
        if !stream.accepted || stream.eof_sent || room == 0 {
            return Pumped::Waits;
        }
        let mut buffer = [0; CHUNK_BYTES];
        let room = room.min(CHUNK_BYTES);
        match rustix::io::read(&stream.socket, &mut buffer[..room]) {
            Ok(0) => {
                stream.eof_sent = true;
                connection.send_eof(stream.channel, Stream::Input);
                Pumped::Waits
            }
            Ok(count) => {
                connection.send_data(stream.channel, Stream::Input, &buffer[..count]);
                Pumped::More
            }
            Err(Errno::AGAIN) => Pumped::Waits,
            Err(Errno::INTR) => Pumped::More,
            Err(_) => {
                connection.cancel(stream.channel);
                stream.eof_sent = true;
                Pumped::Waits
            }
        }
    }

    pub(super) fn push_to_service(&mut self, id: u64, bytes: Vec<u8>) {
        if let Some(stream) = self.services.streams.get_mut(&id) {
            stream.queue.push_back(bytes);
            self.write_to_service(id);
        }
    }

    pub(super) fn complete_service(&mut self, id: u64) {
        if let Some(stream) = self.services.streams.get_mut(&id) {
            stream.complete = true;
            self.write_to_service(id);
        }
    }

    fn write_to_service(&mut self, id: u64) {
        let Some(stream) = self.services.streams.get_mut(&id) else {
            return;
        };
        let channel = stream.channel;
        let mut used = 0;
        while let Some(bytes) = stream.queue.front() {
            let rest = &bytes[stream.written..];
            match rustix::net::send(
                stream.socket.as_fd(),
                rest,
                rustix::net::SendFlags::NOSIGNAL,
            ) {
                Ok(count) => {
                    used += count;
                    stream.written += count;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // The process is gone: what the edge still sends goes nowhere.
                Err(_) => {
                    used += rest.len();
                    stream.written = bytes.len();
                }
            }
            if stream.written == bytes.len() {
                stream.queue.pop_front();
                stream.written = 0;
            }
        }
        if stream.complete && stream.queue.is_empty() {
            // A process that closed its end already is past caring.
            let _ = stream.socket.shutdown(Shutdown::Write);
        }
        self.consumed(channel, used);
    }

    /// Closes a stream whose channel is ended or lost.
    pub(super) fn close_service(&mut self, id: u64) {
        self.services.streams.remove(&id);
    }
}
