//! Init as pid 1 of plain namespaces over the host's own root, with groups of its own.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use chronus::context::{SandboxContext, Service};
use rustix::fs::{Mode, OFlags};

/// First id of the sandbox's range.
pub const ID_BASE: u32 = 1_000_000_000;
pub const MEMORY_BYTES: u64 = 96 * 1024 * 1024;
pub const PIDS_MAX: u64 = 300;
pub const SERVICE_PORT: u16 = 8399;

pub struct Sandbox {
    pub directory: PathBuf,
    pub groups: PathBuf,
    limits: Vec<PathBuf>,
    outer: i32,
}

impl Sandbox {
    pub fn socket(&self) -> PathBuf {
        self.directory.join("init.sock")
    }

    /// A directory that belongs to the sandbox's root.
    pub fn files(&self) -> PathBuf {
        self.directory.join("files")
    }

    pub fn output(&self) -> PathBuf {
        self.directory.join("output")
    }

    /// Groups of commands that exist.
    pub fn commands(&self) -> usize {
        let entries = fs::read_dir(&self.groups).unwrap();
        entries
            .filter(|entry| entry.as_ref().unwrap().file_type().unwrap().is_dir())
            .count()
    }

    pub fn start() -> Self {
        let name = format!("chronus-test-{}", std::process::id());
        let directory = std::env::temp_dir().join(&name);
        fs::create_dir_all(directory.join("files")).unwrap();
        fs::create_dir_all(directory.join("output")).unwrap();
        std::os::unix::fs::chown(directory.join("files"), Some(ID_BASE), Some(ID_BASE)).unwrap();
        let groups = cgroup2().join(&name);
        fs::create_dir(&groups).unwrap();
        let limits: Vec<PathBuf> = ["memory", "pids"]
            .map(|controller| Path::new("/sys/fs/cgroup").join(controller).join(&name))
            .into();
        for limit in &limits {
            fs::create_dir(limit).unwrap();
        }
        fs::write(
            limits[0].join("memory.limit_in_bytes"),
            MEMORY_BYTES.to_string(),
        )
        .unwrap();
        fs::write(limits[1].join("pids.max"), PIDS_MAX.to_string()).unwrap();
        let mut sandbox = Self {
            directory,
            groups,
            limits,
            outer: 0,
        };
        let listener = UnixListener::bind(sandbox.socket()).unwrap();
        let (ready_read, ready_write) = rustix::pipe::pipe().unwrap();
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            0 => {
                drop(ready_read);
                sandbox.become_outer(listener, ready_write)
            }
            pid => sandbox.outer = pid,
        }
        drop(ready_write);
        let mut byte = [0];
        let count = rustix::io::read(&ready_read, &mut byte).unwrap();
        assert_eq!((count, byte), (1, *b"R"), "init did not get ready");
        sandbox
    }

    /// Makes the namespaces and init, and waits for init.
    fn become_outer(&self, listener: UnixListener, ready: OwnedFd) -> ! {
        let user_namespace = user_namespace();
        // SAFETY: this process has one thread and exits below.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET;
            assert_eq!(libc::unshare(flags), 0);
            let pid = libc::fork();
            if pid == 0 {
                self.become_init(listener, ready, user_namespace);
            }
            drop(ready);
            let mut status = 0;
            libc::waitpid(pid, &raw mut status, 0);
            libc::_exit(libc::WEXITSTATUS(status));
        }
    }

    fn become_init(&self, listener: UnixListener, ready: OwnedFd, user_namespace: OwnedFd) -> ! {
        mount("none", "/", None, libc::MS_REC | libc::MS_PRIVATE);
        mount("proc", "/proc", Some("proc"), 0);
        loopback_up();
        // SAFETY: SIGPIPE is set as the Rust runtime sets it; descriptors 0 to 2 become /dev/null.
        unsafe {
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            libc::dup2(null, 0);
            libc::dup2(null, 1);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::close(null);
        }
        let directory = |path: &Path| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty()).unwrap()
        };
        let file = |path: PathBuf, flags: OFlags| {
            rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).unwrap()
        };
        let procs = self.limits.iter();
        chronus::init::run(SandboxContext {
            sandbox_id: "sbtest".into(),
            listener: listener.into(),
            user_namespace,
            id_base: ID_BASE,
            runner_procs: procs
                .map(|limit| file(limit.join("cgroup.procs"), OFlags::WRONLY))
                .collect(),
            commands_cgroup: directory(&self.groups),
            oom_file: Some(file(
                self.limits[0].join("memory.oom_control"),
                OFlags::RDONLY,
            )),
            output_directory: directory(&self.output()),
            open_files_max: 1024,
            services: vec![Service {
                name: "model".into(),
                port: SERVICE_PORT,
            }],
            ready,
        })
    }

    /// Kills the runner as the OOM killer would, and waits until it is reaped.
    pub fn kill_runner(&self) {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let path = entry.path();
            let comm = fs::read_to_string(path.join("comm")).unwrap_or_default();
            let groups = fs::read_to_string(path.join("cgroup")).unwrap_or_default();
            let name = self.directory.file_name().unwrap().to_str().unwrap();
            if comm == "runner\n" && groups.contains(name) {
                let pid = entry.file_name().to_str().unwrap().parse().unwrap();
                // SAFETY: it is the runner of this test.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                crate::commands::eventually(|| !path.exists());
            }
        }
    }

    /// Waits for init's exit code.
    pub fn wait(&mut self) -> i32 {
        let mut status = 0;
        // SAFETY: the process is our child.
        unsafe { libc::waitpid(self.outer, &raw mut status, 0) };
        self.outer = 0;
        libc::WEXITSTATUS(status)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if self.outer > 0 {
            let children = format!("/proc/{0}/task/{0}/children", self.outer);
            let children = fs::read_to_string(children).unwrap_or_default();
            for pid in children.split_whitespace() {
                // SAFETY: it is init of this test.
                unsafe { libc::kill(pid.parse().unwrap(), libc::SIGKILL) };
            }
            self.wait();
        }
        for entry in fs::read_dir(&self.groups).into_iter().flatten().flatten() {
            // Files of the group cannot be removed, and need not be.
            let _ = fs::remove_dir(entry.path());
        }
        for group in self.limits.iter().chain([&self.groups]) {
            if let Err(error) = fs::remove_dir(group) {
                eprintln!("{}: {error}", group.display());
            }
        }
        fs::remove_dir_all(&self.directory).unwrap();
    }
}

