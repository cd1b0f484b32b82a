//! Output of commands (PROTOCOL.md, section 7): the start in memory, then a head and a tail file a stream.
//!
//! Offsets count all bytes ever written to a stream. What is not kept reads as a gap. Memory, files and disk are bounded
//! for the whole sandbox; a fault of the disk costs output, never the command.

mod kept;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::os::fd::OwnedFd;

use crate::protocol::StreamCount;
use kept::Kept;

/// Number of a command, rising in order of start.
pub type CommandNumber = u64;

/// Which output of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    Stdout,
    Stderr,
}

impl Source {
    pub const BOTH: [Self; 2] = [Self::Stdout, Self::Stderr];
}

type Key = (CommandNumber, Source);

/// Bounds of the store, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Start of each stream that is held in memory.
    pub start: u64,
    /// First bytes of each stream that are kept.
    pub head: u64,
    /// Last bytes of each stream that are kept.
    pub tail: u64,
    /// All files of the sandbox.
    pub files: u64,
    /// All memory of the sandbox's output; the oldest goes to files beyond.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: 64 * 1024,
            head: 8 * 1024 * 1024,
            tail: 8 * 1024 * 1024,
            files: 64 * 1024 * 1024,
            memory: 2 * 1024 * 1024,
        }
    }
}

/// What is at an offset of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes were put in the buffer.
    Bytes(usize),
    /// So many bytes from the offset on are not kept.
    Gap(u64),
    /// Nothing there yet.
    Nothing,
}

/// Output of all commands of the sandbox.
#[derive(Debug)]
pub struct OutputStore {
    directory: OwnedFd,
    limits: Limits,
    streams: HashMap<Key, Kept>,
    /// Ended commands whose output is still kept, oldest first.
    ended: VecDeque<CommandNumber>,
    /// Streams with bytes in memory, oldest first.
    in_memory: BTreeSet<Key>,
    /// Streams with a tail file.
    tailed: BTreeSet<Key>,
    file_bytes: u64,
    memory_bytes: u64,
}

impl OutputStore {
    /// A store whose files lie in `directory`, of which it is the only writer.
    pub fn new(directory: OwnedFd, limits: Limits) -> Self {
        Self {
            directory,
            limits,
            streams: HashMap::new(),
            ended: VecDeque::new(),
            in_memory: BTreeSet::new(),
            tailed: BTreeSet::new(),
            file_bytes: 0,
            memory_bytes: 0,
        }
    }

    /// Adds a command. `id` names its files.
    pub fn add(&mut self, command: CommandNumber, id: &str) {
        for (source, name) in [(Source::Stdout, "1"), (Source::Stderr, "2")] {
            let kept = Kept::new(format!("{id}.{name}"));
            self.streams.insert((command, source), kept);
        }
    }

    /// Appends what the command wrote. Never fails: what cannot be kept is counted as dropped.
    pub fn append(&mut self, command: CommandNumber, source: Source, mut bytes: &[u8]) {
        let key = (command, source);
        // Taken out so that making room may touch every other stream.
        let Some(mut kept) = self.streams.remove(&key) else {
            return;
        };
        while !bytes.is_empty() {
            let taken = self.append_some(key, &mut kept, bytes);
            bytes = &bytes[taken..];
        }
        self.streams.insert(key, kept);
        while self.memory_bytes > self.limits.memory {
            self.spill_oldest();
        }
    }

    /// Reads from an offset into `buffer`.
    pub fn read(
        &mut self,
        command: CommandNumber,
        source: Source,
        offset: u64,
        buffer: &mut [u8],
    ) -> Piece {
        match self.streams.get(&(command, source)) {
            Some(kept) => kept.read(&self.limits, offset, buffer),
            None => Piece::Nothing,
        }
    }

    /// Bytes written to the stream so far and how many of them are not kept.
    pub fn count(&self, command: CommandNumber, source: Source) -> StreamCount {
        let kept = self.streams.get(&(command, source));
        kept.map_or(
            StreamCount {
                bytes: 0,
                dropped: 0,
            },
            Kept::count,
        )
    }

