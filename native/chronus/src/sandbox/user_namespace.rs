//! U, the user namespace of a sandbox.
//!
//! A short-lived helper makes it while its effective id is the sandbox's own root on the host. So the
//! kernel counts what U uses (inotify instances, message queues, locked memory, pending signals) against that
//! id and not against the host's root, which all sandboxes would share.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::{CapabilitiesSecureBits, UnshareFlags, set_capabilities_secure_bits};

use crate::process::{Forked, fork};

/// How U is made.
pub struct UserNamespace {
    pub id_base: u32,
    pub id_count: u32,
    pub inotify_instances_max: u32,
}

/// The helper, which may still be setting limits of U.
#[must_use = "U has its limits only once the helper is done"]
pub struct Helper {
    pid: Pid,
}

impl Helper {
    /// Waits until the helper has done its work and is gone.
    pub fn finish(self) -> io::Result<()> {
        let status = waitpid(Some(self.pid), WaitOptions::empty())?;
        match status.and_then(|(_, status)| status.exit_status()) {
            Some(0) => Ok(()),
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Err(io::Error::other("the helper was killed")),
        }
    }
}

/// Makes U and gives its descriptor. `proc` is a procfs of the caller's own pid namespace.
///
/// U can be used at once for ids; the helper goes on beside the caller, which lets it finish before the
/// sandbox serves.
pub fn make(settings: &UserNamespace, proc: BorrowedFd<'_>) -> io::Result<(OwnedFd, Helper)> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let pid = match fork()? {
        Forked::Child => {
            // The other end must be seen to close when the maker dies.
            drop(ours);
            let code = match live_in_namespace(settings, proc, theirs.as_fd()) {
                Ok(()) => 0,
                Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
            };
            crate::process::exit_now(code)
        }
        Forked::Parent(pid) => pid,
    };
    drop(theirs);
    let helper = Helper { pid };
    match map(settings, proc, pid, ours.as_fd()) {
        Ok(namespace) => Ok((namespace, helper)),
        Err(error) => {
            drop(ours);
            // What the helper says of its own failure is nearer to the cause.
            helper.finish()?;
            Err(error)
        }
    }
}

fn map(
    settings: &UserNamespace,
    proc: BorrowedFd<'_>,
    helper: Pid,
    channel: BorrowedFd<'_>,
) -> io::Result<OwnedFd> {
    wait_for_byte(channel)?;
    let helper = helper.as_raw_nonzero();
    let map = format!("0 {} {}\n", settings.id_base, settings.id_count);
    for file in ["uid_map", "gid_map"] {
        write_file(proc, &format!("{helper}/{file}"), &map)?;
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = openat(proc, format!("{helper}/ns/user"), flags, Mode::empty())?;
    rustix::io::write(channel, b"m")?;
    Ok(namespace)
}

fn live_in_namespace(
    settings: &UserNamespace,
    proc: BorrowedFd<'_>,
    channel: BorrowedFd<'_>,
) -> io::Result<()> {
    // Capabilities must survive the change of the effective id: some kernels ask for them to unshare.
    set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP)?;
    // SAFETY: setresuid takes three integers; -1 leaves an id as it is.
    if unsafe { libc::syscall(libc::SYS_setresuid, -1, settings.id_base, -1) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new user namespace shares no descriptor table with anybody.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER)? };
    rustix::io::write(channel, b"n")?;
    wait_for_byte(channel)?;
    let instances = settings.inotify_instances_max.to_string();
    write_file(proc, "sys/user/max_inotify_instances", &instances)?;
    // The filter refuses nested namespaces; this holds for processes without it as well.
    write_file(proc, "sys/user/max_user_namespaces", "0")
}

fn wait_for_byte(channel: BorrowedFd<'_>) -> io::Result<()> {
    match rustix::io::read(channel, &mut [0_u8; 1])? {
        0 => Err(io::ErrorKind::BrokenPipe.into()),
        _ => Ok(()),
    }
}

/// Writes a file of procfs in one call.
pub fn write_file(proc: BorrowedFd<'_>, path: &str, content: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(proc, path, flags, Mode::empty())?;
    let mut file = std::fs::File::from(file);
    file.write_all(content.as_bytes())
}
