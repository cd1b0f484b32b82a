//! What bounds commands: memory, processes, arguments, ids.

use std::time::{Duration, Instant};

use chronus::frame::{Body, Stream};
use chronus::protocol::Cause;
use serde_json::json;

use crate::Test;
use crate::client::{Client, shell, with};
use crate::commands::eventually;
use crate::sandbox::Sandbox;

pub const TESTS: &[Test] = &[
    (
        "a long argument fails with a typed error, a long total works",
        long_arguments,
    ),
    (
        "out of memory is named, and the next command works",
        out_of_memory,
    ),
    (
        "a fork bomb can be killed and the sandbox answers",
        fork_bomb,
    ),
    ("two hundred orphans leave no zombie", orphans),
    ("a start that fails says why", start_failures),
    (
        "the environment is the request's and ids are the user's",
        environment_and_ids,
    ),
    ("sessions are kept away from init", isolation),
    (
        "a killed runner is replaced by the next start",
        killed_runner,
    ),
];

fn long_arguments(_: &Sandbox, client: &mut Client) {
    let mut long = shell("long", "");
    long["argv"][2] = "true #".into();
    let text = format!("true {}", "x".repeat(300_000));
    let mut more = long.clone();
    more["argv"] = serde_json::Value::Null;
    more["env"] = serde_json::Value::Null;
    more["more"] = true.into();
    let channel = client.open(&more);
    let arguments = json!({"argv": ["sh", "-c", text], "env": {}});
    client.write(channel, arguments.to_string().as_bytes());
    client.eof(channel);
    let received = client.finish(channel);
    assert_eq!(received.error_code(), "too_large");
    let many: Vec<String> = (0..30).map(|_| "y".repeat(10_000)).collect();
    let mut argv = vec!["sh".to_owned(), "-c".into(), "cat; echo $# ${#1}".into()];
    argv.extend(many);
    let channel = client.open(&with(more, json!({"actionId": "long-2", "stdin": true})));
    let arguments = json!({"argv": argv, "env": {"PATH": "/bin:/usr/bin"}});
    client.write(channel, arguments.to_string().as_bytes());
    client.eof(channel);
    client.accepted(channel);
    client.send(channel, Body::Data(Stream::Input, b"in:".to_vec()));
    client.eof(channel);
    assert_eq!(client.finish(channel).stdout(), "in:29 10000\n");
}

fn out_of_memory(_: &Sandbox, client: &mut Client) {
    let grow = "exec python3 -c 'b = bytearray(400 * 1024 * 1024)'";
    let outcome = client.call(&shell("oom", grow)).outcome();
    assert_eq!((outcome.cause, outcome.signal), (Cause::Oom, Some(9)));
    let grow = "python3 -c 'b = bytearray(400 * 1024 * 1024)'; exit $?";
    let outcome = client.call(&shell("oom-child", grow)).outcome();
    assert_eq!((outcome.cause, outcome.exit_code), (Cause::Oom, Some(137)));
    let received = client.call(&shell("after-oom", "echo alive"));
    assert_eq!(received.stdout(), "alive\n");
}

fn fork_bomb(sandbox: &Sandbox, client: &mut Client) {
    let channel = client.open(&shell("bomb", "bomb() { bomb | bomb & }; bomb; sleep 999"));
    client.accepted(channel);
    let id = client.channels[&channel].command_id();
    std::thread::sleep(Duration::from_millis(700));
    let start = Instant::now();
    client.ping();
    let refused = client.call(&shell("during-bomb", "true")).outcome();
    assert!(
        matches!(refused.cause, Cause::StartFailed | Cause::Exit),
        "{refused:?}"
    );
    let kill = json!({"op": "signal", "commandId": id, "signal": 9, "tree": true});
    client.call(&kill).ok();
    assert_eq!(client.finish(channel).outcome().cause, Cause::Killed);
    assert!(start.elapsed() < Duration::from_secs(4));
    eventually(|| sandbox.commands() == 0);
    assert_eq!(
        client.call(&shell("after-bomb", "echo alive")).stdout(),
        "alive\n"
    );
}

