//! The spawner as a process: failures, crashes, what is left behind, and the protocol's edges.

#[allow(dead_code, reason = "each test program uses a part of it")]
mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::{Value, json};
use support::session::Session;
use support::{Node, layer, mounts_of, pid_of, sandboxes_of, wait_for};

fn start_with_base() -> (Node, support::edge::Edge) {
    let node = Node::start();
    let mut edge = node.connect();
    let mount = layer::build(&node.directory, "base", layer::base);
    edge.call(mount).expect("the layer is mounted");
    (node, edge)
}

fn start_time(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let field = fields.split_ascii_whitespace().nth(19).expect("field 22");
    field.parse().expect("a number")
}

#[test]
fn layers_are_mounted_once_listed_and_unmounted() {
    needs_root_and_erofs!();
    let (node, mut edge) = start_with_base();
    assert_eq!(edge.hello["role"], "spawner");
    assert_eq!(edge.hello["pid"], node.spawner_pid());
    let mount = json!({"op": "mount_layer", "layerId": "base",
        "metaPath": node.directory.join("base.meta"), "dataPath": node.directory.join("base.data")});
    assert_eq!(edge.call(mount), Ok(json!({"mounted": false})));
    assert_eq!(
        edge.call(json!({"op": "list_layers"})),
        Ok(json!({"layers": ["base"]}))
    );
    let missing =
        json!({"op": "mount_layer", "layerId": "x", "metaPath": "/nowhere", "dataPath": null});
    assert_eq!(edge.call(missing), Err("not_found".into()));
    let unmount = json!({"op": "unmount_layer", "layerId": "base"});
    assert_eq!(edge.call(unmount.clone()), Ok(json!({})));
    assert_eq!(edge.call(unmount), Err("not_found".into()));
    assert_eq!(
        edge.call(json!({"op": "list_layers"})),
        Ok(json!({"layers": []}))
    );
}

#[test]
fn a_layer_unmounted_under_a_sandbox_stays_with_it() {
    needs_root_and_erofs!();
    let (node, mut edge) = start_with_base();
    let init = node.create(&mut edge, "a");
    let unmount = json!({"op": "unmount_layer", "layerId": "base"});
    assert_eq!(edge.call(unmount), Ok(json!({})));
    let found = Session::of_root(init).run("/usr/bin/probe", &["ids"]);
    assert_eq!(found["uid"], "0");
    assert_eq!(edge.call(node.request("b")), Err("not_found".into()));
}

type Spoil = fn(&Node, &mut Value);

#[test]
fn create_gives_back_everything_whatever_step_fails() {
    needs_root_and_erofs!();
    let (node, mut edge) = start_with_base();
    let linked = layer::build(&node.directory, "linked", layer::with_linked_dev);
    edge.call(linked).expect("the layer is mounted");
    let cases: [(&str, &str, Spoil); 11] = [
        ("a layer is missing", "not_found", |_, it| {
            it["layers"] = json!(["base", "none"])
        }),
        ("the upper is missing", "internal", |node, it| {
            it["upperPath"] = json!(node.directory.join("a/none"));
        }),
        ("the upper is a link", "internal", |node, it| {
            let link = node.directory.join("a/link");
            symlink("/etc", &link).expect("a link");
            it["upperPath"] = json!(link);
        }),
        ("upper and work lie apart", "invalid", |_, it| {
            it["workPath"] = json!("/tmp/work")
        }),
        ("the output is missing", "internal", |_, it| {
            it["outputPath"] = json!("/nowhere")
        }),
        ("the socket's directory is missing", "internal", |_, it| {
            it["socketPath"] = json!("/nowhere/socket");
        }),
        ("a group is missing", "internal", |_, it| {
            it["cgroups"]["procs"] = json!(["/nowhere/cgroup.procs"]);
        }),
        ("the oom counter is missing", "internal", |_, it| {
            it["cgroups"]["oomFile"] = json!("/nowhere/memory.events");
        }),
        ("/dev is a link", "invalid", |_, it| {
            it["layers"] = json!(["base", "linked"])
        }),
        ("ids overlap the host's", "invalid", |_, it| {
            it["idBase"] = json!(0)
        }),
        ("a key is unknown", "invalid", |_, it| {
            it["more"] = json!(true)
        }),
    ];
    for (name, code, spoil) in cases {
        let mut request = node.request("a");
        spoil(&node, &mut request);
        assert_eq!(edge.call(request), Err(code.into()), "{name}");
        assert!(!node.socket("a").exists(), "{name}: the socket is left");
        assert!(
            sandboxes_of(&node.directory).is_empty(),
            "{name}: a process is left"
        );
    }
    assert!(edge.events.is_empty(), "{:?}", edge.events);
    node.create(&mut edge, "b");
}

