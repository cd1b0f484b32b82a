//! What root inside a sandbox can and cannot do, tried from inside.

#[allow(dead_code, reason = "each test program uses a part of it")]
mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use support::session::Session;
use support::{Node, layer};

fn expect(found: &HashMap<String, String>, expected: &[(&str, &[&str])]) {
    let mut wrong = Vec::new();
    for (result, names) in expected {
        for name in *names {
            let got = found.get(*name).map_or("absent", String::as_str);
            if got != *result {
                wrong.push(format!("{name}: {got} instead of {result}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn root_inside_has_its_own_and_nothing_of_the_host() {
    needs_root_and_erofs!();
    let node = Node::start();
    let mut edge = node.connect();
    let mount = layer::build(&node.directory, "base", layer::base);
    edge.call(mount).expect("the layer is mounted");
    let pid = node.create(&mut edge, "a");
    let found = Session::of_root(pid).run("/usr/bin/probe", &[]);
    expect(
        &found,
        &[
            (
                "EPERM",
                &[
                    "mount",
                    "umount",
                    "fsopen",
                    "open_tree",
                    "pivot_root",
                    "unshare user",
                    "unshare mount",
                    "setns",
                    "clone user",
                    "bpf",
                    "perf_event_open",
                    "io_uring_setup",
                    "userfaultfd",
                    "keyctl",
                    "add_key",
                    "init_module",
                    "kexec_load",
                    "open_by_handle_at",
                    "fanotify_init",
                    "syslog",
                    "sethostname",
                    "mknod device",
                    "kill init",
                    "stop init",
                    "ptrace init",
                    "tiocsti",
                    "tiocsetd",
                ],
            ),
            ("ENOSYS", &["clone3", "io_setup"]),
            ("EAFNOSUPPORT", &["socket alg"]),
            (
                "EACCES",
                &[
                    "open layer device",
                    "open init fd",
                    "open init root",
                    "open init namespace",
                    "write /proc/sys/kernel/core_pattern",
                    "write /proc/irq/default_smp_affinity",
                    "read /proc/1/environ",
                    "read /proc/1/maps",
                    "read /proc/1/mem",
                ],
            ),
            (
                "0",
                &[
                    "read /proc/kallsyms",
                    "read /proc/keys",
                    "read /proc/config.gz",
                    "read /proc/timer_list",
                    "read /proc/kmsg",
                    "read /dev/null",
                ],
            ),
            (
                "64",
                &["read /proc/meminfo", "read /dev/zero", "read /dev/urandom"],
            ),
            (
                "ok",
                &[
                    "mknod fifo",
                    "socket ping",
                    "bind port 80",
                    "sync",
                    "chown",
                    "chroot",
                    "write /dev/null",
                ],
            ),
            // The probe's own runtime ignores SIGPIPE, number 13.
            ("0000000000001000", &["signals ignored"]),
            ("0000000000000000", &["signals blocked"]),
            ("init", &["init name"]),
            ("host-a", &["host name"]),
            ("lo", &["interfaces"]),
            ("3", &["descriptors"]),
            ("4", &["ptys"]),
            ("1048576", &["shm"]),
            ("00000000a80c65fb", &["capabilities"]),
        ],
    );
    let hosts = &found["hosts"];
    assert!(hosts.contains("127.0.0.1 localhost"), "{hosts}");
    assert!(
        hosts.contains("host-a") && hosts.contains("model.internal"),
        "{hosts}"
    );
    assert!(
        found["mounts"].contains(" /proc/sys ro,"),
        "{}",
        found["mounts"]
    );
    let name = node.directory.to_str().expect("a plain path");
    for view in ["mounts", "cgroup"] {
        assert!(!found[view].contains(name), "{view}: {}", found[view]);
    }
}

#[test]
fn setuid_programs_reach_root_inside_unless_no_new_privs_is_set() {
    needs_root_and_erofs!();
    let node = Node::start();
    let mut edge = node.connect();
    let mount = layer::build(&node.directory, "base", layer::base);
    edge.call(mount).expect("the layer is mounted");
    let init = node.create(&mut edge, "a");
    for (no_new_privs, effective) in [(false, "0"), (true, "1000")] {
        let session = Session {
            init,
            uid: 1_000,
            no_new_privs,
        };
        let found = session.run("/usr/bin/setuid-probe", &["ids"]);
        assert_eq!(found["uid"], "1000");
        assert_eq!(found["euid"], effective, "no_new_privs: {no_new_privs}");
    }
}

#[test]
fn files_written_inside_belong_to_the_sandbox_s_range_on_the_host() {
    needs_root_and_erofs!();
    let node = Node::start();
    let mut edge = node.connect();
    let mount = layer::build(&node.directory, "base", layer::base);
    edge.call(mount).expect("the layer is mounted");
    let init = node.create(&mut edge, "a");
    Session::of_root(init).run("/usr/bin/probe", &[]);
    // The probe gives the fifo that it makes to user 1,000.
    let fifo = node.directory.join("a/upper/tmp/fifo");
    let owner = std::os::unix::fs::MetadataExt::uid(&fifo.symlink_metadata().expect("the fifo"));
    assert_eq!(owner, node.id_base("a") + 1_000);
}

#[test]
fn inotify_instances_used_up_in_one_sandbox_are_not_missed_in_another() {
    needs_root_and_erofs!();
    let node = Node::start();
    let mut edge = node.connect();
    let mount = layer::build(&node.directory, "base", layer::base);
    edge.call(mount).expect("the layer is mounted");
    let (first, second) = (node.create(&mut edge, "a"), node.create(&mut edge, "b"));
    let mut command = Session::of_root(first)
        .command("/usr/bin/probe", &["inotify"])
        .expect("the sandbox is there");
    let mut greedy = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the probe starts");
    let mut lines = BufReader::new(greedy.stdout.take().expect("its output")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    assert_eq!(line(), "first=8");
    let total: u32 = line()["total=".len()..].parse().expect("a number");
    assert!(total > 8, "many users get more than one: {total}");
    // All users of the first sandbox together are at the host's bound for one user now.
    let found = Session::of_root(second).run("/usr/bin/probe", &["inotify"]);
    assert_eq!(found["first"], "8");
    assert_eq!(found["total"], total.to_string());
    drop(greedy.stdin.take());
    assert!(greedy.wait().expect("the probe ends").success());
}
