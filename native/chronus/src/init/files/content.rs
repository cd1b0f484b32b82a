//! Reading and writing of regular files.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, Uid};

use super::helper::{Input, Peer};
use super::message::CHUNK_BYTES;
use super::stat::describe;
use super::{change, checked_path, failure, is_of_kernel};
use crate::protocol::{ErrorCode, Failure, FileRead, FileWrite, Stat, StatAnswer};

/// As many links as the kernel follows.
const LINKS_MAX: usize = 40;

pub(super) fn read(peer: &Peer, request: &FileRead) -> Result<(), Failure> {
    let path = checked_path(&request.path)?;
    let failed = |error: io::Error| failure(&request.path, &error);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
    let file = File::from(file);
    let facts = file.metadata().map_err(failed)?;
    must_be_regular(&request.path, &facts)?;
    let of_kernel = is_of_kernel(file.as_fd()).map_err(|errno| failed(errno.into()))?;
    if of_kernel && is_own(&file) {
        return Err(denied(&request.path, "it belongs to the platform"));
    }
    let stat = describe(path, &facts);
    peer.accept(&StatAnswer { stat })?;
    send_content(peer, &file, request, of_kernel)
}

fn send_content(
    peer: &Peer,
    file: &File,
    request: &FileRead,
    of_kernel: bool,
) -> Result<(), Failure> {
    let mut left = request.length.unwrap_or(u64::MAX);
    let mut offset = request.offset;
    let mut buffer = vec![0; CHUNK_BYTES];
    while left > 0 {
        let wanted = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        // Some files of procfs can only be read in order.
        let count = match of_kernel && request.offset == 0 {
            true => (&*file).read(&mut buffer[..wanted]),
            false => file.read_at(&mut buffer[..wanted], offset),
        };
        let count = match count {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failure(&request.path, &error)),
        };
        peer.data(&buffer[..count])?;
        offset += count as u64;
        left -= count as u64;
    }
    Ok(())
}

/// Whether a file of procfs is of this very process, whose memory is not the sandbox's.
fn is_own(file: &File) -> bool {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let Ok(path) = std::fs::read_link(link) else {
        return true;
    };
    let own = format!("/proc/{}", std::process::id());
    // Where procfs is mounted elsewhere, the process id is still a component.
    let id = std::process::id().to_string();
    path.starts_with(own) || path.iter().any(|part| part.as_bytes() == id.as_bytes())
}

/// Where a write goes: a name in an open directory, and the file that is there.
struct Target {
    directory: OwnedFd,
    path: PathBuf,
    existing: Option<Metadata>,
}

pub(super) fn write(peer: &Peer, request: &FileWrite) -> Result<Stat, Failure> {
    let path = checked_path(&request.path)?;
    if request.mode > 0o7777 {
        return Err(Failure::new(ErrorCode::Invalid, "mode is not a mode"));
    }
    if request.make_parents {
        change::make_parents(path).map_err(|error| failure(&request.path, &error))?;
    }
    let target = find_target(path).map_err(|found| match found {
        Found::Refused(failure) => failure,
        Found::Error(error) => failure(&request.path, &error),
    })?;
    let temporary = temporary_name();
    let written = fill(peer, request, &target, &temporary);
    if written.is_err() {
        // It may never have been made; that it is not there is all that matters.
        let _ = rustix::fs::unlinkat(&target.directory, &temporary, AtFlags::empty());
    }
    written
}

