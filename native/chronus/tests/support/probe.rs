//! Runs inside a sandbox under test and says what each attempt came to: one `name=result` a line.
//!
//! `probe`: all attempts that change nothing outside. `probe ids`: the ids it runs with. `probe inotify`: how many
//! instances the first user gets, and how many 40 users get; they are held until the input ends.

use std::ffi::CString;
use std::io;

type Attempt = (&'static str, fn() -> i64);

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("ids") => print_ids(),
        Some("inotify") => hold_inotify_instances(),
        _ => print_all(),
    }
}

fn print_ids() {
    // SAFETY: these calls take nothing and cannot fail.
    let (real, effective) = unsafe { (libc::getuid(), libc::geteuid()) };
    println!("uid={real}\neuid={effective}");
}

fn hold_inotify_instances() {
    let mut total = 0;
    for uid in 0..40 {
        call(libc::SYS_setresuid, [-1, 0, -1, 0, 0, 0]);
        call(libc::SYS_setresuid, [-1, uid, -1, 0, 0, 0]);
        let got = count(|| call(libc::SYS_inotify_init1, [0; 6]));
        if uid == 0 {
            println!("first={got}");
        }
        total += got;
    }
    println!("total={total}");
    let held = io::Read::read(&mut io::stdin(), &mut [0_u8; 1]);
    assert_eq!(held.ok(), Some(0), "the input ends");
}

fn print_all() {
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    // One is the directory that is being read.
    println!("descriptors={}", descriptors.saturating_sub(1));
    for (name, attempt) in ATTEMPTS {
        println!("{name}={}", describe(attempt()));
    }
    for path in READS {
        println!("read {path}={}", read_length(path));
    }
    for path in WRITES {
        println!("write {path}={}", describe(open(path, libc::O_WRONLY)));
    }
    print_state();
}

const ATTEMPTS: [Attempt; 40] = [
    ("mount", || mount("tmpfs", "/tmp")),
    ("umount", || {
        call(libc::SYS_umount2, [path("/proc"), 2, 0, 0, 0, 0])
    }),
    ("fsopen", || {
        call(libc::SYS_fsopen, [path("tmpfs"), 0, 0, 0, 0, 0])
    }),
    ("open_tree", || {
        call(libc::SYS_open_tree, [-100, path("/"), 1, 0, 0, 0])
    }),
    ("pivot_root", || {
        call(libc::SYS_pivot_root, [path("/"), path("/tmp"), 0, 0, 0, 0])
    }),
    ("unshare user", || unshare(libc::CLONE_NEWUSER)),
    ("unshare mount", || unshare(libc::CLONE_NEWNS)),
    ("setns", || setns("/proc/self/ns/mnt")),
    ("clone user", || {
        call(
            libc::SYS_clone,
            [i64::from(libc::CLONE_NEWUSER) | 17, 0, 0, 0, 0, 0],
        )
    }),
    ("clone3", || call(libc::SYS_clone3, [0; 6])),
    ("bpf", || call(libc::SYS_bpf, [0; 6])),
    ("perf_event_open", || {
        call(libc::SYS_perf_event_open, [0; 6])
    }),
    ("io_uring_setup", || {
        call(libc::SYS_io_uring_setup, [8, 0, 0, 0, 0, 0])
    }),
    ("io_setup", || call(libc::SYS_io_setup, [8, 0, 0, 0, 0, 0])),
    ("userfaultfd", || {
        call(libc::SYS_userfaultfd, [1, 0, 0, 0, 0, 0])
    }),
    ("keyctl", || call(libc::SYS_keyctl, [0, -3, 0, 0, 0, 0])),
    ("add_key", || {
        call(
            libc::SYS_add_key,
            [path("user"), path("k"), path("v"), 1, -3, 0],
        )
    }),
    ("init_module", || call(libc::SYS_init_module, [0; 6])),
    ("kexec_load", || call(libc::SYS_kexec_load, [0; 6])),
    ("open_by_handle_at", || {
        call(libc::SYS_open_by_handle_at, [0; 6])
    }),
    ("fanotify_init", || call(libc::SYS_fanotify_init, [0; 6])),
    ("syslog", || call(libc::SYS_syslog, [3, 0, 0, 0, 0, 0])),
    ("sethostname", || {
        call(libc::SYS_sethostname, [path("x"), 1, 0, 0, 0, 0])
    }),
    ("mknod device", || {
        mknod("/tmp/device", libc::S_IFBLK | 0o666)
    }),
    ("mknod fifo", || mknod("/tmp/fifo", libc::S_IFIFO | 0o666)),
    ("open layer device", || {
        open("/usr/bin/device", libc::O_RDONLY)
    }),
    ("kill init", || call(libc::SYS_kill, [1, 9, 0, 0, 0, 0])),
    ("stop init", || call(libc::SYS_kill, [1, 19, 0, 0, 0, 0])),
    ("ptrace init", || {
        call(libc::SYS_ptrace, [16, 1, 0, 0, 0, 0])
    }),
    ("open init fd", || {
        open("/proc/1/fd", libc::O_RDONLY | libc::O_DIRECTORY)
    }),
    ("open init root", || open("/proc/1/root", libc::O_RDONLY)),
    ("open init namespace", || {
        open("/proc/1/ns/mnt", libc::O_RDONLY)
    }),
    ("tiocsti", || ioctl_on_pty(libc::TIOCSTI as i64)),
    ("tiocsetd", || ioctl_on_pty(libc::TIOCSETD as i64)),
    ("socket alg", || call(libc::SYS_socket, [38, 5, 0, 0, 0, 0])),
    ("socket ping", || call(libc::SYS_socket, [2, 2, 1, 0, 0, 0])),
    ("bind port 80", bind_port_80),
    ("sync", || call(libc::SYS_sync, [0; 6])),
    ("chown", || {
        call(libc::SYS_chown, [path("/tmp/fifo"), 1_000, 1_000, 0, 0, 0])
    }),
    ("chroot", || {
        call(libc::SYS_chroot, [path("/"), 0, 0, 0, 0, 0])
    }),
];

