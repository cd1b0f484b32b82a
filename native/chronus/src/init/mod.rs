//! Init of a sandbox: pid 1, which serves the edge. See the crate's README for the parts.

mod channels;
mod command;
mod end;
mod exec;
pub mod files;
mod group;
mod input;
pub mod output;
mod peers;
mod poll;
mod reap;
mod requests;
mod runner;
mod services;
mod shutdown;
mod timers;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::process::{DumpableBehavior, Resource, Rlimit};

use crate::context::SandboxContext;
use channels::Use;
use command::Table;
use files::operation::Operation;
use group::Groups;
use output::{Limits, OutputStore};
use peers::Peers;
use poll::{Poll, Token};
use runner::{Runner, RunnerParts};
use services::Services;
use timers::{Timer, Timers};

/// Serves the edge until it is told to stop. Called as pid 1 in the final root and namespaces.
pub fn run(context: SandboxContext) -> ! {
    let code = match Init::start(context).and_then(|mut init| init.serve()) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("chronus init: {error}");
            70
        }
    };
    std::process::exit(code)
}

enum Never {}

/// All state of init. Single-threaded; nothing in it ever waits but the poll.
struct Init {
    poll: Poll,
    signals: OwnedFd,
    peers: Peers,
    /// What each open channel of the current connection is for.
    uses: HashMap<u32, Use>,
    /// Channels that may have something to send.
    ready: VecDeque<u32>,
    runner: Runner,
    /// What each child of ours belongs to, but the runner and orphans.
    children: HashMap<i32, Owner>,
    commands: Table,
    groups: Groups,
    oom_file: Option<OwnedFd>,
    store: OutputStore,
    operations: HashMap<u64, Operation>,
    last_operation: u64,
    services: Services,
    timers: Timers,
}

/// What a child process was forked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Command(u64),
    File(u64),
}

impl Owner {
    /// The number under which the runner reports on it.
    fn launch(self) -> u64 {
        match self {
            Self::Command(number) => number * 2,
            Self::File(id) => id * 2 + 1,
        }
    }

    fn of_launch(launch: u64) -> Self {
        match launch % 2 {
            0 => Self::Command(launch / 2),
            _ => Self::File(launch / 2),
        }
    }
}

impl Init {
    fn start(context: SandboxContext) -> io::Result<Self> {
        // Nobody inside may trace this process or look into it, whatever ids it shares.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        rustix::thread::set_name(c"init")?;
        raise_open_files()?;
        let mut runner = Runner::new(RunnerParts {
            user_namespace: context.user_namespace,
            procs: context.runner_procs,
            open_files_max: context.open_files_max,
        });
        runner.ensure()?;
        let poll = Poll::new()?;
        let signals = reap::child_signals()?;
        poll.add(&signals, Token::Signals, EventFlags::IN)?;
        if let Some(socket) = runner.fd() {
            poll.add(
                socket,
                Token::Runner,
                EventFlags::IN | EventFlags::OUT | EventFlags::ET,
            )?;
        }
        let peers = Peers::start(context.listener, context.sandbox_id, &poll)?;
        let services = Services::start(&context.services, &poll)?;
        let init = Self {
            poll,
            signals,
            peers,
            uses: HashMap::new(),
            ready: VecDeque::new(),
            runner,
            children: HashMap::new(),
            commands: Table::default(),
            groups: Groups::new(context.commands_cgroup),
            oom_file: context.oom_file,
            store: OutputStore::new(context.output_directory, Limits::default()),
            operations: HashMap::new(),
            last_operation: 0,
            services,
            timers: Timers::new(),
        };
        rustix::io::write(&context.ready, b"R")?;
        Ok(init)
    }

    fn serve(&mut self) -> io::Result<Never> {
        loop {
            for (token, flags) in self.poll.wait(self.timers.next_in())? {
                self.dispatch(token, flags);
            }
            while let Some(timer) = self.timers.pop_due() {
                self.on_timer(timer);
            }
            self.pump();
            self.flush();
        }
    }

    fn dispatch(&mut self, token: Token, flags: EventFlags) {
        match token {
            Token::Signals => self.on_child_signal(),
            Token::Listener => self.accept_peers(),
            Token::Peer(id) => self.on_peer(id, flags),
            Token::Runner => {
                self.take_reports();
                self.runner.flush();
            }
            Token::Stdin(number) => self.write_input(number),
            Token::Output(number, source) => self.read_output(number, source),
            Token::Group(number) => self.check_group(number),
            Token::File(id) => self.on_file_socket(id),
            Token::ServiceListener(index) => self.accept_service(index),
            Token::Service(id) => self.on_service_socket(id),
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Timeout(number) => self.on_timeout(number),
            Timer::Vanish(number) => self.on_not_vanished(number),
            Timer::Expire(number) => self.expire(number),
            Timer::File(id) => self.check_progress(id),
        }
    }

    /// Starts a runner if there is none, so that what is submitted next is done.
    fn ensure_runner(&mut self) -> io::Result<()> {
        if self.runner.ensure()?
            && let Some(socket) = self.runner.fd()
        {
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            self.poll.add(socket.as_fd(), Token::Runner, flags)?;
        }
        Ok(())
    }
}

/// A command needs up to four descriptors here, and sessions get a limit of their own.
fn raise_open_files() -> io::Result<()> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    Ok(rustix::process::setrlimit(Resource::Nofile, raised)?)
}

/// Random bytes as hexadecimal digits, two each.
fn random_hex(bytes: usize) -> String {
    let mut buffer = vec![0u8; bytes];
    // SAFETY: the buffer is as long as said. So few bytes never come short once the kernel has booted.
    unsafe { libc::getrandom(buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    buffer.iter().map(|byte| format!("{byte:02x}")).collect()
}
