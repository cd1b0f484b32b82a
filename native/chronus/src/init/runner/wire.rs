//! Messages between init and its runner, over a SOCK_SEQPACKET pair.
//!
//! Init sends a launch as JSON with the descriptors it needs; a large one travels in a memory file. The runner and the
//! forked child answer with reports. A child reports its pid before anything else and its failure to start before it
//! exits, so whatever init reaps has been reported already.

use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize};

use crate::protocol::{FileList, FileMkdir, FileRead, FileRemove, FileStat, FileWrite, User};

/// Launches up to this size travel in the message itself.
const INLINE_BYTES_MAX: usize = 65_536;
const REPORT_TEXT_MAX: usize = 900;
const DESCRIPTORS_MAX: usize = 8;
const INLINE: u8 = 0;
const IN_MEMORY_FILE: u8 = 1;

/// Number of a launch, which its reports carry.
pub type LaunchNumber = u64;

/// What to fork.
#[derive(Debug, Serialize, Deserialize)]
pub enum Launch {
    /// Descriptors: the command's cgroup, stdout, stderr, and stdin when it has one.
    Session(SessionLaunch),
    /// Descriptor: the helper's end of its socket pair.
    File(FileLaunch),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct SessionLaunch {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: String,
    pub user: User,
    pub no_new_privs: bool,
}

/// One file operation, done by the forked process itself.
#[derive(Debug, Serialize, Deserialize)]
pub enum FileLaunch {
    Read(FileRead),
    Write(FileWrite),
    List(FileList),
    Stat(FileStat),
    Remove(FileRemove),
    Mkdir(FileMkdir),
}

impl FileLaunch {
    pub fn user(&self) -> &User {
        match self {
            Self::Read(request) => &request.user,
            Self::Write(request) => &request.user,
            Self::List(request) => &request.user,
            Self::Stat(request) => &request.user,
            Self::Remove(request) => &request.user,
            Self::Mkdir(request) => &request.user,
        }
    }
}

/// What became of a launch.
#[derive(Debug, PartialEq, Eq)]
pub enum Report {
    /// The process exists. Sent by the runner and by the process itself, in either order.
    Forked { launch: LaunchNumber, pid: i32 },
    /// There is no process: the text says why.
    NotForked { launch: LaunchNumber, text: String },
    /// The process exits without having run the program: the text says why.
    NotStarted { launch: LaunchNumber, text: String },
}

/// A launch ready to be sent.
#[derive(Debug)]
pub struct Packet {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Packet {
    pub fn new(
        number: LaunchNumber,
        launch: &Launch,
        mut descriptors: Vec<OwnedFd>,
    ) -> std::io::Result<Self> {
        let json = serde_json::to_vec(launch)?;
        let mut bytes = number.to_le_bytes().to_vec();
        if json.len() <= INLINE_BYTES_MAX {
            bytes.push(INLINE);
            bytes.extend_from_slice(&json);
        } else {
            let memory = rustix::fs::memfd_create("launch", MemfdFlags::CLOEXEC)?;
            let mut file = std::fs::File::from(memory);
            file.write_all(&json)?;
            file.rewind()?;
            bytes.push(IN_MEMORY_FILE);
            descriptors.push(file.into());
        }
        Ok(Self { bytes, descriptors })
    }

    /// Sends without waiting: `AGAIN` until the runner has read earlier ones.
    pub fn send(&self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<BorrowedFd<'_>> = self.descriptors.iter().map(AsFd::as_fd).collect();
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let slices = [IoSlice::new(&self.bytes)];
        rustix::net::sendmsg(socket, &slices, &mut control, flags).map(drop)
    }
}

/// The runner's end: waits for the next launch. `None` when init is gone.
pub fn receive_launch(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> std::io::Result<Option<(LaunchNumber, Launch, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(buffer)];
    let received =
        rustix::net::recvmsg(socket, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            descriptors.extend(more);
        }
    }
    let Some((head, json)) = buffer[..received.bytes].split_first_chunk::<9>() else {
        return Ok(None);
    };
    let [number @ .., kind] = head;
    let number = u64::from_le_bytes(*number);
    let launch = if *kind == IN_MEMORY_FILE {
        let memory = descriptors.pop().ok_or(std::io::ErrorKind::InvalidData)?;
        let mut json = Vec::new();
        std::fs::File::from(memory).read_to_end(&mut json)?;
        serde_json::from_slice(&json)?
    } else {
        serde_json::from_slice(json)?
    };
    Ok(Some((number, launch, descriptors)))
}

/// Bytes that hold any packet.
pub const PACKET_BYTES_MAX: usize = INLINE_BYTES_MAX + 9;

impl Report {
    /// Sends; waits while init has much to read.
    pub fn send(&self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let (kind, launch, pid, text) = match self {
            Self::Forked { launch, pid } => (0u8, launch, *pid, ""),
            Self::NotForked { launch, text } => (1, launch, 0, text.as_str()),
            Self::NotStarted { launch, text } => (2, launch, 0, text.as_str()),
        };
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&launch.to_le_bytes());
        bytes.extend_from_slice(&pid.to_le_bytes());
        let text = text.as_bytes();
        bytes.extend_from_slice(&text[..text.len().min(REPORT_TEXT_MAX)]);
        rustix::net::send(socket, &bytes, SendFlags::NOSIGNAL).map(drop)
    }

    /// Init's end: the next report without waiting. `None` when the runner is gone.
    pub fn receive(socket: BorrowedFd<'_>) -> Result<Option<Self>, Errno> {
        let mut buffer = [0; 1024];
        let (count, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
        Ok(Self::decode(&buffer[..count]))
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        let (launch, rest) = rest.split_first_chunk::<8>()?;
        let (pid, text) = rest.split_first_chunk::<4>()?;
        let launch = u64::from_le_bytes(*launch);
        let text = String::from_utf8_lossy(text).into_owned();
        Some(match kind {
            0 => Self::Forked {
                launch,
                pid: i32::from_le_bytes(*pid),
            },
            1 => Self::NotForked { launch, text },
            _ => Self::NotStarted { launch, text },
        })
    }
}