const READS: [&str; 14] = [
    "/proc/1/environ",
    "/proc/1/maps",
    "/proc/1/mem",
    "/proc/kallsyms",
    "/proc/keys",
    "/proc/config.gz",
    "/proc/timer_list",
    "/proc/kmsg",
    "/proc/meminfo",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
    "/etc/hostname",
    "/proc/self/cgroup",
];

const WRITES: [&str; 5] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
    "/dev/null",
];

fn print_state() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    for line in read("/proc/self/status").lines() {
        for (field, name) in [("SigIgn:\t", "ignored"), ("SigBlk:\t", "blocked")] {
            if let Some(value) = line.strip_prefix(field) {
                println!("signals {name}={value}");
            }
        }
        if let Some(value) = line.strip_prefix("CapEff:\t") {
            println!("capabilities={value}");
        }
    }
    let command = read("/proc/1/cmdline");
    println!("init name={}", command.trim_end_matches('\0'));
    println!("host name={}", read("/proc/sys/kernel/hostname").trim());
    println!("hosts={}", read("/etc/hosts").replace(['\n', '\t'], " "));
    println!("cgroup={}", read("/proc/self/cgroup").replace('\n', " "));
    println!("mounts={}", read("/proc/self/mountinfo").replace('\n', "|"));
    let interfaces = read("/proc/net/dev");
    let names = interfaces.lines().filter_map(|line| line.split_once(':'));
    let names: Vec<&str> = names.map(|(name, _)| name.trim()).collect();
    println!("interfaces={}", names.join(","));
    println!(
        "ptys={}",
        count(|| self::open("/dev/ptmx", libc::O_RDWR | libc::O_NOCTTY))
    );
    println!("shm={}", fill("/dev/shm/file"));
}

/// How often an attempt that gives a descriptor succeeds.
fn count(attempt: impl Fn() -> i64) -> usize {
    (0..10_000).take_while(|_| attempt() >= 0).count()
}

fn fill(path: &str) -> usize {
    let chunk = vec![1_u8; 65_536];
    let mut written = 0;
    let Ok(mut file) = std::fs::File::create(path) else {
        return 0;
    };
    while written < 1 << 30 {
        match io::Write::write(&mut file, &chunk) {
            Ok(length) if length > 0 => written += length,
            _ => break,
        }
    }
    written
}

fn read_length(path: &str) -> String {
    let mut buffer = [0_u8; 64];
    match std::fs::File::open(path).and_then(|mut file| io::Read::read(&mut file, &mut buffer)) {
        Ok(length) => length.to_string(),
        Err(error) => name_of(error.raw_os_error().unwrap_or(0)),
    }
}

fn describe(result: i64) -> String {
    if result >= 0 {
        "ok".into()
    } else {
        name_of(i32::try_from(-result).unwrap_or(0))
    }
}

fn name_of(error: i32) -> String {
    match error {
        libc::EPERM => "EPERM".into(),
        libc::EACCES => "EACCES".into(),
        libc::ENOSYS => "ENOSYS".into(),
        libc::EROFS => "EROFS".into(),
        libc::ENOENT => "ENOENT".into(),
        libc::EAFNOSUPPORT => "EAFNOSUPPORT".into(),
        other => other.to_string(),
    }
}

fn call(number: i64, arguments: [i64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: pointers among the arguments are leaked strings; a null pointer makes the call fail.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result >= 0 {
        return result;
    }
    -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

fn path(text: &str) -> i64 {
    let text = CString::new(text).expect("no zero inside");
    text.into_raw() as i64
}

fn open(name: &str, flags: i32) -> i64 {
    call(
        libc::SYS_openat,
        [-100, path(name), i64::from(flags), 0, 0, 0],
    )
}

fn mount(kind: &str, target: &str) -> i64 {
    call(
        libc::SYS_mount,
        [path(kind), path(target), path(kind), 0, 0, 0],
    )
}

fn mknod(name: &str, mode: u32) -> i64 {
    call(
        libc::SYS_mknodat,
        [-100, path(name), i64::from(mode), 0xfe00, 0, 0],
    )
}

fn unshare(flag: i32) -> i64 {
    call(libc::SYS_unshare, [i64::from(flag), 0, 0, 0, 0, 0])
}

fn setns(name: &str) -> i64 {
    let namespace = open(name, libc::O_RDONLY);
    let result = call(libc::SYS_setns, [namespace, 0, 0, 0, 0, 0]);
    call(libc::SYS_close, [namespace, 0, 0, 0, 0, 0]);
    result
}

fn ioctl_on_pty(request: i64) -> i64 {
    let pty = open("/dev/ptmx", libc::O_RDWR | libc::O_NOCTTY);
    let result = call(libc::SYS_ioctl, [pty, request, path("x"), 0, 0, 0]);
    call(libc::SYS_close, [pty, 0, 0, 0, 0, 0]);
    if pty < 0 { pty } else { result }
}

fn bind_port_80() -> i64 {
    match std::net::TcpListener::bind("127.0.0.1:80") {
        Ok(_) => 0,
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(0)),
    }
}
