//! The spawner: one process per node that mounts layers and creates sandboxes.
//!
//! Invariant: one thread, and no descriptor per sandbox, so that a fork costs the same however many sandboxes
//! there are. Its death harms nobody: inits live on, and the namespaces are pinned. Start reading at [`run`].

mod layers;
mod operation;
mod peers;
mod pins;
mod processes;
mod serve;
mod signals;

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, fcntl_lock};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use rustix::process::umask;

use self::pins::Pins;
use self::serve::{Ended, Spawner};
use self::signals::Signals;
use crate::protocol::{ErrorCode, Failure};
use crate::sandbox::failure::Step;
use crate::{sandbox, session};

const BACKLOG: i32 = 8;

/// Where the spawner lives, both absolute.
#[derive(Debug, Clone)]
pub struct Settings {
    pub socket: PathBuf,
    pub run_directory: PathBuf,
}

/// Serves until it is told to end. Sandboxes live on.
pub fn run(settings: &Settings) -> Result<(), Failure> {
    if !settings.socket.is_absolute() || !settings.run_directory.is_absolute() {
        let message = "the socket and the run directory must be absolute paths";
        return Err(Failure::new(ErrorCode::Invalid, message));
    }
    sandbox::remember_arguments().step("find the arguments' memory")?;
    umask(Mode::from_raw_mode(0o077));
    let lock = lock(&settings.run_directory)?;
    let signals = Signals::block().step("block signals")?;
    let pins = Pins::open(&settings.run_directory)?;
    session::prepare();
    let listener = listen_on(&settings.socket).step("listen on the spawner's socket")?;
    let mut spawner = Spawner::new(pins, listener, signals).step("read the boot id")?;
    let ended = spawner.serve().step("wait for work")?;
    drop(spawner);
    if ended == Ended::Released {
        pins::release(&settings.run_directory).step("release the namespaces")?;
    }
    match std::fs::remove_file(&settings.socket) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed.step("remove the spawner's socket")?,
    }
    drop(lock);
    Ok(())
}

/// One spawner per run directory. A record lock belongs to the process: children do not keep it.
fn lock(run_directory: &Path) -> Result<File, Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(run_directory)
        .step("make the run directory")?;
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(run_directory.join("spawner.lock"))
        .step("open the lock")?;
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => {
            let message = "another spawner serves this run directory";
            return Err(Failure::new(ErrorCode::Busy, message));
        }
        locked => locked.step("lock the run directory")?,
    }
    Ok(file)
}

fn listen_on(path: &Path) -> io::Result<OwnedFd> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed?,
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&listener, &SocketAddrUnix::new(path)?)?;
    listen(&listener, BACKLOG)?;
    Ok(listener)
}
