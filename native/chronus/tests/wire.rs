//! Properties of the codec, of channels and of credit.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use chronus::connection::{CHANNELS_MAX, CREDIT_INITIAL, Connection, Ended, Incoming};
use chronus::frame::{Body, Decoder, Frame, PAYLOAD_BYTES_MAX, Stream, encode};
use chronus::protocol::{Hello, InitRequest, Role, SpawnerRequest, VersionRange};
use proptest::prelude::*;

fn stream() -> impl Strategy<Value = Stream> {
    prop_oneof![
        Just(Stream::Input),
        Just(Stream::Output),
        Just(Stream::ErrorOutput)
    ]
}

fn frame() -> impl Strategy<Value = Frame> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..300);
    let of_connection = prop_oneof![
        bytes().prop_map(Body::Hello),
        bytes().prop_map(Body::Event),
        prop::collection::vec(any::<u8>(), 0..=64).prop_map(Body::Ping),
        prop::collection::vec(any::<u8>(), 0..=64).prop_map(Body::Pong),
    ]
    .prop_map(|body| Frame { channel: 0, body });
    let of_channel = prop_oneof![
        bytes().prop_map(Body::Open),
        bytes().prop_map(Body::Accept),
        bytes().prop_map(Body::End),
        Just(Body::Cancel),
        (stream(), prop::collection::vec(any::<u8>(), 1..300))
            .prop_map(|(stream, bytes)| Body::Data(stream, bytes)),
        stream().prop_map(Body::Eof),
        any::<u32>().prop_map(Body::Credit),
        (stream(), any::<u64>()).prop_map(|(stream, bytes)| Body::Gap(stream, bytes)),
    ];
    let of_channel = (1..=u32::MAX, of_channel).prop_map(|(channel, body)| Frame { channel, body });
    prop_oneof![of_connection, of_channel]
}

proptest! {
    #[test]
    fn frames_survive_any_cutting_of_their_bytes(
        frames in prop::collection::vec(frame(), 0..8),
        cuts in prop::collection::vec(1usize..200, 1..8),
    ) {
        let mut bytes = Vec::new();
        for frame in &frames {
            encode(frame, &mut bytes);
        }
        let (mut decoder, mut seen, mut at) = (Decoder::default(), Vec::new(), 0);
        for cut in cuts.iter().cycle() {
            if at == bytes.len() {
                break;
            }
            let end = bytes.len().min(at + cut);
            decoder.feed(&bytes[at..end]);
            at = end;
            while let Some(frame) = decoder.next_frame().unwrap() {
                seen.push(frame);
            }
        }
        prop_assert_eq!(seen, frames);
        prop_assert_eq!(decoder.buffered(), 0);
    }

    #[test]
    fn any_bytes_give_frames_or_a_violation_in_bounded_memory(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let mut decoder = Decoder::default();
        decoder.feed(&bytes);
        while let Ok(Some(frame)) = decoder.next_frame() {
            let mut again = Vec::new();
            encode(&frame, &mut again);
            prop_assert!(again.len() <= bytes.len());
        }
        prop_assert!(decoder.buffered() <= bytes.len());
    }

    #[test]
    fn changed_frames_never_panic(
        frame in frame(), at in any::<prop::sample::Index>(), value in any::<u8>(),
    ) {
        let mut bytes = Vec::new();
        encode(&frame, &mut bytes);
        let at = at.index(bytes.len());
        bytes[at] = value;
        let mut decoder = Decoder::default();
        decoder.feed(&bytes);
        while let Ok(Some(_)) = decoder.next_frame() {}
    }

    #[test]
    fn any_open_payload_is_parsed_or_refused(text in "[ -~]{0,200}") {
        let _ = chronus::connection::parse::<InitRequest>(text.as_bytes());
        let _ = chronus::connection::parse::<SpawnerRequest>(text.as_bytes());
    }

    #[test]
    fn any_frames_are_taken_or_refused_by_a_connection(
        frames in prop::collection::vec(frame(), 0..40),
    ) {
        let (mut peer, mut connection) = connected();
        greet(&mut peer, &mut connection);
        let mut bytes = Vec::new();
        for frame in &frames {
            encode(frame, &mut bytes);
        }
        peer.write_all(&bytes).unwrap();
        let _ = take_all(&mut connection);
    }
}

fn hello(role: Role) -> Hello {
    Hello {
        protocol: VersionRange { min: 1, max: 1 },
        role,
        pid: None,
        boot_id: None,
        sandbox_id: None,
    }
}

fn connected() -> (UnixStream, Connection) {
    let (peer, ours) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (peer, Connection::new(ours.into(), &hello(Role::Init)))
}

fn send(peer: &mut UnixStream, frames: &[Frame]) {
    let mut bytes = Vec::new();
    for frame in frames {
        encode(frame, &mut bytes);
    }
    peer.write_all(&bytes).unwrap();
}

fn greet(peer: &mut UnixStream, connection: &mut Connection) {
    let json = serde_json::to_vec(&hello(Role::Edge)).unwrap();
    send(
        peer,
        &[Frame {
            channel: 0,
            body: Body::Hello(json),
        }],
    );
    assert!(matches!(
        take_all(connection).unwrap()[..],
        [Incoming::Hello(_)]
    ));
}

fn take_all(connection: &mut Connection) -> Result<Vec<Incoming>, Ended> {
    connection.receive()?;
    let mut all = Vec::new();
    while let Some(incoming) = connection.next_incoming()? {
        all.push(incoming);
    }
    Ok(all)
}

