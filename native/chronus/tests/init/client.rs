//! A small blocking client of init's protocol.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use chronus::frame::{Body, Decoder, Frame, Stream, encode};
use chronus::protocol::{Event, Outcome};
use serde_json::{Value, json};

/// What came on one channel.
#[derive(Debug, Default)]
pub struct Received {
    pub accept: Option<Value>,
    pub streams: [Vec<u8>; 2],
    pub gaps: [u64; 2],
    pub eofs: usize,
    pub end: Option<Value>,
    pub credit: u64,
}

impl Received {
    pub fn outcome(&self) -> Outcome {
        let end = self.end.as_ref().expect("an END");
        serde_json::from_value(end["ok"].clone()).unwrap_or_else(|error| panic!("{error}: {end}"))
    }

    pub fn error_code(&self) -> String {
        let end = self.end.as_ref().expect("an END");
        end["error"]["code"]
            .as_str()
            .unwrap_or_else(|| panic!("{end}"))
            .to_owned()
    }

    pub fn ok(&self) -> Value {
        let end = self.end.as_ref().expect("an END");
        assert!(end.get("ok").is_some(), "{end}");
        end["ok"].clone()
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.streams[0]).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.streams[1]).into_owned()
    }

    pub fn command_id(&self) -> String {
        let accept = self.accept.as_ref().expect("an ACCEPT");
        accept["commandId"].as_str().expect("an id").to_owned()
    }
}

pub struct Client {
    pub socket: UnixStream,
    decoder: Decoder,
    next: u32,
    pub channels: HashMap<u32, Received>,
    pub opened: Vec<(u32, Value)>,
    pub events: Vec<Outcome>,
    pub hello: Value,
    pub gives_credit: bool,
    pongs: usize,
}

pub const LIMIT: Duration = Duration::from_secs(20);

impl Client {
    pub fn connect(path: &Path) -> Self {
        let mut client = Self {
            socket: UnixStream::connect(path).expect("init listens"),
            decoder: Decoder::default(),
            next: 1,
            channels: HashMap::new(),
            opened: Vec::new(),
            events: Vec::new(),
            hello: Value::Null,
            gives_credit: true,
            pongs: 0,
        };
        client.socket.set_read_timeout(Some(LIMIT)).unwrap();
        let hello = json!({"protocol": {"min": 1, "max": 1}, "role": "edge", "later": 1});
        client.send(0, Body::Hello(hello.to_string().into_bytes()));
        while client.hello.is_null() {
            assert!(client.step(), "init closed the connection");
        }
        client
    }

    pub fn send(&mut self, channel: u32, body: Body) {
        let mut bytes = Vec::new();
        encode(&Frame { channel, body }, &mut bytes);
        self.socket.write_all(&bytes).expect("init reads");
    }

    pub fn open(&mut self, request: &Value) -> u32 {
        let channel = self.next;
        self.next += 2;
        self.channels.insert(channel, Received::default());
        self.send(channel, Body::Open(request.to_string().into_bytes()));
        channel
    }

    /// Opens, waits for END and gives what came.
    pub fn call(&mut self, request: &Value) -> Received {
        let channel = self.open(request);
        self.finish(channel)
    }

    pub fn finish(&mut self, channel: u32) -> Received {
        self.until(|client| client.channels[&channel].end.is_some());
        self.channels.remove(&channel).unwrap()
    }

    pub fn accepted(&mut self, channel: u32) {
        self.until(|client| {
            let received = &client.channels[&channel];
            received.accept.is_some() || received.end.is_some()
        });
    }

    pub fn until(&mut self, mut done: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(self.step(), "init closed the connection");
            assert!(start.elapsed() < LIMIT, "too slow: {:?}", self.channels);
        }
    }

    pub fn ping(&mut self) {
        let before = self.pongs;
        self.send(0, Body::Ping(b"there?".to_vec()));
        self.until(|client| client.pongs > before);
    }

    pub fn write(&mut self, channel: u32, bytes: &[u8]) {
        let mut sent = 0u64;
        for chunk in bytes.chunks(60_000) {
            self.until(|client| {
                let received = &client.channels[&channel];
                sent + chunk.len() as u64 <= 262_144 + received.credit || received.end.is_some()
            });
            if self.channels[&channel].end.is_some() {
                return;
            }
            self.send(channel, Body::Data(Stream::Input, chunk.to_vec()));
            sent += chunk.len() as u64;
        }
    }

    pub fn eof(&mut self, channel: u32) {
        self.send(channel, Body::Eof(Stream::Input));
    }

    /// Reads once; false when init closed the connection.
    pub fn step(&mut self) -> bool {
        let mut buffer = vec![0; 262_144];
        let count = match self.socket.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("{error}: {:?}", self.channels),
        };
        self.decoder.feed(&buffer[..count]);
        while let Some(frame) = self
            .decoder
            .next_frame()
            .expect("init keeps to the protocol")
        {
            self.take(frame);
        }
        count > 0
    }

    fn take(&mut self, frame: Frame) {
        let channel = frame.channel;
        let parse = |json: &[u8]| serde_json::from_slice::<Value>(json).expect("JSON");
        match frame.body {
            Body::Hello(json) => self.hello = parse(&json),
            Body::Event(json) => match serde_json::from_slice(&json).expect("an event") {
                Event::CommandEnded { outcome } => self.events.push(outcome),
                other => panic!("{other:?}"),
            },
            Body::Pong(_) => self.pongs += 1,
            Body::Open(json) => {
                self.channels.insert(channel, Received::default());
                self.opened.push((channel, parse(&json)));
            }
            body => {
                let Some(received) = self.channels.get_mut(&channel) else {
                    return;
                };
                let at = |stream: Stream| usize::from(stream == Stream::ErrorOutput);
                match body {
                    Body::Accept(json) => received.accept = Some(parse(&json)),
                    Body::End(json) => received.end = Some(parse(&json)),
                    Body::Eof(_) => received.eofs += 1,
                    Body::Credit(bytes) => received.credit += u64::from(bytes),
                    Body::Gap(stream, bytes) => received.gaps[at(stream)] += bytes,
                    Body::Data(stream, bytes) => {
                        received.streams[at(stream)].extend_from_slice(&bytes);
                        if self.gives_credit {
                            let bytes = u32::try_from(bytes.len()).unwrap();
                            self.send(channel, Body::Credit(bytes));
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

/// An `exec` of a shell script by the sandbox's root.
pub fn shell(action: &str, script: &str) -> Value {
    json!({
        "op": "exec", "actionId": action, "argv": ["sh", "-c", script], "cwd": "/",
        "env": {"PATH": "/usr/bin:/bin"}, "user": {"uid": 0, "gid": 0}, "stdin": false,
        "timeoutMs": null, "noNewPrivs": false, "endTree": false,
    })
}

/// The same with some keys changed.
pub fn with(mut request: Value, changes: Value) -> Value {
    let Value::Object(changes) = changes else {
        panic!("not an object")
    };
    for (key, value) in changes {
        request[key] = value;
    }
    request
}