/// Writes the content to a temporary file beside the target, then renames it over the target.
fn fill(
    peer: &Peer,
    request: &FileWrite,
    target: &Target,
    temporary: &str,
) -> Result<Stat, Failure> {
    let failed = |error: io::Error| failure(&request.path, &error);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = rustix::fs::openat(&target.directory, temporary, flags, mode)
        .map_err(|errno| failed(errno.into()))?;
    let mut file = File::from(file);
    loop {
        match peer.input() {
            Input::Bytes(bytes) => file.write_all(&bytes).map_err(failed)?,
            Input::Complete => break,
            Input::Cancelled => return Err(Failure::new(ErrorCode::Cancelled, "given up")),
        }
    }
    keep_owner_and_mode(&file, request, target).map_err(failed)?;
    let name = target.path.file_name().unwrap_or_default();
    rustix::fs::renameat(&target.directory, temporary, &target.directory, name)
        .map_err(|errno| failed(errno.into()))?;
    let facts = file.metadata().map_err(failed)?;
    Ok(describe(Path::new(&request.path), &facts))
}

fn keep_owner_and_mode(file: &File, request: &FileWrite, target: &Target) -> io::Result<()> {
    let mut mode = request.mode;
    if let Some(existing) = &target.existing {
        mode = existing.mode() & 0o7777;
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (existing.uid(), existing.gid()) {
            let (uid, gid) = (Uid::from_raw(existing.uid()), Gid::from_raw(existing.gid()));
            let kept = rustix::fs::fchown(file, Some(uid), Some(gid));
            // A caller that may write but not give files away becomes the owner, without the old special bits.
            if kept.is_err() {
                mode &= 0o777;
            }
        }
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
    Ok(())
}

enum Found {
    Refused(Failure),
    Error(io::Error),
}

impl From<io::Error> for Found {
    fn from(error: io::Error) -> Self {
        Self::Error(error)
    }
}

impl From<rustix::io::Errno> for Found {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Error(errno.into())
    }
}

/// Follows links at the end of the path as a plain write would, with the kernel's own checks first.
fn find_target(path: &Path) -> Result<Target, Found> {
    refuse_what_the_kernel_refuses(path)?;
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let text = path.to_string_lossy().into_owned();
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Found::Refused(Failure::new(ErrorCode::IsDirectory, text)));
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags, Mode::empty())?;
        if is_of_kernel(directory.as_fd())? {
            return Err(Found::Refused(denied(&text, "it belongs to the kernel")));
        }
        let existing = match path.symlink_metadata() {
            Ok(facts) => Some(facts),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        match existing {
            Some(facts) if facts.is_symlink() => {
                let link = rustix::fs::readlinkat(&directory, name, Vec::new())?;
                path = parent.join(std::ffi::OsStr::from_bytes(link.as_bytes()));
            }
            Some(facts) if facts.is_dir() => {
                return Err(Found::Refused(Failure::new(ErrorCode::IsDirectory, text)));
            }
            existing => {
                if let Some(facts) = &existing {
                    must_be_regular(&text, facts).map_err(Found::Refused)?;
                    let access = (Access::WRITE_OK, AtFlags::EACCESS);
                    rustix::fs::accessat(&directory, name, access.0, access.1)?;
                }
                return Ok(Target {
                    directory,
                    path,
                    existing,
                });
            }
        }
    }
    Err(Found::Error(rustix::io::Errno::LOOP.into()))
}

/// The kernel has rules on links of others in shared directories; opening by path applies them.
fn refuse_what_the_kernel_refuses(path: &Path) -> Result<(), Found> {
    match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) if is_of_kernel(file.as_fd())? => {
            let text = path.to_string_lossy();
            Err(Found::Refused(denied(&text, "it belongs to the kernel")))
        }
        Ok(_) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn must_be_regular(path: &str, facts: &Metadata) -> Result<(), Failure> {
    match facts.file_type() {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_dir() => Err(Failure::new(ErrorCode::IsDirectory, path)),
        _ => Err(Failure::new(
            ErrorCode::Invalid,
            format!("{path}: not a regular file"),
        )),
    }
}

fn denied(path: &str, why: &str) -> Failure {
    Failure::new(ErrorCode::Denied, format!("{path}: {why}"))
}

fn temporary_name() -> String {
    format!(".chronus-{}", crate::init::random_hex(8))
}
