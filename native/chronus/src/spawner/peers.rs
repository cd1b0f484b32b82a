//! Connections of the spawner: one is the edge's, the newest that said HELLO.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::net::{SocketFlags, accept_with};
use serde::Serialize;

use super::operation::Caller;
use crate::connection::{Connection, Incoming};
use crate::protocol::{Event, Failure, Hello};

/// Connections that have not yet said HELLO.
const GREETING_MAX: usize = 8;
/// Events kept for the next edge while none is connected; the oldest go first.
const EVENTS_MAX: usize = 4_096;

/// The listening socket and all connections that came to it.
pub struct Peers {
    listener: OwnedFd,
    hello: Hello,
    peers: Vec<Peer>,
    current: Option<u64>,
    next_id: u64,
    /// For the next edge, as none is connected.
    events: VecDeque<Event>,
    /// Given to the current connection, which may break before it sends them.
    unsent: Vec<Event>,
}

struct Peer {
    id: u64,
    connection: Connection,
    broken: bool,
}

impl Peers {
    pub fn new(listener: OwnedFd, hello: Hello) -> Peers {
        Peers {
            listener,
            hello,
            peers: Vec::new(),
            current: None,
            next_id: 0,
            events: VecDeque::new(),
            unsent: Vec::new(),
        }
    }

    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// What to wait for on each connection.
    pub fn interests(&self) -> impl Iterator<Item = (u64, BorrowedFd<'_>, PollFlags)> {
        self.peers.iter().map(|peer| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, peer.connection.wants_read());
            flags.set(PollFlags::OUT, peer.connection.wants_write());
            (peer.id, peer.connection.fd(), flags)
        })
    }

    pub fn has(&self, id: u64) -> bool {
        self.peers.iter().any(|peer| peer.id == id)
    }

    /// Takes one new connection; of those that have not said HELLO, the oldest goes when they are too many.
    pub fn accept(&mut self) -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = match accept_with(&self.listener, flags) {
            Ok(socket) => socket,
            // The peer left in between.
            Err(
                rustix::io::Errno::AGAIN | rustix::io::Errno::CONNABORTED | rustix::io::Errno::INTR,
            ) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let is_greeting = |it: &Peer| !it.connection.is_greeted();
        if self.peers.iter().filter(|it| is_greeting(it)).count() >= GREETING_MAX
            && let Some(oldest) = self.peers.iter().position(is_greeting)
        {
            self.peers.remove(oldest);
        }
        self.next_id += 1;
        self.peers.push(Peer {
            id: self.next_id,
            connection: Connection::new(socket, &self.hello),
            broken: false,
        });
        Ok(())
    }

    /// Reads once from a connection. Then take everything with [`Peers::next_incoming`].
    pub fn receive(&mut self, id: u64) {
        if let Some(peer) = self.find(id) {
            peer.broken |= peer.connection.receive().is_err();
        }
    }

    /// The next thing that a connection brought, HELLO not among them.
    pub fn next_incoming(&mut self, id: u64) -> Option<Incoming> {
        loop {
            let peer = self.find(id)?;
            match peer.connection.next_incoming() {
                Ok(Some(Incoming::Hello(_))) => self.make_current(id),
                Ok(incoming) => return incoming,
                Err(_) => {
                    peer.broken = true;
                    return None;
                }
            }
        }
    }

    /// Ends a channel. An edge that has gone looks for itself what became of its requests.
    pub fn answer<T: Serialize>(&mut self, caller: Caller, result: Result<T, Failure>) {
        let Some(peer) = self.find(caller.connection) else {
            return;
        };
        match result {
            Ok(answer) => peer.connection.end_ok(caller.channel, &answer),
            Err(failure) => peer.connection.end_error(caller.channel, &failure),
        }
    }

    /// Tells the edge, or the next one that comes.
    pub fn tell(&mut self, event: Event) {
        let current = self.current.and_then(|id| self.find(id));
        if let Some(peer) = current.filter(|peer| !peer.broken) {
            peer.connection.event(&event);
            self.unsent.push(event);
        } else {
            self.keep(event);
        }
    }

    /// Sends what is queued, and closes connections that broke.
    pub fn flush(&mut self) {
        for peer in &mut self.peers {
            peer.broken |= peer.connection.flush().is_err();
        }
        self.peers.retain(|peer| !peer.broken);
        self.current = self.current.filter(|&id| self.has(id));
        let current = self.current.and_then(|id| self.find(id));
        match current.map(|peer| peer.connection.queued()) {
            Some(0) => self.unsent.clear(),
            Some(_) => {}
            None => {
                for event in std::mem::take(&mut self.unsent) {
                    self.keep(event);
                }
            }
        }
    }

    fn keep(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    fn make_current(&mut self, id: u64) {
        self.current = Some(id);
        let unsent: Vec<Event> = std::mem::take(&mut self.unsent);
        self.events.extend(unsent);
        // A peer that greeted before is replaced; those that have not greeted may still do.
        self.peers
            .retain(|it| it.id == id || !it.connection.is_greeted());
        for event in std::mem::take(&mut self.events) {
            self.tell(event);
        }
    }

    fn find(&mut self, id: u64) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|peer| peer.id == id)
    }
}
