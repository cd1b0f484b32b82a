//! Commands. Names of tests say which situation they show.

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use chronus::frame::{Body, Stream};
use chronus::protocol::Cause;
use serde_json::json;

use crate::Test;
use crate::client::{Client, shell, with};
use crate::sandbox::{SERVICE_PORT, Sandbox};

pub const TESTS: &[Test] = &[
    ("a command gives its output and exit code", output_and_code),
    (
        "a background child that keeps stdout open does not hold the call",
        background_child,
    ),
    (
        "a timeout leaves nothing of a tree that changed session",
        timeout_ends_tree,
    ),
    ("endTree kills what the first process left", end_tree),
    (
        "output before a timeout is kept, stdout and stderr apart",
        output_before_timeout,
    ),
    (
        "output over the cap keeps head and tail within bounds",
        output_over_cap,
    ),
    ("ten megabytes arrive whole at a slow reader", slow_reader),
    (
        "a retry with the same action id attaches to the one command",
        replay,
    ),
    (
        "another connection reads from offset 0 and replaces the first",
        replacement,
    ),
    ("a command without stdin sees its end at once", no_stdin),
    ("stdin is carried with its end", stdin),
    ("signals of the edge are told from others", signals),
    ("ended commands are listed until acknowledged", acknowledged),
    ("a service is reached from inside", service),
    ("many commands are started quickly", many),
];

fn output_and_code(sandbox: &Sandbox, client: &mut Client) {
    assert_eq!(client.hello["sandboxId"], "sbtest");
    assert_eq!(client.hello["bootId"].as_str().unwrap().len(), 32);
    client.ping();
    let received = client.call(&shell("plain", "echo out; echo err >&2; exit 7"));
    let outcome = received.outcome();
    assert_eq!(
        (received.stdout().as_str(), received.stderr().as_str()),
        ("out\n", "err\n")
    );
    assert_eq!((outcome.exit_code, outcome.signal), (Some(7), None));
    assert_eq!(outcome.cause, Cause::Exit);
    assert!(!outcome.left_running);
    assert_eq!(
        (outcome.stdout.bytes, outcome.stderr.bytes, received.eofs),
        (4, 4, 2)
    );
    assert_eq!(client.events.last(), Some(&outcome));
    assert_eq!(sandbox.commands(), 0, "its group is gone");
}

fn background_child(sandbox: &Sandbox, client: &mut Client) {
    let start = Instant::now();
    let received = client.call(&shell("background", "sleep 60 & echo done"));
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "the call returns at once"
    );
    let outcome = received.outcome();
    assert_eq!(
        (received.stdout().as_str(), outcome.exit_code),
        ("done\n", Some(0))
    );
    assert!(outcome.left_running);
    assert_eq!(sandbox.commands(), 1);
    let kill = json!({"op": "signal", "commandId": outcome.command_id, "signal": 9, "tree": true});
    client.call(&kill).ok();
    eventually(|| sandbox.commands() == 0);
}

fn timeout_ends_tree(sandbox: &Sandbox, client: &mut Client) {
    let script = "setsid sleep 999 & (setsid setsid sleep 999 &) ; sleep 999";
    let request = with(shell("timeout", script), json!({"timeoutMs": 300}));
    let outcome = client.call(&request).outcome();
    assert_eq!((outcome.cause, outcome.signal), (Cause::Timeout, Some(9)));
    assert!(!outcome.left_running);
    assert_eq!(
        sandbox.commands(),
        0,
        "nothing is left when the end is told"
    );
}

fn end_tree(sandbox: &Sandbox, client: &mut Client) {
    let request = with(
        shell("end-tree", "setsid sleep 999 & echo x"),
        json!({"endTree": true}),
    );
    let received = client.call(&request);
    let outcome = received.outcome();
    assert_eq!(
        (received.stdout().as_str(), outcome.cause),
        ("x\n", Cause::Exit)
    );
    assert!(!outcome.left_running);
    assert_eq!(sandbox.commands(), 0);
}

fn output_before_timeout(_: &Sandbox, client: &mut Client) {
    let script = "echo before; echo error >&2; sleep 999";
    let request = with(shell("kept", script), json!({"timeoutMs": 400}));
    let received = client.call(&request);
    assert_eq!(received.outcome().cause, Cause::Timeout);
    assert_eq!(
        (received.stdout().as_str(), received.stderr().as_str()),
        ("before\n", "error\n")
    );
}