fn orphans(sandbox: &Sandbox, client: &mut Client) {
    let script = "i=0; while [ $i -lt 200 ]; do (sleep 0.05 &); i=$((i+1)); done";
    client.call(&shell("orphans", script)).outcome();
    eventually(|| sandbox.commands() == 0);
    let zombies = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z'";
    assert_eq!(client.call(&shell("zombies", zombies)).stdout(), "0\n");
}

fn start_failures(_: &Sandbox, client: &mut Client) {
    let cases = [
        (json!({"argv": ["no-such-program"]}), "not found"),
        (json!({"argv": ["/etc/passwd"]}), "ermission denied"),
        (json!({"cwd": "/nowhere"}), "/nowhere"),
        (
            json!({"user": "nobody-at-all"}),
            "not in the sandbox's /etc/passwd",
        ),
    ];
    for (number, (change, text)) in cases.into_iter().enumerate() {
        let outcome = client
            .call(&with(shell(&format!("fails-{number}"), "true"), change))
            .outcome();
        assert_eq!(
            (outcome.cause, outcome.exit_code),
            (Cause::StartFailed, None)
        );
        assert!(
            outcome.message.as_ref().unwrap().contains(text),
            "{outcome:?}"
        );
    }
    for change in [
        json!({"argv": []}),
        json!({"cwd": "relative"}),
        json!({"env": {"A=B": "c"}}),
        json!({"unknown": 1}),
        json!({"actionId": ""}),
        json!({"user": {"uid": 70000, "gid": 0}}),
    ] {
        let received = client.call(&with(shell("invalid", "true"), change));
        assert_eq!(received.error_code(), "invalid");
    }
    assert_eq!(
        client.call(&shell("not-127", "exit 127")).outcome().cause,
        Cause::Exit
    );
}

fn environment_and_ids(_: &Sandbox, client: &mut Client) {
    let request = with(
        shell(
            "environment",
            "env | grep -v ^PWD= | grep -v ^SHLVL= | grep -v ^_= | sort; id -u; id -g; pwd; ulimit -n; umask",
        ),
        json!({"env": {"PATH": "/usr/bin:/bin", "X": "a b"}, "user": {"uid": 1000, "gid": 1001, "groups": [7]}, "cwd": "/usr"}),
    );
    let expected = "PATH=/usr/bin:/bin\nX=a b\n1000\n1001\n/usr\n1024\n0022\n";
    let received = client.call(&request);
    assert_eq!(received.stdout(), expected, "{}", received.stderr());
    let named = with(
        shell("named", "id -un; echo to-stderr > /dev/stderr"),
        json!({"user": "daemon"}),
    );
    let received = client.call(&named);
    assert_eq!(
        (received.stdout().as_str(), received.stderr().as_str()),
        ("daemon\n", "to-stderr\n")
    );
}

fn isolation(_: &Sandbox, client: &mut Client) {
    let script = "kill -9 1; cat /proc/1/environ; ls /proc/1/fd /proc/1/root/; ls -l /proc/self/fd | wc -l; cat /proc/self/cgroup > /dev/null; for p in /proc/[0-9]*; do grep -q runner $p/comm 2>/dev/null && kill -STOP ${p#/proc/}; done; trap '' PIPE; grep SigIgn /proc/self/status";
    let received = client.call(&shell("isolation", script));
    assert_eq!(
        received.outcome().exit_code,
        Some(0),
        "{}",
        received.stderr()
    );
    let stderr = received.stderr().to_lowercase();
    assert!(
        stderr.matches("not permitted").count() + stderr.matches("permission denied").count() >= 4,
        "{stderr}"
    );
    let first = received.stdout();
    assert!(
        first.starts_with("5\n"),
        "total, 0, 1, 2 and the directory itself: {first}"
    );
    let next = client.call(&shell(
        "isolation-2",
        "grep -E 'Sig(Ign|Blk)' /proc/self/status",
    ));
    assert_eq!(
        next.stdout(),
        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
    );
}

fn killed_runner(sandbox: &Sandbox, client: &mut Client) {
    let before = client.open(&shell("before-kill", "sleep 0.5; echo kept"));
    client.accepted(before);
    std::thread::sleep(Duration::from_millis(100));
    sandbox.kill_runner();
    client.ping();
    let received = client.call(&shell("after-kill", "echo alive"));
    assert_eq!(received.stdout(), "alive\n");
    assert_eq!(client.finish(before).stdout(), "kept\n");
}
