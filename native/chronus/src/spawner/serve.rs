//! The loop of the spawner: connections, operations at work, ends of children.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::layers::{list_layers, mount_layer, unmount_layer};
use super::operation::{Caller, Kind, Operation};
use super::peers::Peers;
use super::pins::Pins;
use super::processes::{kill, start_time};
use super::signals::Signals;
use crate::connection::{Incoming, parse};
use crate::protocol::{
    Create, CreateAnswer, Empty, Event, Failure, Hello, ListLayersAnswer, PROTOCOL_VERSION, Role,
    SpawnerRequest, VersionRange,
};
use crate::sandbox::failure::Step;
use crate::{init, sandbox};

/// Creations at work at once; more wait their turn.
const CREATIONS_MAX: usize = 8;
/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The namespaces stay for the next spawner.
    Kept,
    /// The namespaces are to be released.
    Released,
}

/// All that the spawner knows.
pub struct Spawner {
    pins: Pins,
    signals: Signals,
    peers: Peers,
    waiting: VecDeque<(Caller, SpawnerRequest)>,
    operations: Vec<Operation>,
    sandboxes: HashMap<Pid, String>,
    ended: Option<Ended>,
}

impl Spawner {
    pub fn new(pins: Pins, listener: OwnedFd, signals: Signals) -> io::Result<Spawner> {
        let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        let hello = Hello {
            protocol: VersionRange {
                min: PROTOCOL_VERSION,
                max: PROTOCOL_VERSION,
            },
            role: Role::Spawner,
            pid: Some(std::process::id()),
            boot_id: Some(uuid.trim().replace('-', "")),
            sandbox_id: None,
        };
        Ok(Spawner {
            pins,
            signals,
            peers: Peers::new(listener, hello),
            waiting: VecDeque::new(),
            operations: Vec::new(),
            sandboxes: HashMap::new(),
            ended: None,
        })
    }

    /// Serves until `shutdown`, SIGTERM or SIGINT.
    pub fn serve(&mut self) -> io::Result<Ended> {
        loop {
            self.peers.flush();
            if let Some(ended) = self.ended {
                return Ok(ended);
            }
            let woken = self.wait()?;
            if woken.signals && self.signals.take()? {
                self.ended = Some(Ended::Kept);
            }
            self.hear_operations();
            self.reap()?;
            if woken.listener {
                self.peers.accept()?;
            }
            for id in woken.connections {
                self.peers.receive(id);
                while let Some(incoming) = self.peers.next_incoming(id) {
                    self.handle(id, incoming);
                }
            }
            self.start_waiting();
        }
    }

    fn wait(&self) -> io::Result<Woken> {
        let mut polled = vec![
            PollFd::from_borrowed_fd(self.signals.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.peers.listener(), PollFlags::IN),
        ];
        let interests: Vec<_> = self.peers.interests().collect();
        for (_, socket, flags) in &interests {
            polled.push(PollFd::from_borrowed_fd(*socket, *flags));
        }
        let reports = self.operations.iter().filter_map(Operation::report);
        polled.extend(reports.map(|report| PollFd::from_borrowed_fd(report, PollFlags::IN)));
        let next_deadline = self.operations.iter().map(Operation::deadline).min();
        let timeout = next_deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_woken = |index: usize| !polled[index].revents().is_empty();
        let connections = interests.iter().enumerate();
        Ok(Woken {
            signals: is_woken(0),
            listener: is_woken(1),
            connections: connections
                .filter(|(index, _)| is_woken(index + 2))
                .map(|(_, (id, _, _))| *id)
                .collect(),
        })
    }

    fn handle(&mut self, connection: u64, incoming: Incoming) {
        match incoming {
            Incoming::Open { channel, payload } => {
                let caller = Caller {
                    connection,
                    channel,
                };
                match parse(&payload) {
                    Ok(request) => self.take(caller, request),
                    Err(failure) => self.peers.answer::<Empty>(caller, Err(failure)),
                }
            }
            // Operations are short and cannot be given up half-way; their END follows anyway.
            Incoming::Cancel { .. } => {}
            // No operation of the spawner has streams: the bytes are dropped within their credit.
            Incoming::Hello(_)
            | Incoming::Data { .. }
            | Incoming::Eof { .. }
            | Incoming::Credit { .. }
            | Incoming::Accept { .. }
            | Incoming::End { .. } => {}
        }
    }

    fn take(&mut self, caller: Caller, request: SpawnerRequest) {
        match request {
            SpawnerRequest::ListLayers {} => {
                let layers = list_layers(self.pins.nursery());
                self.peers
                    .answer(caller, layers.map(|layers| ListLayersAnswer { layers }));
            }
            SpawnerRequest::Kill(request) => self.peers.answer(caller, kill(&request)),
            SpawnerRequest::Shutdown { release } => {
                self.ended = Some(if release {
                    Ended::Released
                } else {
                    Ended::Kept
                });
                self.peers.answer(caller, Ok(Empty {}));
            }
            request => self.waiting.push_back((caller, request)),
        }
    }