fn output_over_cap(sandbox: &Sandbox, client: &mut Client) {
    let before = init_memory_kib();
    let channel = client.open(&shell(
        "cap",
        "head -c 200000000 /dev/zero | tr '\\0' y; echo end",
    ));
    client.accepted(channel);
    client.gives_credit = false;
    let id = client.channels[&channel].command_id();
    client.until(|client| client.events.iter().any(|outcome| outcome.command_id == id));
    let disk: u64 = fs::read_dir(sandbox.output())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(disk <= 64 * 1024 * 1024, "{disk}");
    client.send(channel, Body::Cancel);
    client.finish(channel);
    client.gives_credit = true;
    let attach = json!({"op": "attach", "commandId": id, "stdoutOffset": 0, "stderrOffset": 0});
    let received = client.call(&attach);
    let count = received.outcome().stdout;
    assert_eq!(count.bytes, 200_000_004);
    assert_eq!(count.dropped, count.bytes - 16 * 1024 * 1024);
    assert_eq!(received.gaps[0], count.dropped);
    assert_eq!(received.streams[0].len(), 16 * 1024 * 1024);
    assert!(received.streams[0].ends_with(b"yend\n"));
    let grown = init_memory_kib().saturating_sub(before);
    assert!(grown < 16 * 1024, "init grew by {grown} KiB");
}

fn slow_reader(_: &Sandbox, client: &mut Client) {
    let script = "head -c 10485760 /dev/urandom | tee /dev/stderr | sha256sum > /tmp/chronus-sum; cat /tmp/chronus-sum; rm /tmp/chronus-sum";
    let script = script.replace("/dev/stderr", "/proc/self/fd/2");
    client.gives_credit = false;
    let channel = client.open(&shell("slow", &script));
    let total =
        |client: &Client| -> usize { client.channels[&channel].streams.iter().map(Vec::len).sum() };
    let mut given = 0;
    while client.channels[&channel].end.is_none() {
        assert!(client.step());
        std::thread::sleep(Duration::from_millis(1));
        let credit = u32::try_from(total(client) - given).unwrap();
        given = total(client);
        client.send(channel, Body::Credit(credit));
    }
    client.gives_credit = true;
    let received = client.finish(channel);
    assert_eq!(
        (received.streams[1].len(), received.gaps),
        (10_485_760, [0, 0])
    );
    fs::write("/tmp/chronus-received", &received.streams[1]).unwrap();
    let sum = std::process::Command::new("sha256sum")
        .arg("/tmp/chronus-received")
        .output()
        .unwrap();
    fs::remove_file("/tmp/chronus-received").unwrap();
    assert_eq!(received.streams[0][..64], sum.stdout[..64]);
}

fn replay(sandbox: &Sandbox, client: &mut Client) {
    let script = format!(
        "echo once >> {}/count; sleep 0.3; echo result",
        sandbox.files().display()
    );
    let first = client.open(&shell("once", &script));
    client.accepted(first);
    let mut client = Client::connect(&sandbox.socket());
    let second = client.call(&shell("once", &script));
    assert_eq!(second.accept.as_ref().unwrap()["replay"], true);
    assert_eq!(second.stdout(), "result\n");
    let third = client.call(&shell("once", &script));
    assert_eq!(third.outcome(), second.outcome());
    assert_eq!(
        fs::read_to_string(sandbox.files().join("count")).unwrap(),
        "once\n"
    );
}

fn replacement(sandbox: &Sandbox, client: &mut Client) {
    let script = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done";
    let channel = client.open(&shell("lines", script));
    client.accepted(channel);
    let id = client.channels[&channel].command_id();
    let mut other = Client::connect(&sandbox.socket());
    while client.step() {}
    let attach = json!({"op": "attach", "commandId": id, "stdoutOffset": 0, "stderrOffset": 0});
    let received = other.call(&attach);
    assert_eq!(received.stdout(), "1\n2\n3\n4\n5\n6\n");
    assert_eq!(received.outcome().exit_code, Some(0));
    let attach = json!({"op": "attach", "commandId": id, "stdoutOffset": 4, "stderrOffset": 0});
    assert_eq!(other.call(&attach).stdout(), "3\n4\n5\n6\n");
}

fn no_stdin(_: &Sandbox, client: &mut Client) {
    let request = with(
        shell("no-stdin", "cat; echo ended"),
        json!({"timeoutMs": 5000}),
    );
    assert_eq!(client.call(&request).stdout(), "ended\n");
}

fn stdin(_: &Sandbox, client: &mut Client) {
    let channel = client.open(&with(
        shell("stdin", "wc -c; echo done"),
        json!({"stdin": true}),
    ));
    client.accepted(channel);
    client.write(channel, &vec![b'x'; 3_000_000]);
    client.eof(channel);
    assert_eq!(client.finish(channel).stdout(), "3000000\ndone\n");
    let channel = client.open(&with(
        shell("stdin-2", "exec sleep 0.2"),
        json!({"stdin": true}),
    ));
    client.accepted(channel);
    client.write(channel, &vec![b'x'; 1_000_000]);
    assert_eq!(client.finish(channel).outcome().exit_code, Some(0));
}

