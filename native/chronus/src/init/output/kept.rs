//! What is kept of one stream: `[0, head)` and `[tail_start, total)`.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{Limits, Piece};
use crate::protocol::StreamCount;

#[derive(Debug)]
pub(super) struct Kept {
    name: String,
    /// `[0, start.len())` of the head; `None` once it lies in the head file.
    start: Option<Vec<u8>>,
    /// End of the head: bytes before it are kept from offset 0.
    head: u64,
    /// No more is added to the head.
    head_closed: bool,
    head_file: Option<OwnedFd>,
    /// Bytes of the head file that the store has reserved.
    head_reserved: u64,
    tail_file: Option<OwnedFd>,
    tail_off: bool,
    /// First byte of the tail that is kept.
    tail_start: u64,
    /// Bytes of the tail file that the store has reserved.
    pub(super) tail_reserved: u64,
    total: u64,
}

impl Kept {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            start: Some(Vec::new()),
            head: 0,
            head_closed: false,
            head_file: None,
            head_reserved: 0,
            tail_file: None,
            tail_off: false,
            tail_start: 0,
            tail_reserved: 0,
            total: 0,
        }
    }

    pub(super) fn count(&self) -> StreamCount {
        StreamCount {
            bytes: self.total,
            dropped: self.tail_start - self.head,
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.start.as_ref().map_or(0, |start| start.len() as u64)
    }

    pub(super) fn start_room(&self, limits: &Limits) -> usize {
        let open = !self.head_closed && self.start.is_some();
        let room = limits.start.min(limits.head).saturating_sub(self.head);
        if open { bounded(room) } else { 0 }
    }

    pub(super) fn append_start(&mut self, bytes: &[u8]) {
        if let Some(start) = &mut self.start {
            start.extend_from_slice(bytes);
        }
        self.grow_head(bytes.len());
    }

    pub(super) fn head_room(&self, limits: &Limits) -> usize {
        match self.head_closed {
            true => 0,
            false => bounded(limits.head.saturating_sub(self.head)),
        }
    }

    /// Appends to the head file; the store has reserved the bytes. False when the disk refused.
    pub(super) fn append_head(&mut self, directory: &OwnedFd, bytes: &[u8]) -> bool {
        let name = self.head_name();
        let written = write_at(directory, &mut self.head_file, &name, bytes, self.head);
        if written {
            self.head_reserved += bytes.len() as u64;
            self.grow_head(bytes.len());
        }
        written
    }

    fn grow_head(&mut self, bytes: usize) {
        self.head += bytes as u64;
        self.total = self.head;
        self.tail_start = self.head;
    }

    pub(super) fn close_head(&mut self) {
        self.head_closed = true;
    }

    /// Bytes that fit before the ring turns.
    pub(super) fn tail_room(&self, limits: &Limits) -> usize {
        bounded(limits.tail - self.total % limits.tail.max(1))
    }

    /// Bytes that the tail file grows by for `count` more; `None` when no tail is kept.
    pub(super) fn tail_growth(&self, limits: &Limits, count: usize) -> Option<u64> {
        let needed = limits.tail.min(self.total + count as u64 - self.head);
        let keeps = !self.tail_off && limits.tail > 0;
        keeps.then(|| needed.saturating_sub(self.tail_reserved))
    }

    /// Appends within [`Kept::tail_room`]; the store has reserved the growth. False when the disk refused.
    pub(super) fn append_tail(
        &mut self,
        directory: &OwnedFd,
        limits: &Limits,
        bytes: &[u8],
    ) -> bool {
        self.head_closed = true;
        let name = self.tail_name();
        let at = self.total % limits.tail;
        if !write_at(directory, &mut self.tail_file, &name, bytes, at) {
            return false;
        }
        self.total += bytes.len() as u64;
        let oldest = self.total.saturating_sub(limits.tail);
        self.tail_start = self.tail_start.max(oldest);
        true
    }

    /// Counts bytes that are not kept.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.head_closed = true;
        self.total += bytes as u64;
        self.tail_start = self.total;
    }

    /// Drops the tail for good and says how many reserved bytes that frees.
    pub(super) fn drop_tail(&mut self, directory: &OwnedFd) -> u64 {
        self.tail_off = true;
        if self.tail_file.take().is_some() {
            remove(directory, &self.tail_name());
        }
        self.tail_start = self.total;
        std::mem::take(&mut self.tail_reserved)
    }

    /// Drops everything but the counts and says how many reserved bytes that frees.
    pub(super) fn drop_all(&mut self, directory: &OwnedFd) -> u64 {
        let tail = self.drop_tail(directory);
        if self.head_file.take().is_some() {
            remove(directory, &self.head_name());
        }
        self.start = None;
        self.head = 0;
        self.head_closed = true;
        tail + std::mem::take(&mut self.head_reserved)
    }

    /// Moves the start to the head file; the store has reserved the bytes. False when the disk refused.
    pub(super) fn spill(&mut self, directory: &OwnedFd) -> bool {
        let Some(start) = self.start.take() else {
            return true;
        };
        let name = self.head_name();
        self.head_reserved += start.len() as u64;
        let written = write_at(directory, &mut self.head_file, &name, &start, 0);
        if !written {
            self.head_reserved -= start.len() as u64;
        }
        written
    }

    pub(super) fn read(&self, limits: &Limits, offset: u64, buffer: &mut [u8]) -> Piece {
        if offset >= self.total {
            return Piece::Nothing;
        }
        if offset < self.head {
            return self.read_head(offset, buffer);
        }
        if offset < self.tail_start {
            return Piece::Gap(self.tail_start - offset);
        }
        let at = offset % limits.tail.max(1);
        let until_turn = limits.tail.max(1) - at;
        let count = buffer
            .len()
            .min(bounded((self.total - offset).min(until_turn)));
        read_at(self.tail_file.as_ref(), &mut buffer[..count], at)
    }

    fn read_head(&self, offset: u64, buffer: &mut [u8]) -> Piece {
        let start = self.start.as_deref().unwrap_or_default();
        let at = bounded(offset);
        if at < start.len() {
            let count = buffer.len().min(start.len() - at);
            buffer[..count].copy_from_slice(&start[at..at + count]);
            return Piece::Bytes(count);
        }
        let count = buffer.len().min(bounded(self.head - offset));
        read_at(self.head_file.as_ref(), &mut buffer[..count], offset)
    }

    fn head_name(&self) -> String {
        format!("{}.head", self.name)
    }

    fn tail_name(&self) -> String {
        format!("{}.tail", self.name)
    }
}

fn bounded(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn write_at(
    directory: &OwnedFd,
    file: &mut Option<OwnedFd>,
    name: &str,
    mut bytes: &[u8],
    mut at: u64,
) -> bool {
    if file.is_none() {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        *file = rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR).ok();
    }
    let Some(file) = file else {
        return false;
    };
    while !bytes.is_empty() {
        match rustix::io::pwrite(&*file, bytes, at) {
            Ok(0) => return false,
            Ok(count) => {
                bytes = &bytes[count..];
                at += count as u64;
            }
            Err(Errno::INTR) => {}
            // A full or broken disk: the caller counts the bytes as dropped.
            Err(_) => return false,
        }
    }
    true
}

/// Reads from a file; what the disk does not give back is a gap.
fn read_at(file: Option<&OwnedFd>, buffer: &mut [u8], at: u64) -> Piece {
    let lost = Piece::Gap(buffer.len() as u64);
    let Some(file) = file else {
        return lost;
    };
    match rustix::io::pread(file, &mut *buffer, at) {
        Ok(count) if count > 0 => Piece::Bytes(count),
        _ => lost,
    }
}

fn remove(directory: &OwnedFd, name: &str) {
    // A file that is gone already, or a directory that the edge removed: nothing is left to remove.
    let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
}