fn open(channel: u32) -> Frame {
    Frame {
        channel,
        body: Body::Open(b"{}".to_vec()),
    }
}

fn data(channel: u32, bytes: usize) -> Frame {
    Frame {
        channel,
        body: Body::Data(Stream::Input, vec![7; bytes]),
    }
}

#[test]
fn the_first_frame_must_be_hello() {
    let (mut peer, mut connection) = connected();
    send(&mut peer, &[open(1)]);
    assert!(matches!(
        take_all(&mut connection),
        Err(Ended::Violation(_))
    ));
}

#[test]
fn hello_without_a_common_version_ends_the_connection() {
    let (mut peer, mut connection) = connected();
    let json = br#"{"protocol":{"min":2,"max":3},"role":"edge","later":true}"#;
    send(
        &mut peer,
        &[Frame {
            channel: 0,
            body: Body::Hello(json.to_vec()),
        }],
    );
    assert!(matches!(
        take_all(&mut connection),
        Err(Ended::Violation(_))
    ));
}

#[test]
fn data_beyond_its_credit_is_a_violation() {
    let (mut peer, mut connection) = connected();
    greet(&mut peer, &mut connection);
    let half = CREDIT_INITIAL as usize / 2;
    let writer = std::thread::spawn(move || {
        send(
            &mut peer,
            &[open(1), data(1, half), data(1, half), data(1, 1)],
        );
        peer
    });
    let ended = loop {
        if let Err(ended) = take_all(&mut connection) {
            break ended;
        }
    };
    assert!(matches!(ended, Ended::Violation(_)), "{ended}");
    drop(writer.join().unwrap());
}

#[test]
fn consumed_data_comes_back_as_credit() {
    let (mut peer, mut connection) = connected();
    greet(&mut peer, &mut connection);
    let (mut sent, mut credit) = (0u64, u64::from(CREDIT_INITIAL));
    send(&mut peer, &[open(1)]);
    let mut decoder = Decoder::default();
    peer.set_nonblocking(true).unwrap();
    for _ in 0..64 {
        send(&mut peer, &[data(1, 40_000)]);
        sent += 40_000;
        let mut taken = 0;
        while taken < 40_000 {
            for incoming in take_all(&mut connection).unwrap() {
                if let Incoming::Data { bytes, .. } = incoming {
                    taken += bytes.len();
                }
            }
        }
        connection.consumed(1, taken);
        connection.flush().unwrap();
        let mut buffer = [0; 4096];
        if let Ok(count) = peer.read(&mut buffer) {
            decoder.feed(&buffer[..count]);
        }
        while let Some(frame) = decoder.next_frame().unwrap() {
            if let Body::Credit(bytes) = frame.body {
                credit += u64::from(bytes);
            }
        }
        assert!(credit - sent >= 131_072, "the peer is never starved");
    }
}

#[test]
fn output_stops_at_the_credit_and_goes_on_with_more() {
    let (mut peer, mut connection) = connected();
    greet(&mut peer, &mut connection);
    send(&mut peer, &[open(1)]);
    take_all(&mut connection).unwrap();
    let mut sent = 0;
    loop {
        let room = connection.sendable(1);
        if room == 0 {
            break;
        }
        connection.send_data(1, Stream::Output, &vec![1; room]);
        sent += room;
    }
    assert_eq!(sent, CREDIT_INITIAL as usize);
    send(
        &mut peer,
        &[Frame {
            channel: 1,
            body: Body::Credit(10),
        }],
    );
    assert_eq!(
        take_all(&mut connection).unwrap(),
        [Incoming::Credit { channel: 1 }]
    );
    assert_eq!(connection.sendable(1), 10);
    send(
        &mut peer,
        &[Frame {
            channel: 1,
            body: Body::Credit(u32::MAX),
        }],
    );
    assert!(take_all(&mut connection).is_err());
}

#[test]
fn one_channel_too_many_is_answered_and_the_rest_serve() {
    let (mut peer, mut connection) = connected();
    greet(&mut peer, &mut connection);
    let mut opened = 0;
    for number in 0..=CHANNELS_MAX {
        send(&mut peer, &[open(u32::try_from(number * 2 + 1).unwrap())]);
        opened += take_all(&mut connection).unwrap().len();
    }
    assert_eq!(opened, CHANNELS_MAX);
    connection.flush().unwrap();
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; PAYLOAD_BYTES_MAX];
    let count = peer.read(&mut buffer).unwrap();
    decoder.feed(&buffer[..count]);
    let mut last = None;
    while let Some(frame) = decoder.next_frame().unwrap() {
        last = Some(frame);
    }
    let last = last.unwrap();
    assert_eq!(last.channel as usize, CHANNELS_MAX * 2 + 1);
    let Body::End(json) = last.body else {
        panic!("not an END")
    };
    assert!(String::from_utf8(json).unwrap().contains("too_many"));
}

#[test]
fn late_frames_of_an_ended_channel_are_ignored() {
    let (mut peer, mut connection) = connected();
    greet(&mut peer, &mut connection);
    send(&mut peer, &[open(1)]);
    take_all(&mut connection).unwrap();
    connection.end_ok(1, &chronus::protocol::Empty {});
    send(
        &mut peer,
        &[
            data(1, 5),
            Frame {
                channel: 1,
                body: Body::Cancel,
            },
        ],
    );
    assert_eq!(take_all(&mut connection).unwrap(), []);
    send(&mut peer, &[data(3, 5)]);
    assert!(take_all(&mut connection).is_err());
}