fn signals(_: &Sandbox, client: &mut Client) {
    let own = client.call(&shell("own-signal", "kill -TERM $$")).outcome();
    assert_eq!((own.cause, own.signal), (Cause::Signal, Some(15)));
    for (tree, number) in [(false, 15), (true, 15), (false, 9)] {
        let channel = client.open(&shell(&format!("signal-{tree}-{number}"), "exec sleep 999"));
        client.accepted(channel);
        let id = client.channels[&channel].command_id();
        eventually_client(client, |client| {
            let request = json!({"op": "signal", "commandId": id, "signal": number, "tree": tree});
            let received = client.call(&request);
            received.end.unwrap().get("ok").is_some()
        });
        let outcome = client.finish(channel).outcome();
        assert_eq!(
            (outcome.cause, outcome.signal),
            (Cause::Killed, Some(number))
        );
        let late = json!({"op": "signal", "commandId": id, "signal": 15, "tree": false});
        assert_eq!(client.call(&late).error_code(), "not_found");
    }
}

fn acknowledged(_: &Sandbox, client: &mut Client) {
    let id = client
        .call(&shell("to-acknowledge", "true"))
        .outcome()
        .command_id;
    let listed = |client: &mut Client| {
        let answer = client.call(&json!({"op": "commands"})).ok();
        let commands = answer["commands"].as_array().unwrap();
        commands
            .iter()
            .any(|command| command["commandId"] == id.as_str())
    };
    assert!(listed(client));
    client
        .call(&json!({"op": "acknowledge", "commandIds": [id, "c0", "unknown"]}))
        .ok();
    assert!(!listed(client));
    let again = client.call(&shell("to-acknowledge", "true"));
    assert_eq!(
        again.accept.unwrap()["replay"],
        true,
        "the action is still known"
    );
}

fn service(_: &Sandbox, client: &mut Client) {
    let script = format!(
        "exec python3 -c 'import socket; s = socket.create_connection((\"127.0.0.1\", {SERVICE_PORT})); s.sendall(b\"ask\"); s.shutdown(1); print(s.makefile().read())'"
    );
    let channel = client.open(&shell("service", &script));
    client.until(|client| !client.opened.is_empty());
    let (stream, request) = client.opened.remove(0);
    assert_eq!(request, json!({"op": "stream", "service": "model"}));
    assert_eq!(stream % 2, 0);
    client.send(stream, Body::Accept(b"{}".to_vec()));
    // Input of the channel is what the process wrote.
    client.until(|client| client.channels[&stream].eofs == 1);
    assert_eq!(client.channels[&stream].streams[0], b"ask");
    client.send(stream, Body::Data(Stream::Output, b"answer".to_vec()));
    client.send(stream, Body::Eof(Stream::Output));
    assert_eq!(client.finish(channel).stdout(), "answer\n");
    client.send(stream, Body::End(br#"{"ok":{}}"#.to_vec()));
    client.ping();
}

fn many(sandbox: &Sandbox, client: &mut Client) {
    let count = 400;
    let start = Instant::now();
    let mut channels = std::collections::VecDeque::new();
    for number in 0..count {
        let request = with(
            shell(&format!("many-{number}"), ""),
            json!({"argv": ["/bin/true"]}),
        );
        channels.push_back(client.open(&request));
        if channels.len() > 16 {
            let channel = channels.pop_front().unwrap();
            assert_eq!(client.finish(channel).outcome().exit_code, Some(0));
        }
    }
    for channel in channels {
        assert_eq!(client.finish(channel).outcome().exit_code, Some(0));
    }
    let each = start.elapsed().as_micros() / count;
    println!("    {each} us a command");
    assert_eq!(sandbox.commands(), 0);
}

/// Resident memory of all processes called init that are not the machine's own.
fn init_memory_kib() -> u64 {
    let mut total = 0;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let mut comm = String::new();
        let file = fs::File::open(entry.path().join("comm"));
        if file.is_ok_and(|mut file| file.read_to_string(&mut comm).is_ok()) && comm == "init\n" {
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kib = line.and_then(|line| line.split_whitespace().next());
            total += kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    total
}

pub fn eventually(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "it never came true"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn eventually_client(client: &mut Client, mut done: impl FnMut(&mut Client) -> bool) {
    let start = Instant::now();
    while !done(client) {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "it never came true"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
