//! The helper process of one file operation. It has the caller's ids and one socket, and no other descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::net::{RecvFlags, SendFlags};
use rustix::process::DumpableBehavior;
use serde::Serialize;

use super::message::{CHUNK_BYTES, Message};
use super::{change, content, stat};
use crate::connection::to_json;
use crate::init::runner::fork_exit;
use crate::init::runner::wire::FileLaunch;
use crate::init::runner::{keep_only, users};
use crate::protocol::{Empty, End, ErrorCode, Failure, ListAnswer, StatAnswer};

/// The helper's side of its socket.
pub(super) struct Peer {
    socket: OwnedFd,
}

/// What init sends to a writing helper.
pub(super) enum Input {
    Bytes(Vec<u8>),
    Complete,
    Cancelled,
}

impl Peer {
    /// Sends; waits while the edge reads slowly.
    fn send(&self, message: &Message) -> Result<(), Failure> {
        let bytes = message.encode();
        loop {
            match rustix::net::send(&self.socket, &bytes, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err(Failure::new(ErrorCode::Cancelled, "init is gone")),
            }
        }
    }

    pub(super) fn accept(&self, answer: &impl Serialize) -> Result<(), Failure> {
        self.send(&Message::Accept(to_json(answer)))
    }

    pub(super) fn data(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.send(&Message::Data(bytes.to_vec()))
    }

    pub(super) fn input(&self) -> Input {
        let mut buffer = vec![0; CHUNK_BYTES + 1];
        loop {
            match rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((count, _)) => {
                    return match Message::decode(&buffer[..count]) {
                        Some(Message::Data(bytes)) => Input::Bytes(bytes),
                        Some(Message::Eof) => Input::Complete,
                        _ => Input::Cancelled,
                    };
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Input::Cancelled,
            }
        }
    }
}

/// Runs as the helper of one operation. Called in a fresh child of the runner.
pub fn start(launch: FileLaunch, descriptors: Vec<OwnedFd>, user_namespace: BorrowedFd<'_>) -> ! {
    let Some(socket) = descriptors.into_iter().next() else {
        fork_exit(75)
    };
    let entered = users::enter(user_namespace, launch.user(), None);
    let peer = match isolate(&socket) {
        Ok(peer) => peer,
        Err(_) => fork_exit(76),
    };
    let answer = match entered {
        Ok(()) => run(&peer, launch),
        Err(text) => Err(Failure::new(ErrorCode::Invalid, text)),
    };
    let json = answer.unwrap_or_else(|failure| to_json(&End::<Empty>::Error(failure)));
    match peer.send(&Message::End(json)) {
        Ok(()) => fork_exit(0),
        Err(_) => fork_exit(77),
    }
}

/// Closes all but the socket, and keeps processes with the same ids from tracing this one.
fn isolate(socket: &OwnedFd) -> io::Result<Peer> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    keep_only(&[socket.as_fd()])?;
    // SAFETY: `keep_only` put the socket there, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(3) };
    Ok(Peer { socket })
}

fn run(peer: &Peer, launch: FileLaunch) -> Result<Vec<u8>, Failure> {
    match launch {
        FileLaunch::Read(request) => content::read(peer, &request).map(ok),
        FileLaunch::Write(request) => content::write(peer, &request).map(ok_stat),
        FileLaunch::List(request) => {
            let truncated = stat::list(peer, &request)?;
            Ok(to_json(&End::Ok(ListAnswer { truncated })))
        }
        FileLaunch::Stat(request) => stat::stat(&request).map(ok_stat),
        FileLaunch::Remove(request) => change::remove(&request).map(ok),
        FileLaunch::Mkdir(request) => change::make_directory(&request).map(ok_stat),
    }
}

fn ok((): ()) -> Vec<u8> {
    to_json(&End::Ok(Empty {}))
}

fn ok_stat(stat: crate::protocol::Stat) -> Vec<u8> {
    to_json(&End::Ok(StatAnswer { stat }))
}
