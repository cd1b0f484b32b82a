//! What init must not have: a name, handles, rights and memory that say or reach more than it needs.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{DumpableBehavior, set_dumpable_behavior, setsid, umask};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_name};

use crate::context::SandboxContext;

const NAME: &[u8] = b"init";

/// What init and its runner need on the host: cgroups and output files, ids and namespaces of sessions, signals.
const CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::SYS_RESOURCE);

static ARGUMENTS: OnceLock<(usize, usize)> = OnceLock::new();

/// Finds the memory of this process's arguments and environment. Called once, before any fork.
pub fn remember_arguments() -> io::Result<()> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let range = argument_range(&stat).ok_or(io::ErrorKind::InvalidData)?;
    ARGUMENTS.get_or_init(|| range);
    Ok(())
}

/// Fields 48 (arg_start) and 51 (env_end) of `/proc/<pid>/stat`.
fn argument_range(stat: &str) -> Option<(usize, usize)> {
    let (_, fields) = stat.rsplit_once(')')?;
    // The first field after the name is number 3.
    let mut fields = fields.split_ascii_whitespace().skip(48 - 3);
    let start = fields.next()?.parse().ok()?;
    let end = fields.nth(2)?.parse().ok()?;
    (start > 0 && end >= start).then_some((start, end))
}

/// Hides the process from what it will contain: its name, its memory, its terminal.
pub fn hide() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_name(c"init")?;
    if let Some(&(start, end)) = ARGUMENTS.get() {
        let length = end - start;
        let shown = NAME.len().min(length.saturating_sub(1));
        // SAFETY: the kernel put the strings of arguments and environment there, writable and ours alone;
        // this is a forked child with one thread, and nothing here keeps a reference into them.
        let memory = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, length) };
        memory.fill(0);
        memory[..shown].copy_from_slice(&NAME[..shown]);
    }
    setsid()?;
    Ok(())
}

/// Gives up the rights on the host that neither init nor its runner use.
pub fn drop_capabilities() -> io::Result<()> {
    for capability in 0..64_u32 {
        if CAPABILITIES.bits() & (1 << capability) != 0 {
            continue;
        }
        // SAFETY: PR_CAPBSET_DROP takes one integer and touches no memory of ours.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            break;
        }
    }
    let held = rustix::thread::capabilities(None)?.permitted & CAPABILITIES;
    set_capabilities(
        None,
        CapabilitySets {
            effective: held,
            permitted: held,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}

/// Puts `/dev/null` on 0, 1 and 2 and closes all but the descriptors of the context.
pub fn keep_only(context: &SandboxContext) -> io::Result<()> {
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    drop(null);
    umask(Mode::from_raw_mode(0o022));
    let mut kept = descriptors(context);
    kept.sort_unstable();
    let mut first: RawFd = 3;
    for descriptor in kept {
        close_range(first, descriptor - 1)?;
        first = descriptor + 1;
    }
    close_range(first, RawFd::MAX)
}

fn descriptors(context: &SandboxContext) -> Vec<RawFd> {
    let SandboxContext {
        sandbox_id: _,
        listener,
        user_namespace,
        id_base: _,
        runner_procs,
        commands_cgroup,
        oom_file,
        output_directory,
        open_files_max: _,
        services: _,
        ready,
    } = context;
    let single = [
        listener,
        user_namespace,
        commands_cgroup,
        output_directory,
        ready,
    ];
    let all = single.into_iter().chain(runner_procs).chain(oom_file);
    all.map(AsRawFd::as_raw_fd).collect()
}

fn close_range(first: RawFd, last: RawFd) -> io::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: what is closed belongs to the parent's structures, which this child never uses or drops.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_arguments_is_found_behind_any_name() {
        let mut fields: Vec<String> = (3..=52).map(|number| number.to_string()).collect();
        fields[0] = "S".into();
        let stat = format!("7 (a ) b) {}\n", fields.join(" "));
        assert_eq!(argument_range(&stat), Some((48, 51)));
        assert_eq!(argument_range("7 (a) S 1"), None);
    }

    #[test]
    fn the_range_of_this_process_starts_with_its_program() {
        let stat = std::fs::read_to_string("/proc/self/stat").expect("procfs is mounted");
        let (start, end) = argument_range(&stat).expect("the fields are there");
        let command_line = std::fs::read("/proc/self/cmdline").expect("procfs is mounted");
        assert!(end - start >= command_line.len());
    }
}
