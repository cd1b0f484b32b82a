//! The bounding set of sessions.

use std::io;

const CHOWN: u32 = 0;
const DAC_OVERRIDE: u32 = 1;
const FOWNER: u32 = 3;
const FSETID: u32 = 4;
const KILL: u32 = 5;
const SETGID: u32 = 6;
const SETUID: u32 = 7;
const SETPCAP: u32 = 8;
const NET_BIND_SERVICE: u32 = 10;
const NET_RAW: u32 = 13;
const IPC_LOCK: u32 = 14;
const SYS_CHROOT: u32 = 18;
const SYS_PTRACE: u32 = 19;
const MKNOD: u32 = 27;
const AUDIT_WRITE: u32 = 29;
const SETFCAP: u32 = 31;

/// What root inside may hold, always relative to the sandbox's own user namespace.
///
/// Left out on purpose: SYS_ADMIN, NET_ADMIN and all that would only widen the reachable kernel code.
/// Namespaces other than U belong to the host, so that even these give no mount, host name or device.
const KEPT: [u32; 16] = [
    CHOWN,
    DAC_OVERRIDE,
    FOWNER,
    FSETID,
    KILL,
    SETGID,
    SETUID,
    SETPCAP,
    NET_BIND_SERVICE,
    NET_RAW,
    IPC_LOCK,
    SYS_CHROOT,
    SYS_PTRACE,
    MKNOD,
    AUDIT_WRITE,
    SETFCAP,
];

/// Drops everything but [`KEPT`] from the bounding set; needs SETPCAP in the caller's user namespace.
pub fn bound() -> io::Result<()> {
    for capability in 0..64 {
        if KEPT.contains(&capability) {
            continue;
        }
        // SAFETY: PR_CAPBSET_DROP takes one integer and touches no memory of ours.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if result == 0 {
            continue;
        }
        let error = io::Error::last_os_error();
        // The first number that this kernel does not know ends the list.
        if error.raw_os_error() == Some(libc::EINVAL) && capability > SETFCAP {
            return Ok(());
        }
        return Err(error);
    }
    Ok(())
}
