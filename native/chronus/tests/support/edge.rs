//! The edge's side of a connection to a spawner, one request at a time or several.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use chronus::frame::{Body, Decoder, Frame, encode};
use serde_json::{Value, json};

/// A blocking connection; events that arrive in between are kept.
pub struct Edge {
    stream: UnixStream,
    decoder: Decoder,
    next_channel: u32,
    ends: HashMap<u32, Value>,
    pub events: Vec<Value>,
    pub hello: Value,
}

impl Edge {
    pub fn connect(socket: &Path) -> io::Result<Edge> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(40)))?;
        let mut edge = Edge {
            stream,
            decoder: Decoder::default(),
            next_channel: 1,
            ends: HashMap::new(),
            events: Vec::new(),
            hello: Value::Null,
        };
        let hello = json!({"protocol": {"min": 1, "max": 1}, "role": "edge"});
        edge.send(0, Body::Hello(hello.to_string().into_bytes()))?;
        while edge.hello.is_null() {
            edge.receive()?;
        }
        Ok(edge)
    }

    /// Sends a request and waits for its END: `ok`, or the code of its error.
    pub fn call(&mut self, request: Value) -> Result<Value, String> {
        let channel = self.open(&request).expect("the request is sent");
        self.end(channel)
    }

    pub fn open(&mut self, request: &Value) -> io::Result<u32> {
        let channel = self.next_channel;
        self.next_channel += 2;
        self.send(channel, Body::Open(request.to_string().into_bytes()))?;
        Ok(channel)
    }

    /// Waits for the END of a channel.
    pub fn end(&mut self, channel: u32) -> Result<Value, String> {
        loop {
            if let Some(end) = self.ends.remove(&channel) {
                if let Some(answer) = end.get("ok") {
                    return Ok(answer.clone());
                }
                let error = &end["error"];
                println!("error: {error}");
                return Err(error["code"].as_str().expect("a code").to_owned());
            }
            self.receive().expect("the connection lives");
        }
    }

    /// Waits for an event about a sandbox.
    pub fn event(&mut self, sandbox_id: &str) -> Value {
        loop {
            let found = self
                .events
                .iter()
                .position(|it| it["sandboxId"] == sandbox_id);
            if let Some(index) = found {
                return self.events.remove(index);
            }
            self.receive().expect("the connection lives");
        }
    }

    /// Waits until the spawner closes the connection.
    pub fn wait_closed(&mut self) {
        while self.receive().is_ok() {}
    }

    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    fn send(&mut self, channel: u32, body: Body) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode(&Frame { channel, body }, &mut bytes);
        self.stream.write_all(&bytes)
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut buffer = vec![0_u8; 65_536];
        let length = self.stream.read(&mut buffer)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.decoder.feed(&buffer[..length]);
        while let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
            let parse = |json: &[u8]| serde_json::from_slice::<Value>(json).expect("JSON");
            match frame.body {
                Body::Hello(json) => self.hello = parse(&json),
                Body::End(json) => {
                    self.ends.insert(frame.channel, parse(&json));
                }
                Body::Event(json) => self.events.push(parse(&json)),
                other => panic!("the spawner sent {other:?}"),
            }
        }
        Ok(())
    }
}
