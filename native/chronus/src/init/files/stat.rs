//! Facts of files, and listings.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::helper::Peer;
use super::message::CHUNK_BYTES;
use super::{checked_path, failure};
use crate::protocol::{Failure, FileKind, FileList, FileStat, Stat};

const ENTRIES_MAX: u64 = 1_000_000;

pub(super) fn stat(request: &FileStat) -> Result<Stat, Failure> {
    let path = checked_path(&request.path)?;
    let facts = match request.follow {
        true => path.metadata(),
        false => path.symlink_metadata(),
    };
    let facts = facts.map_err(|error| failure(&request.path, &error))?;
    Ok(describe(path, &facts))
}

/// The wire's form of a file's facts.
pub(super) fn describe(path: &Path, facts: &std::fs::Metadata) -> Stat {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let target = match facts.is_symlink() {
        true => std::fs::read_link(path).ok(),
        false => None,
    };
    Stat {
        name: name.to_string_lossy().into_owned(),
        path: path.to_string_lossy().into_owned(),
        kind: kind_of(facts.file_type()),
        size_bytes: facts.size(),
        mode: facts.mode() & 0o7777,
        uid: facts.uid(),
        gid: facts.gid(),
        mtime_ms: facts.mtime() * 1000 + facts.mtime_nsec() / 1_000_000,
        target: target.map(|target| target.to_string_lossy().into_owned()),
        name_base64: match name.to_str() {
            Some(_) => None,
            None => Some(base64(name.as_bytes())),
        },
    }
}

fn kind_of(file_type: std::fs::FileType) -> FileKind {
    match file_type {
        kind if kind.is_file() => FileKind::File,
        kind if kind.is_dir() => FileKind::Directory,
        kind if kind.is_symlink() => FileKind::Symlink,
        kind if kind.is_fifo() => FileKind::Fifo,
        kind if kind.is_socket() => FileKind::Socket,
        _ => FileKind::Device,
    }
}

/// Sends one stat a line; true when there are more entries than asked for.
pub(super) fn list(peer: &Peer, request: &FileList) -> Result<bool, Failure> {
    let path = checked_path(&request.path)?;
    let failed = |error: std::io::Error| failure(&request.path, &error);
    let entries = std::fs::read_dir(path).map_err(failed)?;
    let mut lines = Vec::new();
    for (number, entry) in (0u64..).zip(entries) {
        if number >= request.entries_max.min(ENTRIES_MAX) {
            send_lines(peer, &mut lines)?;
            return Ok(true);
        }
        let entry: PathBuf = entry.map_err(failed)?.path();
        // An entry that was removed meanwhile is not part of the listing.
        let Ok(facts) = entry.symlink_metadata() else {
            continue;
        };
        lines.extend(crate::connection::to_json(&describe(&entry, &facts)));
        lines.push(b'\n');
        if lines.len() >= CHUNK_BYTES / 2 {
            send_lines(peer, &mut lines)?;
        }
    }
    send_lines(peer, &mut lines)?;
    Ok(false)
}

fn send_lines(peer: &Peer, lines: &mut Vec<u8>) -> Result<(), Failure> {
    for chunk in lines.chunks(CHUNK_BYTES) {
        peer.data(chunk)?;
    }
    lines.clear();
    Ok(())
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let [a, b, c] = group.map(usize::from);
        let indices = [
            a >> 2,
            (a & 3) << 4 | b >> 4,
            (b & 15) << 2 | c >> 6,
            c & 63,
        ];
        for (at, index) in indices.into_iter().enumerate() {
            text.push(if at <= chunk.len() {
                char::from(DIGITS[index])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_padded() {
        let all = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
        assert_eq!(base64(&[0xff, 0xfe]), "//4=");
    }
}