#[test]
fn a_socket_that_exists_is_refused_and_left_alone() {
    needs_root_and_erofs!();
    let (node, mut edge) = start_with_base();
    node.create(&mut edge, "a");
    let mut request = node.request("b");
    request["socketPath"] = json!(node.socket("a"));
    assert_eq!(edge.call(request), Err("exists".into()));
    assert!(node.socket("a").exists());
}

#[test]
fn a_creation_killed_half_way_fails_alone() {
    needs_root_and_erofs!();
    let (node, mut edge) = start_with_base();
    let fifo = node.directory.join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0)
        .expect("a fifo");
    let mut stuck = node.request("a");
    // Opening a fifo for writing waits for a reader, who never comes.
    stuck["cgroups"]["procs"] = json!([fifo]);
    let channel = edge.open(&stuck).expect("the request is sent");
    node.create(&mut edge, "b");
    let children = format!("/proc/{0}/task/{0}/children", node.spawner_pid());
    let child = wait_for("the stuck child", || {
        let children = fs::read_to_string(&children).expect("procfs");
        let mut pids = children.split_ascii_whitespace();
        let stuck = pids.find(|pid| {
            let open = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
            open.contains("fifo") || open.contains("wait_for_partner")
        });
        stuck.map(str::to_owned).ok_or(children.clone())
    });
    let pid = rustix::process::Pid::from_raw(child.parse().expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is there");
    assert_eq!(edge.end(channel), Err("internal".into()));
    assert!(!node.socket("a").exists());
    node.create(&mut edge, "c");
}

#[test]
fn sandboxes_and_layers_outlive_a_crash_of_the_spawner() {
    needs_root_and_erofs!();
    let (mut node, mut edge) = start_with_base();
    let old = node.create(&mut edge, "a");
    let started = start_time(old);
    node.crash_and_restart();
    let mut edge = node.connect();
    assert_eq!(
        edge.call(json!({"op": "list_layers"})),
        Ok(json!({"layers": ["base"]}))
    );
    let found = Session::of_root(old).run("/usr/bin/probe", &["ids"]);
    assert_eq!(found["uid"], "0");
    let new = node.create(&mut edge, "b");
    Session::of_root(new).run("/usr/bin/probe", &["ids"]);
    let kill = |start_time: u64| json!({"op": "kill", "pid": old, "startTime": start_time});
    assert_eq!(edge.call(kill(started + 1)), Err("not_found".into()));
    assert_eq!(start_time(old), started, "another start time harms nobody");
    assert_eq!(edge.call(kill(started)), Ok(json!({})));
    wait_for("the old sandbox to end", || {
        let gone = !sandboxes_of(&node.directory).contains(&i32::try_from(old).expect("a pid"));
        gone.then_some(()).ok_or("alive")
    });
}

