//! Init in real namespaces and groups, driven over its socket. Needs root; says so and passes otherwise.

mod bounds;
mod client;
mod commands;
mod files;
mod sandbox;

use std::time::Instant;

use client::Client;
use sandbox::Sandbox;

/// One test: its name and what it does with a sandbox of its own connection.
type Test = (&'static str, fn(&Sandbox, &mut Client));

fn main() {
    if let Some(reason) = sandbox::missing() {
        println!("skipped: {reason}");
        return;
    }
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let tests = commands::TESTS
        .iter()
        .chain(bounds::TESTS)
        .chain(files::TESTS);
    let chosen: Vec<&Test> = tests
        .filter(|(name, _)| filter.as_ref().is_none_or(|filter| name.contains(filter)))
        .collect();
    let mut sandbox = Sandbox::start();
    for (name, test) in &chosen {
        let start = Instant::now();
        println!("test {name} ...");
        let mut client = Client::connect(&sandbox.socket());
        test(&sandbox, &mut client);
        println!("test {name} ... ok ({} ms)", start.elapsed().as_millis());
    }
    shutdown_ends_everything(&mut sandbox);
    println!("\ntest result: ok. {} passed", chosen.len() + 1);
}

fn shutdown_ends_everything(sandbox: &mut Sandbox) {
    let mut client = Client::connect(&sandbox.socket());
    let left = client::shell("left-at-shutdown", "setsid sleep 999 & sleep 999");
    let channel = client.open(&left);
    client.accepted(channel);
    client.call(&serde_json::json!({"op": "shutdown"})).ok();
    assert_eq!(sandbox.wait(), 0);
    assert_eq!(sandbox.commands(), 0, "no group is left");
}
