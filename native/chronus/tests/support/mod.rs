//! A node under test: a spawner in a directory of its own, and the edge's side of its protocol.

pub mod edge;
pub mod layer;
pub mod session;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use self::edge::Edge;
use serde_json::{Value, json};

/// Ids far from those that an edge gives out.
const ID_BASE: u32 = 0xe000_0000;
pub const ID_COUNT: u32 = 65_536;

/// Says why a test cannot run here, if it cannot.
pub fn obstacle() -> Option<&'static str> {
    let root = rustix::process::geteuid().is_root();
    if !root {
        return Some("it needs root");
    }
    let found = Command::new("mkfs.erofs")
        .arg("--help")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match found {
        Ok(_) => None,
        Err(_) => Some("it needs mkfs.erofs"),
    }
}

/// Leaves the calling test, with the reason printed, where it cannot run.
#[macro_export]
macro_rules! needs_root_and_erofs {
    () => {
        if let Some(reason) = support::obstacle() {
            println!("skipped: {reason}");
            return;
        }
    };
}

/// A spawner with its files; all is given back when this is dropped.
pub struct Node {
    pub directory: PathBuf,
    cgroup: PathBuf,
    spawner: Child,
    number: u32,
}

impl Node {
    pub fn start() -> Node {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("chronus-test-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(&name);
        fs::create_dir_all(&directory).expect("a directory for the test");
        let binary = directory.join("chronus");
        fs::copy(env!("CARGO_BIN_EXE_chronus"), &binary).expect("a copy of the program");
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o700)).expect("its mode");
        let cgroup = cgroup_root().map_or_else(|| directory.join("cgroup"), |it| it.join(&name));
        fs::create_dir_all(&cgroup).expect("a group for the test");
        let spawner = start_spawner(&directory);
        Node {
            directory,
            cgroup,
            spawner,
            number,
        }
    }

    pub fn spawner_pid(&self) -> u32 {
        self.spawner.id()
    }

    /// Connects, waiting for the spawner to listen.
    pub fn connect(&self) -> Edge {
        let socket = self.directory.join("spawner.sock");
        wait_for("the spawner to listen", || Edge::connect(&socket))
    }

    /// Kills the spawner as a crash would, and starts another.
    pub fn crash_and_restart(&mut self) {
        self.spawner.kill().expect("kill the spawner");
        self.spawner.wait().expect("wait for the spawner");
        self.spawner = start_spawner(&self.directory);
    }

    /// A complete request for the sandbox of this name, with fresh directories.
    pub fn request(&self, id: &str) -> Value {
        let home = self.directory.join(id);
        for part in ["upper", "work", "output"] {
            fs::create_dir_all(home.join(part)).expect("a directory of the sandbox");
        }
        let commands = self.cgroup.join(id);
        fs::create_dir_all(&commands).expect("a group of the sandbox");
        json!({
            "op": "create", "sandboxId": id, "hostname": format!("host-{id}"), "layers": ["base"],
            "upperPath": home.join("upper"), "workPath": home.join("work"),
            "outputPath": home.join("output"), "socketPath": self.socket(id),
            "idBase": self.id_base(id), "idCount": ID_COUNT, "shmBytes": 1 << 20,
            "openFilesMax": 1024, "ptysMax": 4, "inotifyInstancesMax": 8,
            "cgroups": {"procs": [], "commands": commands, "oomFile": null},
            "services": [{"name": "model.internal", "port": 8080}],
        })
    }

    pub fn socket(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.sock"))
    }

    /// The first id of a sandbox on the host, different for each name's last byte.
    pub fn id_base(&self, id: &str) -> u32 {
        let last = u32::from(*id.as_bytes().last().expect("a name"));
        ID_BASE + (self.number * 256 + last) * ID_COUNT
    }

    /// Creates a sandbox from the mounted layer "base" and gives its pid.
    pub fn create(&self, edge: &mut Edge, id: &str) -> u32 {
        let answer = edge.call(self.request(id)).expect("the sandbox is created");
        pid_of(&answer)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut left = sandboxes_of(&self.directory);
        for pid in &left {
            let pid = rustix::process::Pid::from_raw(*pid).expect("a pid");
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        if let Ok(mut edge) = Edge::connect(&self.directory.join("spawner.sock")) {
            let _ = edge.call(json!({"op": "shutdown", "release": true}));
        } else {
            let _ = self.spawner.kill();
        }
        let _ = self.spawner.wait();
        wait_for("the sandboxes to end", || {
            left.retain(|pid| Path::new(&format!("/proc/{pid}")).exists());
            left.is_empty().then_some(()).ok_or("alive")
        });
        remove_groups(&self.cgroup);
        let _ = fs::remove_dir_all(&self.directory);
    }
}

pub fn pid_of(answer: &Value) -> u32 {
    let pid = answer["pid"].as_u64().expect("a pid");
    u32::try_from(pid).expect("a pid fits")
}

/// Repeats until it works, for at most ten seconds.
pub fn wait_for<T, E: std::fmt::Debug>(what: &str, mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(error) if Instant::now() > end => panic!("{what}: {error:?}"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Processes of the host that run the node's own copy of the program, the spawner apart.
pub fn sandboxes_of(directory: &Path) -> Vec<i32> {
    let binary = directory.join("chronus");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("procfs").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|it| it.parse().ok()) else {
            continue;
        };
        let is_ours = fs::read_link(entry.path().join("exe")).is_ok_and(|it| it == binary);
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        // Init is pid 1 inside; its runner has the same arguments.
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let inside = status.lines().find_map(|it| it.strip_prefix("NSpid:"));
        let is_first = inside.is_some_and(|it| it.split_whitespace().last() == Some("1"));
        if is_ours && is_first && command.starts_with(b"init") {
            found.push(pid);
        }
    }
    found
}

/// Lines of the host's mount table that have to do with the directory.
pub fn mounts_of(directory: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("procfs");
    let name = directory.to_str().expect("a plain path");
    let lines = table.lines().filter(|line| line.contains(name));
    lines.map(str::to_owned).collect()
}

fn start_spawner(directory: &Path) -> Child {
    let mut command = Command::new(directory.join("chronus"));
    command
        .arg("spawner")
        .arg("--socket")
        .arg(directory.join("spawner.sock"))
        .arg("--run-directory")
        .arg(directory.join("run"))
        .env("SECRET_OF_THE_HOST", "x");
    // A test beside this one may have forked while the program was being copied, and hold it open.
    wait_for("the spawner to start", || command.spawn())
}

/// Where the v2 hierarchy is mounted, if it is.
fn cgroup_root() -> Option<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let line = table.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

fn remove_groups(group: &Path) {
    let Ok(entries) = fs::read_dir(group) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}