    /// Starts what waits, in order of arrival; layers one at a time, apart from creations.
    fn start_waiting(&mut self) {
        let mut creations = self.at_work(|kind| matches!(kind, Kind::Create { .. }));
        let mut layers = self.at_work(|kind| matches!(kind, Kind::Layer));
        for (caller, request) in std::mem::take(&mut self.waiting) {
            // Whoever asked has gone before the start: nobody would know of a sandbox made now.
            if !self.peers.has(caller.connection) {
                continue;
            }
            let room = match request {
                SpawnerRequest::Create(_) => creations < CREATIONS_MAX,
                _ => layers == 0,
            };
            if !room {
                self.waiting.push_back((caller, request));
                continue;
            }
            match self.start(caller, request) {
                Ok(operation) => {
                    creations += usize::from(matches!(operation.kind, Kind::Create { .. }));
                    layers += usize::from(matches!(operation.kind, Kind::Layer));
                    self.operations.push(operation);
                }
                Err(failure) => self.peers.answer::<Empty>(caller, Err(failure)),
            }
        }
    }

    fn at_work(&self, is_counted: impl Fn(&Kind) -> bool) -> usize {
        let counted = self.operations.iter().filter(|it| is_counted(&it.kind));
        counted.count()
    }

    fn start(&self, caller: Caller, request: SpawnerRequest) -> Result<Operation, Failure> {
        let nursery = self.pins.nursery();
        let started = match request {
            SpawnerRequest::MountLayer(request) => {
                Operation::start(Kind::Layer, caller, 0, |reporter| {
                    reporter.finish(mount_layer(&request, nursery))
                })
            }
            SpawnerRequest::UnmountLayer(request) => {
                Operation::start(Kind::Layer, caller, 0, |reporter| {
                    reporter.finish(unmount_layer(&request, nursery))
                })
            }
            SpawnerRequest::Create(request) => return self.start_create(caller, &request),
            SpawnerRequest::ListLayers {}
            | SpawnerRequest::Kill(_)
            | SpawnerRequest::Shutdown { .. } => unreachable!("answered at once by take()"),
        };
        started.step("start a process")
    }

    fn start_create(&self, caller: Caller, request: &Create) -> Result<Operation, Failure> {
        sandbox::request::check(request)?;
        let kind = Kind::Create {
            sandbox_id: request.sandbox_id.clone(),
            socket_path: request.socket_path.clone(),
        };
        let nursery = self.pins.nursery();
        let started = Operation::start(kind, caller, sandbox::NAMESPACES, |reporter| {
            let built = reporter
                .ready()
                .step("prepare the report")
                .and_then(|ready| sandbox::build(request, nursery, ready, || reporter.bound()));
            match built {
                Ok(context) => init::run(context),
                Err(failure) => reporter.finish::<Empty>(Err(failure)),
            }
        });
        started.step("start a process in new namespaces")
    }

    fn hear_operations(&mut self) {
        let now = Instant::now();
        let mut ready = Vec::new();
        for (index, operation) in self.operations.iter_mut().enumerate() {
            if operation.hear() {
                ready.push(index);
            } else {
                operation.enforce_deadline(now);
            }
        }
        for index in ready.into_iter().rev() {
            let operation = self.operations.swap_remove(index);
            self.become_sandbox(operation);
        }
    }

    fn become_sandbox(&mut self, operation: Operation) {
        let Operation {
            kind, caller, pid, ..
        } = operation;
        let answer = start_time(pid)
            .step("read the start time of init")
            .map(|start_time| CreateAnswer {
                pid: pid.as_raw_nonzero().get().unsigned_abs(),
                start_time,
            });
        if let Kind::Create { sandbox_id, .. } = kind {
            self.sandboxes.insert(pid, sandbox_id);
        }
        self.peers.answer(caller, answer);
    }

    /// Waits for children that ended.
    fn reap(&mut self) -> io::Result<()> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.bury(pid, status),
                Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn bury(&mut self, pid: Pid, status: WaitStatus) {
        if let Some(index) = self.operations.iter().position(|it| it.pid == pid) {
            let mut operation = self.operations.swap_remove(index);
            if operation.hear() {
                // It served and ended before its word was heard.
                self.become_sandbox(operation);
            } else {
                self.conclude(&operation);
                return;
            }
        }
        if let Some(sandbox_id) = self.sandboxes.remove(&pid) {
            self.peers.tell(Event::InitEnded {
                sandbox_id,
                pid: pid.as_raw_nonzero().get().unsigned_abs(),
                exit_code: status.exit_status(),
                signal: status.terminating_signal(),
            });
        }
    }

    /// Answers an operation whose child is gone.
    fn conclude(&mut self, operation: &Operation) {
        let mut result = operation.result();
        if let Kind::Create { socket_path, .. } = &operation.kind
            && operation.has_bound()
        {
            match std::fs::remove_file(socket_path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    result = Err(error).step("remove the socket of a failed creation");
                }
                _ => {}
            }
        }
        self.peers.answer(operation.caller, result);
    }
}

struct Woken {
    signals: bool,
    listener: bool,
    connections: Vec<u64>,
}
