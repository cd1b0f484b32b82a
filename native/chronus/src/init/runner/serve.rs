//! The runner's process: joins the limits, then forks what init asks for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::{Resource, Rlimit};

use super::fork::{self, Forked, Parent};
use super::wire::{self, Launch, LaunchNumber, Report};
use super::{RunnerParts, keep_only};
use crate::init::files::helper;
use crate::session;

/// Runs as the runner. Called in a fresh child of init; keeps nothing of init's descriptors but what it is given.
pub fn start(socket: OwnedFd, parts: &RunnerParts) -> ! {
    match prepare(&socket, parts) {
        // SAFETY: `prepare` put the socket and the user namespace there, and nothing else owns them.
        Ok(()) => unsafe { serve(&OwnedFd::from_raw_fd(3), &OwnedFd::from_raw_fd(4)) },
        Err(_) => fork::exit(71),
    }
}

fn prepare(socket: &OwnedFd, parts: &RunnerParts) -> io::Result<()> {
    // What init blocks and what Rust ignores must not reach a program.
    session::reset_signals()?;
    session::prepare();
    for procs in &parts.procs {
        rustix::io::pwrite(procs, b"0", 0)?;
    }
    keep_only(&[socket.as_fd(), parts.user_namespace.as_fd()])?;
    rustix::thread::set_name(c"runner")?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let limit = |value| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    rustix::process::setrlimit(Resource::Nofile, limit(parts.open_files_max))?;
    // Core files would be the host's business: its pattern may name a program of the host.
    rustix::process::setrlimit(Resource::Core, limit(0))?;
    Ok(())
}

fn serve(socket: &OwnedFd, user_namespace: &OwnedFd) -> ! {
    let mut buffer = vec![0; wire::PACKET_BYTES_MAX];
    loop {
        match wire::receive_launch(socket.as_fd(), &mut buffer) {
            Ok(Some((number, launch, descriptors))) => {
                let report = fork_one(
                    number,
                    launch,
                    descriptors,
                    [socket.as_fd(), user_namespace.as_fd()],
                );
                if report.send(socket.as_fd()).is_err() {
                    fork::exit(72);
                }
            }
            Ok(None) => fork::exit(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => fork::exit(73),
        }
    }
}

fn fork_one(
    number: LaunchNumber,
    launch: Launch,
    descriptors: Vec<OwnedFd>,
    [socket, user_namespace]: [BorrowedFd<'_>; 2],
) -> Report {
    let cgroup = match &launch {
        Launch::Session(_) => descriptors.first().map(AsFd::as_fd),
        Launch::File(_) => None,
    };
    match fork::fork(cgroup, Parent::ParentOfCaller) {
        Ok(Forked::Parent(pid)) => Report::Forked {
            launch: number,
            pid,
        },
        Err(error) => Report::NotForked {
            launch: number,
            text: why_not_forked(&error),
        },
        Ok(Forked::Child) => {
            let pid = rustix::process::getpid().as_raw_nonzero().get();
            let forked = Report::Forked {
                launch: number,
                pid,
            };
            if forked.send(socket).is_err() {
                fork::exit(74);
            }
            match launch {
                Launch::Session(launch) => {
                    let text = super::session::start(&launch, &descriptors, user_namespace);
                    let report = Report::NotStarted {
                        launch: number,
                        text,
                    };
                    // Init that does not hear of it still sees the exit code.
                    let _ = report.send(socket);
                    fork::exit(127)
                }
                Launch::File(launch) => helper::start(launch, descriptors, user_namespace),
            }
        }
    }
}

fn why_not_forked(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => "the sandbox is at its limit of processes".into(),
        Some(libc::ENOMEM) => "the sandbox is out of memory".into(),
        _ => format!("cannot fork: {error}"),
    }
}