#[test]
fn the_end_of_an_init_is_told_also_to_an_edge_that_comes_later() {
    needs_root_and_erofs!();
    let (node, mut edge) = start_with_base();
    let answer = edge
        .call(node.request("a"))
        .expect("the sandbox is created");
    assert_eq!(answer["startTime"], start_time(pid_of(&answer)));
    let kill = |answer: &Value| json!({"op": "kill", "pid": answer["pid"], "startTime": answer["startTime"]});
    assert_eq!(edge.call(kill(&answer)), Ok(json!({})));
    let event = edge.event("a");
    assert_eq!(event["event"], "init_ended");
    assert_eq!(event["pid"], answer["pid"]);
    assert_eq!(
        (&event["exitCode"], &event["signal"]),
        (&Value::Null, &json!(9))
    );
    let second = edge
        .call(node.request("b"))
        .expect("the sandbox is created");
    drop(edge);
    let raw = i32::try_from(pid_of(&second)).expect("a pid");
    let pid = rustix::process::Pid::from_raw(raw).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is there");
    wait_for("the sandbox to end", || {
        let left = sandboxes_of(&node.directory);
        left.is_empty().then_some(()).ok_or(left)
    });
    assert_eq!(node.connect().event("b")["signal"], 9);
}

#[test]
fn many_creations_at_once_all_succeed_and_leave_nothing() {
    needs_root_and_erofs!();
    let (node, mut edge) = start_with_base();
    let names: Vec<String> = (b'a'..=b'z').map(|it| char::from(it).to_string()).collect();
    let channels: Vec<u32> = names
        .iter()
        .map(|name| edge.open(&node.request(name)).expect("the request is sent"))
        .collect();
    for channel in channels {
        edge.end(channel).expect("the sandbox is created");
    }
    assert_eq!(sandboxes_of(&node.directory).len(), names.len());
    let open = fs::read_dir(format!("/proc/{}/fd", node.spawner_pid())).expect("procfs");
    assert!(
        open.count() < 16,
        "the spawner keeps no descriptor per sandbox"
    );
    let directory = node.directory.clone();
    assert_eq!(
        mounts_of(&directory).len(),
        3,
        "{:#?}",
        mounts_of(&directory)
    );
    drop(edge);
    drop(node);
    assert!(sandboxes_of(&directory).is_empty());
    assert_eq!(mounts_of(&directory), Vec::<String>::new());
    assert!(!directory.exists());
}

#[test]
fn a_newer_connection_replaces_and_a_violation_ends_one() {
    needs_root_and_erofs!();
    let node = Node::start();
    let mut first = node.connect();
    let mut second = node.connect();
    first.wait_closed();
    assert_eq!(second.call(json!({"op": "fly"})), Err("invalid".into()));
    assert_eq!(
        second.call(json!({"op": "list_layers"})),
        Ok(json!({"layers": []}))
    );
    second.send_raw(&[0xff; 64]).expect("bytes are sent");
    second.wait_closed();
    let mut third = node.connect();
    assert_eq!(
        third.call(json!({"op": "list_layers"})),
        Ok(json!({"layers": []}))
    );
}

#[test]
fn a_second_spawner_is_refused() {
    needs_root_and_erofs!();
    let node = Node::start();
    node.connect();
    let output = std::process::Command::new(node.directory.join("chronus"))
        .arg("spawner")
        .arg("--socket")
        .arg(node.directory.join("other.sock"))
        .arg("--run-directory")
        .arg(node.directory.join("run"))
        .output()
        .expect("it starts");
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("another spawner"), "{message}");
}

/// Not a test of a bound: prints what a creation costs here. `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_creation() {
    needs_root_and_erofs!();
    let (node, mut edge) = start_with_base();
    let names: Vec<String> = (b'A'..=b'z').map(|it| format!("s{}", it)).collect();
    let mut times: Vec<Duration> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let mut request = node.request(name);
        let offset = u32::try_from(index).expect("few") * support::ID_COUNT;
        request["idBase"] = json!(node.id_base("0") + offset);
        let start = std::time::Instant::now();
        edge.call(request).expect("the sandbox is created");
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!("median {:?}, best {:?}", times[times.len() / 2], times[0]);
}
