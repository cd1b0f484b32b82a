//! The network namespace of a sandbox: loopback only, and root's ports for everybody inside.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::user_namespace::write_file;

/// Enters a network namespace that has nothing but a loopback which is down. Sockets made before stay where they were.
pub fn enter_new() -> io::Result<()> {
    // SAFETY: a new network namespace shares no descriptor table with anybody.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
    Ok(())
}

/// Brings loopback up and lets root inside, who has no rights over this namespace, serve on any port and ping.
pub fn set_up(proc: BorrowedFd<'_>, id_base: u32, id_count: u32) -> io::Result<()> {
    bring_loopback_up()?;
    write_file(proc, "sys/net/ipv4/ip_unprivileged_port_start", "0")?;
    let last = id_base + (id_count - 1);
    let groups = format!("{id_base} {last}");
    write_file(proc, "sys/net/ipv4/ping_group_range", &groups)
}

fn bring_loopback_up() -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (target, &byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *target = byte.cast_signed();
    }
    request.ifr_ifru.ifru_flags =
        i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(io::Error::other)?;
    // SAFETY: SIOCSIFFLAGS reads one ifreq, which lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