    /// Marks a command as ended: its output may go when room is needed.
    pub fn end(&mut self, command: CommandNumber) {
        self.ended.push_back(command);
    }

    /// Drops the output of a command; its counts stay, and all its bytes read as a gap.
    pub fn expire(&mut self, command: CommandNumber) {
        // The oldest goes first nearly always.
        if self.ended.front() == Some(&command) {
            self.ended.pop_front();
        } else {
            self.ended.retain(|&other| other != command);
        }
        self.drop_output(command);
    }

    /// Drops all that is known of a command.
    pub fn forget(&mut self, command: CommandNumber) {
        self.expire(command);
        for source in Source::BOTH {
            self.streams.remove(&(command, source));
        }
    }

    fn append_some(&mut self, key: Key, kept: &mut Kept, bytes: &[u8]) -> usize {
        let room = kept.start_room(&self.limits);
        if room > 0 {
            let count = bytes.len().min(room);
            kept.append_start(&bytes[..count]);
            self.memory_bytes += count as u64;
            self.in_memory.insert(key);
            return count;
        }
        let room = kept.head_room(&self.limits);
        if room > 0 {
            let count = bytes.len().min(room);
            if !self.reserve(count as u64) {
                kept.close_head();
                return 0;
            }
            if !kept.append_head(&self.directory, &bytes[..count]) {
                self.file_bytes -= count as u64;
                kept.close_head();
                return 0;
            }
            return count;
        }
        self.append_tail(key, kept, bytes)
    }

    fn append_tail(&mut self, key: Key, kept: &mut Kept, bytes: &[u8]) -> usize {
        let count = bytes.len().min(kept.tail_room(&self.limits));
        let growth = kept.tail_growth(&self.limits, count);
        let keeps = match growth {
            Some(0) => true,
            Some(growth) => self.reserve(growth),
            None => {
                kept.skip(bytes.len());
                return bytes.len();
            }
        };
        if keeps {
            self.tailed.insert(key);
            kept.tail_reserved += growth.unwrap_or(0);
        }
        if !keeps || !kept.append_tail(&self.directory, &self.limits, &bytes[..count]) {
            self.tailed.remove(&key);
            self.file_bytes -= kept.drop_tail(&self.directory);
            kept.skip(bytes.len());
            return bytes.len();
        }
        count
    }

    /// Makes room for bytes in files: ended commands go first, then tails of others. False when there is none.
    fn reserve(&mut self, bytes: u64) -> bool {
        while self.file_bytes + bytes > self.limits.files {
            if let Some(oldest) = self.ended.pop_front() {
                self.drop_output(oldest);
            } else if let Some(key) = self.tailed.pop_first() {
                if let Some(kept) = self.streams.get_mut(&key) {
                    self.file_bytes -= kept.drop_tail(&self.directory);
                }
            } else {
                return false;
            }
        }
        self.file_bytes += bytes;
        true
    }

    fn drop_output(&mut self, command: CommandNumber) {
        for source in Source::BOTH {
            let key = (command, source);
            self.tailed.remove(&key);
            self.in_memory.remove(&key);
            if let Some(kept) = self.streams.get_mut(&key) {
                self.memory_bytes = self.memory_bytes.saturating_sub(kept.memory_bytes());
                self.file_bytes -= kept.drop_all(&self.directory);
            }
        }
    }

    /// Moves the oldest stream's start from memory to its head file.
    fn spill_oldest(&mut self) {
        let Some(key) = self.in_memory.pop_first() else {
            self.memory_bytes = 0;
            return;
        };
        let Some(mut kept) = self.streams.remove(&key) else {
            return;
        };
        let bytes = kept.memory_bytes();
        self.memory_bytes = self.memory_bytes.saturating_sub(bytes);
        let reserved = self.reserve(bytes);
        if !(reserved && kept.spill(&self.directory)) {
            if reserved {
                self.file_bytes -= bytes;
            }
            self.tailed.remove(&key);
            self.file_bytes -= kept.drop_all(&self.directory);
        }
        self.streams.insert(key, kept);
    }
}
