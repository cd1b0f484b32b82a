//! The system call filter of sessions.

use std::io;
use std::sync::OnceLock;

use libc::sock_filter;

use super::assembler::{Action, assemble};
use super::calls::{ALLOWED, ALLOWED_UNNAMED, PRETENDED, REFUSED};

/// Numbers from here on do not exist for a session (x32 calls have bit 30 set, and are among them).
const NUMBERS: usize = 512;

const EPERM: u16 = libc::EPERM as u16;
const ENOSYS: u16 = libc::ENOSYS as u16;
const EAFNOSUPPORT: u16 = libc::EAFNOSUPPORT as u16;

const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// Typing into another's terminal, console operations, and line disciplines (rarely used kernel code).
const REFUSED_IOCTLS: &[u32] = &[
    libc::TIOCSTI as u32,
    libc::TIOCLINUX as u32,
    libc::TIOCSETD as u32,
];

/// Raw packets need rights over the network namespace that nobody inside has; other families are rarely used
/// kernel code.
const SOCKET_FAMILIES: &[u32] = &[
    libc::AF_UNIX as u32,
    libc::AF_INET as u32,
    libc::AF_INET6 as u32,
    libc::AF_NETLINK as u32,
];

/// The compiled filter; the first call compiles it.
pub fn program() -> &'static [sock_filter] {
    static PROGRAM: OnceLock<Vec<sock_filter>> = OnceLock::new();
    PROGRAM.get_or_init(|| assemble(&actions(), Action::Fail(ENOSYS)))
}

/// Loads the filter into the calling thread, for good. Needs no_new_privs or SYS_ADMIN in its user namespace.
pub fn load() -> io::Result<()> {
    let filter = program();
    let length = u16::try_from(filter.len()).expect("a filter has at most 4,096 instructions");
    let description = libc::sock_fprog {
        len: length,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads `description` and the instructions behind it during the call only.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const description,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn actions() -> Vec<Action> {
    let mut actions = vec![Action::Fail(ENOSYS); NUMBERS];
    let mut set = |number: i64, action: Action| {
        let index = usize::try_from(number).expect("numbers of system calls are not negative");
        actions[index] = action;
    };
    for &number in ALLOWED.iter().chain(ALLOWED_UNNAMED) {
        set(number, Action::Allow);
    }
    for &number in REFUSED {
        set(number, Action::Fail(EPERM));
    }
    for &number in PRETENDED {
        set(number, Action::Fail(0));
    }
    // clone3 hides its flags behind a pointer: without it, libraries use clone.
    set(libc::SYS_clone3, Action::Fail(ENOSYS));
    set(
        libc::SYS_clone,
        Action::FailOnBits {
            argument: 0,
            mask: NAMESPACE_FLAGS,
            error: EPERM,
        },
    );
    set(
        libc::SYS_ioctl,
        Action::FailOnValues {
            argument: 1,
            values: REFUSED_IOCTLS,
            error: EPERM,
        },
    );
    for number in [libc::SYS_socket, libc::SYS_socketpair] {
        let families = Action::FailUnlessValues {
            argument: 0,
            values: SOCKET_FAMILIES,
            error: EAFNOSUPPORT,
        };
        set(number, families);
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOW: u32 = 0x7fff_0000;
    const X86_64: u32 = 0xc000_003e;

    /// Runs the program as the kernel would; only the instructions that the assembler makes.
    fn verdict(architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(number.to_le_bytes());
        data.extend(architecture.to_le_bytes());
        data.extend(0_u64.to_le_bytes());
        for argument in arguments {
            data.extend(argument.to_le_bytes());
        }
        let (program, mut accumulator, mut at) = (program(), 0_u32, 0_usize);
        loop {
            let step = program[at];
            at += 1;
            let code = u32::from(step.code);
            let taken = match code & 0xf7 {
                0x20 => {
                    let offset = step.k as usize;
                    accumulator = u32::from_le_bytes(data[offset..offset + 4].try_into().unwrap());
                    continue;
                }
                0x06 => return step.k,
                0x05 => {
                    at += step.k as usize;
                    continue;
                }
                0x15 => accumulator == step.k,
                0x35 => accumulator >= step.k,
                0x45 => accumulator & step.k != 0,
                other => panic!("unexpected instruction {other:#x}"),
            };
            at += usize::from(if taken { step.jt } else { step.jf });
        }
    }

    fn error(number: u16) -> u32 {
        0x0005_0000 | u32::from(number)
    }

    fn of(number: i64, arguments: [u64; 6]) -> u32 {
        verdict(X86_64, u32::try_from(number).unwrap(), arguments)
    }

    #[test]
    fn every_listed_call_gets_its_action_and_all_others_do_not_exist() {
        let special = [
            libc::SYS_clone,
            libc::SYS_ioctl,
            libc::SYS_socket,
            libc::SYS_socketpair,
        ];
        for number in (0..2_000).chain([0x4000_0000, 0x4000_003b]) {
            if special.contains(&number) {
                continue;
            }
            let expected = if REFUSED.contains(&number) {
                error(EPERM)
            } else if PRETENDED.contains(&number) {
                error(0)
            } else if ALLOWED.contains(&number) || ALLOWED_UNNAMED.contains(&number) {
                ALLOW
            } else {
                error(ENOSYS)
            };
            assert_eq!(of(number, [0; 6]), expected, "system call {number}");
        }
    }

    #[test]
    fn no_call_is_in_two_lists() {
        for number in ALLOWED.iter().chain(ALLOWED_UNNAMED) {
            assert!(!REFUSED.contains(number), "{number} is allowed and refused");
            assert!(!PRETENDED.contains(number));
        }
    }

    #[test]
    fn clone_with_any_namespace_flag_is_refused_and_threads_are_not() {
        for bit in [17, 25, 26, 27, 28, 29, 30] {
            let flags = (1_u64 << bit) | 17;
            assert_eq!(of(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]), error(EPERM));
        }
        let thread = 0x003d_0f00;
        assert_eq!(of(libc::SYS_clone, [thread, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(of(libc::SYS_clone3, [0; 6]), error(ENOSYS));
    }

    #[test]
    fn dangerous_ioctls_are_refused_whatever_the_high_half() {
        let request = u64::from(REFUSED_IOCTLS[0]);
        for high in [0_u64, 1 << 32, u64::MAX << 32] {
            assert_eq!(
                of(libc::SYS_ioctl, [0, high | request, 0, 0, 0, 0]),
                error(EPERM)
            );
        }
        assert_eq!(of(libc::SYS_ioctl, [0, 0x5413, 0, 0, 0, 0]), ALLOW);
    }

    #[test]
    fn only_common_socket_families_exist() {
        for family in 0..64_u64 {
            let expected = if SOCKET_FAMILIES.contains(&(family as u32)) {
                ALLOW
            } else {
                error(EAFNOSUPPORT)
            };
            assert_eq!(of(libc::SYS_socket, [family, 0, 0, 0, 0, 0]), expected);
            assert_eq!(of(libc::SYS_socketpair, [family, 0, 0, 0, 0, 0]), expected);
        }
    }

    #[test]
    fn other_architectures_are_killed_and_the_program_is_short() {
        assert_eq!(verdict(0x4000_0003, 1, [0; 6]), 0x8000_0000);
        assert!(program().len() < 300, "{} instructions", program().len());
    }
}
