//! What a sandbox takes from the host's file system, resolved before its namespaces change.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, open, openat};
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};

use super::failure::Step;
use crate::protocol::{Create, ErrorCode, Failure};

const BACKLOG: i32 = 16;

/// Descriptors of the host's files for one sandbox.
pub struct Resources {
    pub runner_procs: Vec<OwnedFd>,
    pub commands_cgroup: OwnedFd,
    pub oom_file: Option<OwnedFd>,
    pub output_directory: OwnedFd,
    pub storage: Storage,
}

/// The writable part of the overlay.
pub struct Storage {
    /// A detached mount: overlay takes directories of the caller's mount namespace or of such a mount.
    _tree: OwnedFd,
    pub upper: OwnedFd,
    pub work: OwnedFd,
}

/// The socket of init, bound and listening, open to the host's root only.
pub fn open_listener(path: &str) -> Result<OwnedFd, Failure> {
    let listener = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .step("make the socket")?;
    let address = SocketAddrUnix::new(path).step("name the socket")?;
    match bind(&listener, &address) {
        Err(rustix::io::Errno::ADDRINUSE) => {
            return Err(Failure::new(ErrorCode::Exists, "socketPath exists already"));
        }
        bound => bound.step("bind the socket")?,
    }
    Ok(listener)
}

/// Lets connections come to a socket of [`open_listener`].
pub fn start_listening(listener: BorrowedFd<'_>) -> Result<(), Failure> {
    listen(listener, BACKLOG).step("listen on the socket")
}

/// Opens all that the request names; nothing on the host is changed but the owner of the two directories.
pub fn open_resources(request: &Create) -> Result<Resources, Failure> {
    let cgroups = &request.cgroups;
    let mut runner_procs = Vec::with_capacity(cgroups.procs.len());
    for path in &cgroups.procs {
        runner_procs.push(open_file(path, OFlags::WRONLY).step("open a cgroup.procs file")?);
    }
    let commands_cgroup = open_directory(&cgroups.commands).step("open the commands' cgroup")?;
    let oom_file = match &cgroups.oom_file {
        Some(path) => Some(open_file(path, OFlags::RDONLY).step("open the oom counter")?),
        None => None,
    };
    let output_directory =
        open_directory(&request.output_path).step("open the output directory")?;
    let storage = open_storage(request)?;
    Ok(Resources {
        runner_procs,
        commands_cgroup,
        oom_file,
        output_directory,
        storage,
    })
}

fn open_storage(request: &Create) -> Result<Storage, Failure> {
    let upper_path = Path::new(&request.upper_path);
    let work_path = Path::new(&request.work_path);
    let parent = upper_path.parent().unwrap_or(Path::new("/"));
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, parent, flags).step("open the storage directory")?;
    let owned = |path: &Path, step: &str| {
        open_owned(tree.as_fd(), path.file_name(), request.id_base).step(step)
    };
    let upper = owned(upper_path, "open the upper directory")?;
    let work = owned(work_path, "open the work directory")?;
    Ok(Storage {
        _tree: tree,
        upper,
        work,
    })
}

/// Opens a directory of the storage; a fresh one (owned by another) is given to the sandbox's root.
fn open_owned(
    tree: BorrowedFd<'_>,
    name: Option<&std::ffi::OsStr>,
    owner: u32,
) -> io::Result<OwnedFd> {
    let name = name.ok_or(io::ErrorKind::InvalidInput)?.as_bytes();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat(tree, name, flags, Mode::empty())?;
    if fstat(&directory)?.st_uid != owner {
        fchown(
            &directory,
            Some(Uid::from_raw(owner)),
            Some(Gid::from_raw(owner)),
        )?;
        fchmod(&directory, Mode::from_raw_mode(0o755))?;
    }
    Ok(directory)
}

fn open_file(path: &str, access: OFlags) -> io::Result<OwnedFd> {
    let flags = access | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(open(path, flags, Mode::empty())?)
}

fn open_directory(path: &str) -> io::Result<OwnedFd> {
    open_file(path, OFlags::RDONLY | OFlags::DIRECTORY)
}
