//! A sandbox made by the spawner, used through its init: both halves together.

#[allow(dead_code, reason = "each test program uses a part of it")]
#[path = "init/client.rs"]
mod client;
#[allow(dead_code, reason = "each test program uses a part of it")]
mod support;

use std::fs;

use chronus::protocol::Cause;
use client::{Client, shell, with};
use serde_json::json;
use support::{Node, layer};

#[test]
fn a_created_sandbox_runs_commands_and_holds_files() {
    needs_root_and_erofs!();
    let node = Node::start();
    let mut edge = node.connect();
    let mount = layer::build(&node.directory, "base", layer::base);
    edge.call(mount).expect("the layer is mounted");
    node.create(&mut edge, "a");
    let mut init = Client::connect(&node.socket("a"));
    assert_eq!(init.hello["sandboxId"], "a");

    let probe = with(shell("probe", ""), json!({"argv": ["probe"]}));
    let received = init.call(&probe);
    let outcome = received.outcome();
    assert_eq!(
        (outcome.cause, outcome.exit_code),
        (Cause::Exit, Some(0)),
        "{}",
        received.stderr()
    );
    assert!(
        received.stdout().lines().count() > 20,
        "{}",
        received.stdout()
    );

    let user = json!({"uid": 1000, "gid": 1000});
    let write = json!({"op": "file_write", "path": "/tmp/x/y", "user": user, "mode": 0o600, "makeParents": true});
    let channel = init.open(&write);
    init.write(channel, b"content");
    init.eof(channel);
    let stat = init.finish(channel).ok()["stat"].clone();
    assert_eq!(
        (&stat["uid"], &stat["sizeBytes"]),
        (&json!(1000), &json!(7))
    );
    let read =
        json!({"op": "file_read", "path": "/tmp/x/y", "user": user, "offset": 0, "length": null});
    assert_eq!(init.call(&read).stdout(), "content");
    assert!(fs::exists(node.directory.join("a/upper/tmp/x/y")).unwrap());

    init.call(&json!({"op": "shutdown"})).ok();
    let event = edge.event("a");
    assert_eq!(
        (&event["event"], &event["exitCode"]),
        (&json!("init_ended"), &json!(0))
    );
}
