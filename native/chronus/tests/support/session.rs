//! A session in a sandbox, entered as its runner would, without the help of its init.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use chronus::process::{Forked, exit_now, fork};
use chronus::session::{self, Credentials};
use rustix::process::{WaitOptions, waitpid};
use rustix::thread::move_into_link_name_space;

/// How a session runs.
#[derive(Clone, Copy)]
pub struct Session {
    pub init: u32,
    pub uid: u32,
    pub no_new_privs: bool,
}

impl Session {
    pub fn of_root(init: u32) -> Session {
        Session {
            init,
            uid: 0,
            no_new_privs: false,
        }
    }

    /// Runs a program inside and gives its `name=value` lines.
    pub fn run(self, program: &str, arguments: &[&str]) -> HashMap<String, String> {
        let mut command = self
            .command(program, arguments)
            .expect("the sandbox is there");
        let output = command.output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{:?}: {text}", output);
        let lines = text.lines().filter_map(|line| line.split_once('='));
        lines
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    /// A program that will run inside.
    pub fn command(self, program: &str, arguments: &[&str]) -> io::Result<Command> {
        session::prepare();
        let namespaces: Vec<File> = ["net", "ipc", "uts", "pid", "mnt"]
            .into_iter()
            .map(|name| File::open(format!("/proc/{}/ns/{name}", self.init)))
            .collect::<io::Result<_>>()?;
        let user_namespace = user_namespace_of(self.init)?;
        let credentials = Credentials {
            uid: self.uid,
            gid: self.uid,
            groups: Vec::new(),
        };
        let enter = move || {
            for namespace in &namespaces {
                move_into_link_name_space(namespace.as_fd(), None)?;
            }
            // Only a child is born in the process namespace that was joined.
            if let Forked::Parent(child) = fork()? {
                // What the caller waits to see closed must not stay open here.
                // SAFETY: this process uses no descriptor any more.
                unsafe { libc::close_range(0, u32::MAX, 0) };
                let status = waitpid(Some(child), WaitOptions::empty())?;
                exit_now(status.and_then(|(_, it)| it.exit_status()).unwrap_or(99));
            }
            // What a test's own parents left open is not the sandbox's.
            let flags = libc::CLOSE_RANGE_CLOEXEC.cast_signed();
            // SAFETY: this only marks descriptors to be closed at exec.
            unsafe { libc::close_range(3, u32::MAX, flags) };
            session::enter(user_namespace.as_fd(), &credentials, self.no_new_privs)
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir("/").env_clear();
        // SAFETY: between fork and exec the closure makes system calls; what it allocates and locks, no other
        // thread of the parent could hold, as the allocator is made safe over fork by the C library.
        unsafe { command.pre_exec(enter) };
        Ok(command)
    }
}

/// Init holds U open; this is the descriptor of it that the host's root finds.
fn user_namespace_of(init: u32) -> io::Result<File> {
    for entry in fs::read_dir(format!("/proc/{init}/fd"))? {
        let path = entry?.path();
        let target = fs::read_link(&path)?;
        if target.to_string_lossy().starts_with("user:[") {
            return File::open(path);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}
