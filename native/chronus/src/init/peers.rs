//! Connections of the edge: the current one, and those that have not said HELLO.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::poll::{Poll, Token};
use super::{Init, random_hex};
use crate::connection::{Connection, Ended, Incoming};
use crate::protocol::{Hello, PROTOCOL_VERSION, Role, VersionRange};

/// Connections that may wait for their HELLO; the oldest makes room.
const WAITING_MAX: usize = 4;

pub(super) struct Peer {
    id: u64,
    pub(super) connection: Connection,
    interest: EventFlags,
}

pub(super) struct Peers {
    listener: OwnedFd,
    hello: Hello,
    last: u64,
    pub(super) current: Option<Peer>,
    waiting: Vec<Peer>,
}

impl Peers {
    pub(super) fn start(listener: OwnedFd, sandbox_id: String, poll: &Poll) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&listener)?;
        rustix::fs::fcntl_setfl(&listener, flags | rustix::fs::OFlags::NONBLOCK)?;
        poll.add(&listener, Token::Listener, EventFlags::IN)?;
        let version = PROTOCOL_VERSION;
        Ok(Self {
            listener,
            hello: Hello {
                protocol: VersionRange {
                    min: version,
                    max: version,
                },
                role: Role::Init,
                pid: None,
                boot_id: Some(random_hex(16)),
                sandbox_id: Some(sandbox_id),
            },
            last: 0,
            current: None,
            waiting: Vec::new(),
        })
    }

    /// The connection that has said HELLO last.
    pub(super) fn current(&mut self) -> Option<&mut Connection> {
        self.current.as_mut().map(|peer| &mut peer.connection)
    }

    fn find(&mut self, id: u64) -> Option<&mut Peer> {
        let all = self.current.iter_mut().chain(&mut self.waiting);
        all.into_iter().find(|peer| peer.id == id)
    }
}

impl Init {
    pub(super) fn accept_peers(&mut self) {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match rustix::net::accept_with(&self.peers.listener, flags) {
                Ok(socket) => self.add_peer(socket),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // AGAIN: no more. Out of descriptors: the edge's connect waits until one is free.
                Err(_) => return,
            }
        }
    }

    fn add_peer(&mut self, socket: OwnedFd) {
        // The socket's path is on the host, out of the sandbox's reach; this holds even if it were not.
        if !is_from_root(&socket) {
            return;
        }
        self.peers.last += 1;
        let id = self.peers.last;
        let interest = EventFlags::IN | EventFlags::OUT;
        if self.poll.add(&socket, Token::Peer(id), interest).is_err() {
            return;
        }
        if self.peers.waiting.len() >= WAITING_MAX {
            self.peers.waiting.remove(0);
        }
        let connection = Connection::new(socket, &self.peers.hello);
        self.peers.waiting.push(Peer {
            id,
            connection,
            interest,
        });
    }

    pub(super) fn on_peer(&mut self, id: u64, flags: EventFlags) {
        let Some(peer) = self.peers.find(id) else {
            return;
        };
        let mut result = Ok(());
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            result = peer.connection.receive();
        }
        if result.and_then(|()| self.take_incoming(id)).is_err() {
            self.drop_peer(id);
        }
    }

    fn take_incoming(&mut self, id: u64) -> Result<(), Ended> {
        while let Some(peer) = self.peers.find(id) {
            match peer.connection.next_incoming()? {
                None => break,
                Some(Incoming::Hello(_)) => self.make_current(id),
                Some(incoming) => self.handle(incoming),
            }
        }
        Ok(())
    }

    /// A connection that said HELLO replaces the one before it.
    fn make_current(&mut self, id: u64) {
        let Some(at) = self.peers.waiting.iter().position(|peer| peer.id == id) else {
            return;
        };
        let peer = self.peers.waiting.remove(at);
        if self.peers.current.replace(peer).is_some() {
            self.release_channels();
        }
    }

    fn drop_peer(&mut self, id: u64) {
        self.peers.waiting.retain(|peer| peer.id != id);
        if self
            .peers
            .current
            .as_ref()
            .is_some_and(|peer| peer.id == id)
        {
            self.peers.current = None;
            self.release_channels();
        }
    }

    /// Sends what is queued and polls for what is of use.
    pub(super) fn flush(&mut self) {
        let all = self.peers.current.iter_mut().chain(&mut self.peers.waiting);
        let mut ended = Vec::new();
        for peer in all {
            let result = peer.connection.flush();
            let mut interest = EventFlags::empty();
            interest.set(EventFlags::IN, peer.connection.wants_read());
            interest.set(EventFlags::OUT, peer.connection.wants_write());
            let changed = match interest == peer.interest {
                true => Ok(()),
                false => {
                    peer.interest = interest;
                    let fd = peer.connection.fd();
                    self.poll.change(fd, Token::Peer(peer.id), interest)
                }
            };
            if result.and(changed.map_err(Ended::Io)).is_err() {
                ended.push(peer.id);
            }
        }
        for id in ended {
            self.drop_peer(id);
        }
    }
}

/// Whether root of the host made the connection. Its process id is 0 here: it is of another pid namespace.
fn is_from_root(socket: &OwnedFd) -> bool {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut size = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: the kernel writes at most `size` bytes, which the struct has.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    result == 0 && peer.uid == 0
}
