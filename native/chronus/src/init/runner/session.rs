//! The child that becomes a command: standard streams, user namespace, ids, directory, program.

use std::ffi::{CString, NulError};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::users;
use super::wire::SessionLaunch;

const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Executes the command; returns only when that failed, with the reason for people.
///
/// `descriptors` are the command's cgroup, stdout, stderr, and stdin if it has one (else `/dev/null` stays).
pub fn start(
    launch: &SessionLaunch,
    descriptors: &[OwnedFd],
    user_namespace: BorrowedFd<'_>,
) -> String {
    match try_start(launch, descriptors, user_namespace) {
        Ok(never) => match never {},
        Err(text) => text,
    }
}

enum Never {}

fn try_start(
    launch: &SessionLaunch,
    descriptors: &[OwnedFd],
    user_namespace: BorrowedFd<'_>,
) -> Result<Never, String> {
    let program = Program::new(launch).map_err(|_| "a string holds a NUL byte".to_owned())?;
    take_streams(descriptors).map_err(|error| format!("cannot set the streams: {error}"))?;
    rustix::process::setsid().map_err(|error| format!("cannot start a session: {error}"))?;
    users::enter(user_namespace, &launch.user, Some(launch.no_new_privs))?;
    rustix::process::chdir(launch.cwd.as_str())
        .map_err(|errno| format!("cannot enter {}: {}", launch.cwd, io::Error::from(errno)))?;
    let error = program.execute();
    Err(match error.raw_os_error() {
        Some(libc::ENOENT) => format!("{}: not found", launch.argv[0]),
        Some(libc::E2BIG) => format!("{}: the arguments are too long", launch.argv[0]),
        _ => format!("{}: {error}", launch.argv[0]),
    })
}

fn take_streams(descriptors: &[OwnedFd]) -> io::Result<()> {
    let [_, stdout, stderr, rest @ ..] = descriptors else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let stdin = rest.first();
    let streams = [(stdin, 0), (Some(stdout), 1), (Some(stderr), 2)];
    for (stream, at) in streams {
        let Some(stream) = stream else { continue };
        // SAFETY: both are descriptors of this process; 0 to 2 are not owned by Rust values.
        if unsafe { libc::dup2(stream.as_raw_fd(), at) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // Everything is close-on-exec already; this makes it true even of a mistake.
    // SAFETY: only flags of descriptors change.
    if unsafe { libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC.cast_signed()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Arguments, environment and candidates of the program, allocated before anything can fail half-way.
struct Program {
    candidates: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
}

impl Program {
    fn new(launch: &SessionLaunch) -> Result<Self, NulError> {
        let name = launch.argv.first().map_or("", String::as_str);
        let strings = launch.argv.iter().map(|one| CString::new(one.as_str()));
        let pairs = launch.env.iter();
        Ok(Self {
            candidates: candidates(name, launch.env.get("PATH").map(String::as_str))?,
            argv: strings.collect::<Result<_, _>>()?,
            env: pairs
                .map(|(name, value)| CString::new(format!("{name}={value}")))
                .collect::<Result<_, _>>()?,
        })
    }

    /// As `execvpe`: goes on to the next candidate where one is not there or may not be run.
    fn execute(&self) -> io::Error {
        let argv = pointers(&self.argv);
        let env = pointers(&self.env);
        let mut kept = io::Error::from_raw_os_error(libc::ENOENT);
        for candidate in &self.candidates {
            // SAFETY: both arrays end with NULL and point to strings that outlive the call.
            unsafe { libc::execve(candidate.as_ptr(), argv.as_ptr(), env.as_ptr()) };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => {}
                Some(libc::EACCES) => kept = error,
                Some(libc::ENOEXEC) => return self.execute_as_script(candidate, &env),
                _ => return error,
            }
        }
        kept
    }

    /// A text without `#!` is run by the shell, as every shell does it.
    fn execute_as_script(&self, path: &CString, env: &[*const libc::c_char]) -> io::Error {
        let shell = c"/bin/sh";
        let mut argv = vec![shell.as_ptr(), path.as_ptr()];
        argv.extend(self.argv.iter().skip(1).map(|one| one.as_ptr()));
        argv.push(std::ptr::null());
        // SAFETY: as in `execute`.
        unsafe { libc::execve(shell.as_ptr(), argv.as_ptr(), env.as_ptr()) };
        io::Error::last_os_error()
    }
}

fn candidates(name: &str, path: Option<&str>) -> Result<Vec<CString>, NulError> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    if name.contains('/') {
        return Ok(vec![CString::new(name)?]);
    }
    path.unwrap_or(PATH_DEFAULT)
        .split(':')
        .map(|directory| match directory {
            "" => CString::new(name),
            directory => CString::new(format!("{directory}/{name}")),
        })
        .collect()
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    let pointers = strings.iter().map(|one| one.as_ptr());
    pointers.chain([std::ptr::null()]).collect()
}
