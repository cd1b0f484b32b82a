//! epoll with named tokens.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::output::{CommandNumber, Source};

/// What a descriptor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Signals,
    Listener,
    /// A connection by its number.
    Peer(u64),
    Runner,
    Stdin(CommandNumber),
    Output(CommandNumber, Source),
    /// `cgroup.events` of a command.
    Group(CommandNumber),
    File(u64),
    ServiceListener(u64),
    Service(u64),
}

const ID_BITS: u32 = 56;
const EVENTS_MAX: usize = 128;

impl Token {
    fn encode(self) -> u64 {
        let (kind, id) = match self {
            Self::Signals => (0, 0),
            Self::Listener => (1, 0),
            Self::Peer(id) => (2, id),
            Self::Runner => (3, 0),
            Self::Stdin(id) => (4, id),
            Self::Output(id, Source::Stdout) => (5, id),
            Self::Output(id, Source::Stderr) => (6, id),
            Self::Group(id) => (7, id),
            Self::File(id) => (8, id),
            Self::ServiceListener(id) => (9, id),
            Self::Service(id) => (10, id),
        };
        kind << ID_BITS | id
    }

    fn decode(value: u64) -> Self {
        let id = value & ((1 << ID_BITS) - 1);
        match value >> ID_BITS {
            0 => Self::Signals,
            1 => Self::Listener,
            2 => Self::Peer(id),
            3 => Self::Runner,
            4 => Self::Stdin(id),
            5 => Self::Output(id, Source::Stdout),
            6 => Self::Output(id, Source::Stderr),
            7 => Self::Group(id),
            8 => Self::File(id),
            9 => Self::ServiceListener(id),
            _ => Self::Service(id),
        }
    }
}

#[derive(Debug)]
pub(super) struct Poll {
    epoll: OwnedFd,
}

impl Poll {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    pub(super) fn add(&self, fd: impl AsFd, token: Token, flags: EventFlags) -> io::Result<()> {
        let data = EventData::new_u64(token.encode());
        Ok(epoll::add(&self.epoll, fd, data, flags)?)
    }

    pub(super) fn change(&self, fd: impl AsFd, token: Token, flags: EventFlags) -> io::Result<()> {
        let data = EventData::new_u64(token.encode());
        Ok(epoll::modify(&self.epoll, fd, data, flags)?)
    }

    pub(super) fn remove(&self, fd: impl AsFd) {
        // A descriptor that is not registered needs no removal.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits for events, at most so many milliseconds.
    pub(super) fn wait(&self, timeout_ms: Option<u64>) -> io::Result<Vec<(Token, EventFlags)>> {
        let timeout = timeout_ms.and_then(|ms| Timespec::try_from(Duration::from_millis(ms)).ok());
        let mut events = [MaybeUninit::<Event>::uninit(); EVENTS_MAX];
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((events, _)) => Ok(events
                .iter()
                .map(|event| (Token::decode(event.data.u64()), event.flags))
                .collect()),
            Err(Errno::INTR) => Ok(Vec::new()),
            Err(errno) => Err(errno.into()),
        }
    }
}
