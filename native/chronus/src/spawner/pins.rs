//! The two mount namespaces that outlive a spawner, pinned by binds of them in `<run directory>/ns`.
//!
//! `nursery` has the layers and nothing else; `empty` has nothing. A new spawner enters those that it finds.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, StatxAttributes, StatxFlags, fstatfs, open, statx};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_change, unmount};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{WaitOptions, chdir, pivot_root, waitpid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::process::{Forked, exit_now, fork};
use crate::protocol::Failure;
use crate::sandbox::Nursery;
use crate::sandbox::failure::Step;
use crate::sandbox::mounts::{attach_at, new_mount};
use crate::sandbox::root::STAGE;

const NSFS_MAGIC: i64 = 0x6e73_6673;
const LAYERS: &str = "layers";

/// The pinned namespaces, open.
pub struct Pins {
    nursery: OwnedFd,
    layers: OwnedFd,
    empty: OwnedFd,
}

impl Pins {
    /// Finds or makes both namespaces. The process is on its host's root and has one thread.
    pub fn open(run_directory: &Path) -> Result<Pins, Failure> {
        let directory = run_directory.join("ns");
        prepare_directory(&directory).step("prepare the directory of namespaces")?;
        let nursery = pinned(&directory, "nursery", LAYERS).step("pin the nursery namespace")?;
        let empty = pinned(&directory, "empty", STAGE).step("pin the empty namespace")?;
        let layers = open_inside(nursery.as_fd(), LAYERS).step("open the nursery's layers")?;
        Ok(Pins {
            nursery,
            layers,
            empty,
        })
    }

    pub fn nursery(&self) -> Nursery<'_> {
        Nursery {
            namespace: self.nursery.as_fd(),
            layers: self.layers.as_fd(),
            empty: self.empty.as_fd(),
        }
    }
}

/// Takes the pins away: layers that no sandbox uses are unmounted with the last member of the nursery.
pub fn release(run_directory: &Path) -> io::Result<()> {
    let directory = run_directory.join("ns");
    for path in [
        directory.join("nursery"),
        directory.join("empty"),
        directory.clone(),
    ] {
        match unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            // Not there, or not a mount: already released.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// True when `name` of `directory` is the root of a mount.
pub fn is_mount(directory: BorrowedFd<'_>, name: &Path) -> io::Result<bool> {
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    let found = statx(directory, name, flags, StatxFlags::empty())?;
    Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

fn prepare_directory(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    if !is_mount(CWD, directory)? {
        mount_bind(directory, directory)?;
    }
    // A mount namespace can only be bound where the bind spreads to no other namespace.
    Ok(mount_change(directory, MountPropagationFlags::PRIVATE)?)
}

fn pinned(directory: &Path, name: &str, inner: &str) -> io::Result<OwnedFd> {
    let path = directory.join(name);
    File::create(&path).map(drop).or_else(|error| {
        // A file that stands for a namespace cannot be opened for writing.
        if path.exists() { Ok(()) } else { Err(error) }
    })?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let found = open(&path, flags, Mode::empty())?;
    if fstatfs(&found)?.f_type == NSFS_MAGIC {
        return Ok(found);
    }
    make_namespace(directory, &path, inner)?;
    Ok(open(&path, flags, Mode::empty())?)
}

/// A helper makes the namespace and lives until it is bound.
fn make_namespace(stage: &Path, target: &Path, inner: &str) -> io::Result<()> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let helper = match fork()? {
        Forked::Child => {
            drop(ours);
            let code = match live_in_namespace(stage, inner, theirs.as_fd()) {
                Ok(()) => 0,
                Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
            };
            exit_now(code)
        }
        Forked::Parent(helper) => helper,
    };
    drop(theirs);
    let bound = match rustix::io::read(&ours, &mut [0_u8; 1])? {
        0 => Err(io::ErrorKind::BrokenPipe.into()),
        _ => {
            let source = PathBuf::from(format!("/proc/{}/ns/mnt", helper.as_raw_nonzero()));
            mount_bind(source, target).map_err(io::Error::from)
        }
    };
    drop(ours);
    let status = waitpid(Some(helper), WaitOptions::empty())?;
    match status.and_then(|(_, status)| status.exit_status()) {
        Some(0) => bound,
        Some(error) => Err(io::Error::from_raw_os_error(error)),
        None => Err(io::Error::other("the helper was killed")),
    }
}

fn live_in_namespace(stage: &Path, inner: &str, channel: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: a new mount namespace shares no descriptor table with anybody.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    let options = [("source", "tmpfs"), ("mode", "0755"), ("size", "16m")];
    let root = new_mount("tmpfs", &options, rustix::mount::MountAttrFlags::empty())?;
    let stage = stage.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    attach_at(root.as_fd(), stage)?;
    chdir(stage)?;
    std::fs::create_dir(inner)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::io::write(channel, b"r")?;
    // Ends when the maker has bound the namespace, or died.
    rustix::io::read(channel, &mut [0_u8; 1])?;
    Ok(())
}

/// Opens a directory of another mount namespace and comes back.
fn open_inside(namespace: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let home = open("/proc/self/ns/mnt", flags, Mode::empty())?;
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Mount))?;
    let opened = open(
        Path::new("/").join(name),
        flags | OFlags::DIRECTORY,
        Mode::empty(),
    );
    move_into_link_name_space(home.as_fd(), Some(LinkNameSpaceType::Mount))?;
    Ok(opened?)
}