/// Why the tests cannot run here, if so.
pub fn missing() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root");
    }
    for controller in ["memory", "pids"] {
        let path = Path::new("/sys/fs/cgroup")
            .join(controller)
            .join("cgroup.procs");
        if !path.exists() {
            return Some("needs cgroup v1 controllers memory and pids");
        }
    }
    None
}

fn cgroup2() -> PathBuf {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mount = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    let mount = mount.expect("a cgroup2 mount").split(' ').nth(1);
    PathBuf::from(mount.unwrap())
}

fn user_namespace() -> OwnedFd {
    let (read, write) = rustix::pipe::pipe().unwrap();
    // SAFETY: this process has one thread; the child only waits to be killed.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: as above.
        unsafe {
            libc::unshare(libc::CLONE_NEWUSER);
            rustix::io::write(&write, b"1").unwrap();
            loop {
                libc::pause();
            }
        }
    }
    rustix::io::read(&read, &mut [0]).unwrap();
    for map in ["uid_map", "gid_map"] {
        fs::write(format!("/proc/{pid}/{map}"), format!("0 {ID_BASE} 65536")).unwrap();
    }
    let namespace = fs::File::open(format!("/proc/{pid}/ns/user")).unwrap();
    // SAFETY: the process is our child.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
    namespace.into()
}

fn mount(source: &str, target: &str, kind: Option<&str>, flags: libc::c_ulong) {
    let text = |text: &str| CString::new(text).unwrap();
    let kind = kind.map(text);
    let kind = kind.as_ref().map_or(std::ptr::null(), |kind| kind.as_ptr());
    // SAFETY: all strings live for the call.
    let result = unsafe {
        libc::mount(
            text(source).as_ptr(),
            text(target).as_ptr(),
            kind,
            flags,
            std::ptr::null(),
        )
    };
    assert_eq!(
        result,
        0,
        "mount {target}: {}",
        std::io::Error::last_os_error()
    );
}

fn loopback_up() {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    // SAFETY: an all-zero ifreq is valid; the ioctl reads it.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap();
        let result = libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request);
        assert_eq!(result, 0);
    }
}
