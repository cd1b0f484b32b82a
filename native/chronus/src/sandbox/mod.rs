//! Builds the root and the namespaces of a sandbox, as the process that becomes its init.
//!
//! Invariant: until [`build`] returns, nothing outlives this process but the socket's name, which the spawner
//! removes. All other things are descriptors, detached mounts and namespaces that die with it.

mod devices;
pub mod failure;
mod hygiene;
pub mod mounts;
mod network;
mod overlay;
mod proc;
pub mod request;
mod resources;
pub mod root;
mod user_namespace;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::Mode;
use rustix::process::umask;
use rustix::system::sethostname;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use self::devices::{Devices, new_devices};
use self::failure::Step;
use self::overlay::{clone_layers, mount_overlay};
use self::resources::{Resources, Storage, open_listener, open_resources, start_listening};
use self::root::{Mounts, enter_root, furnish};
use self::user_namespace::UserNamespace;
use crate::context::{SandboxContext, Service};
use crate::protocol::{Create, Failure};

pub use self::hygiene::remember_arguments;

/// Namespaces in which the process that builds a sandbox is born. The user namespace is made apart, the mount
/// namespace is a clone of the empty one, and the network namespace comes once the socket is bound.
pub const NAMESPACES: u64 =
    (libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP) as u64;

/// What the spawner holds for all sandboxes.
#[derive(Clone, Copy)]
pub struct Nursery<'fd> {
    /// Mount namespace that has the layers.
    pub namespace: BorrowedFd<'fd>,
    /// Directory of the layers in it.
    pub layers: BorrowedFd<'fd>,
    /// Mount namespace that has nothing.
    pub empty: BorrowedFd<'fd>,
}

/// Builds the sandbox around the calling process, which is pid 1 of [`NAMESPACES`].
///
/// `bound` is called once the socket has its name. `ready` becomes the context's. On failure the process must
/// end, and its death gives everything back.
pub fn build(
    request: &Create,
    nursery: Nursery<'_>,
    ready: OwnedFd,
    bound: impl FnOnce(),
) -> Result<SandboxContext, Failure> {
    umask(Mode::from_raw_mode(0o177));
    // In the host's network namespace: in the sandbox's its path would stand in /proc/net/unix.
    let listener = open_listener(&request.socket_path)?;
    bound();
    network::enter_new().step("make the network namespace")?;
    umask(Mode::empty());
    let Resources {
        runner_procs,
        commands_cgroup,
        oom_file,
        output_directory,
        storage,
    } = open_resources(request)?;
    hygiene::hide().step("hide the process")?;
    sethostname(request.hostname.as_bytes()).step("set the host name")?;
    let proc = proc::new_proc().step("mount procfs")?;
    network::set_up(proc.as_fd(), request.id_base, request.id_count)
        .step("set up the network namespace")?;
    let ids = UserNamespace {
        id_base: request.id_base,
        id_count: request.id_count,
        inotify_instances_max: request.inotify_instances_max,
    };
    let (user_namespace, helper) =
        user_namespace::make(&ids, proc.as_fd()).step("make the user namespace")?;
    let overlay = make_overlay(request, nursery, &storage, user_namespace.as_fd())?;
    drop(storage);
    let settings = Devices {
        id_base: request.id_base,
        shm_bytes: request.shm_bytes,
        ptys_max: request.ptys_max,
    };
    let devices = new_devices(&settings).step("make /dev")?;
    let mounts = Mounts {
        overlay,
        proc,
        devices,
    };
    enter_root(nursery.empty, mounts.overlay.as_fd()).step("enter the root")?;
    // Before procfs becomes read-only, which the helper writes to.
    helper.finish().step("set limits of the user namespace")?;
    furnish(&mounts, request, &settings)?;
    drop(mounts);
    start_listening(listener.as_fd())?;
    let context = SandboxContext {
        sandbox_id: request.sandbox_id.clone(),
        listener,
        user_namespace,
        id_base: request.id_base,
        runner_procs,
        commands_cgroup,
        oom_file,
        output_directory,
        open_files_max: request.open_files_max,
        services: services(request),
        ready,
    };
    hygiene::drop_capabilities().step("drop capabilities")?;
    hygiene::keep_only(&context).step("close descriptors")?;
    Ok(context)
}

fn make_overlay(
    request: &Create,
    nursery: Nursery<'_>,
    storage: &Storage,
    user_namespace: BorrowedFd<'_>,
) -> Result<OwnedFd, Failure> {
    move_into_link_name_space(nursery.namespace, Some(LinkNameSpaceType::Mount))
        .step("enter the nursery")?;
    let lowers = clone_layers(nursery.layers, &request.layers, user_namespace)?;
    mount_overlay(&lowers, storage)
}

fn services(request: &Create) -> Vec<Service> {
    let service = |it: &crate::protocol::ServicePort| Service {
        name: it.name.clone(),
        port: it.port,
    };
    request.services.iter().map(service).collect()
}
