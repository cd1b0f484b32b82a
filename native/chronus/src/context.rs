//! What the creation of a sandbox hands to its init.

use std::os::fd::OwnedFd;

/// A service of the edge that processes inside may reach on the loopback interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub name: String,
    pub port: u16,
}

/// All that init owns when it starts as pid 1 in the sandbox's final root and namespaces.
///
/// Every descriptor is close-on-exec. Nothing else is open but 0, 1 and 2, which are `/dev/null`.
/// No signal is blocked or handled; SIGPIPE is ignored, as Rust's runtime has it (`session::enter` resets it).
/// Capabilities on the host are reduced to what sessions, cgroups and output files need (`sandbox/hygiene.rs`).
#[derive(Debug)]
pub struct SandboxContext {
    pub sandbox_id: String,
    /// Listening unix stream socket, bound on the host's file system before the root changed.
    pub listener: OwnedFd,
    /// The user namespace U of the sandbox: it maps ids 0 to 65,535 to `id_base` and up.
    pub user_namespace: OwnedFd,
    pub id_base: u32,
    /// `cgroup.procs` files open for writing; the runner writes `0` to each.
    pub runner_procs: Vec<OwnedFd>,
    /// Directory on the v2 hierarchy in which a group per command is made.
    pub commands_cgroup: OwnedFd,
    /// The sandbox's oom_kill counter, open for reading: v1 `memory.oom_control` or v2 `memory.events`.
    pub oom_file: Option<OwnedFd>,
    /// Directory on the host in which the output of commands is stored.
    pub output_directory: OwnedFd,
    pub open_files_max: u64,
    pub services: Vec<Service>,
    /// Init writes the one byte `R` here once it serves, and closes it.
    pub ready: OwnedFd,
}
