//! Frames of the chronus protocol (PROTOCOL.md, sections 1 and 2): encoding, and decoding in bounded memory.

use std::fmt;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

/// Most bytes of a frame's payload.
pub const PAYLOAD_BYTES_MAX: usize = 262_144;
/// Most bytes of one DATA frame, its stream byte not counted.
pub const DATA_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - 1;
const LENGTH_BYTES: usize = 4;
const HEADER_BYTES: usize = 9;
const PING_BYTES_MAX: usize = 64;
/// Bytes that one read asks for.
const READ_BYTES: usize = 65_536;

/// A stream of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Towards the process or the file.
    Input,
    /// Standard output, file content, listing.
    Output,
    /// Standard error.
    ErrorOutput,
}

impl Stream {
    fn from_byte(byte: u8) -> Result<Self, Violation> {
        match byte {
            0 => Ok(Self::Input),
            1 => Ok(Self::Output),
            2 => Ok(Self::ErrorOutput),
            _ => Err(Violation("unknown stream")),
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::Input => 0,
            Self::Output => 1,
            Self::ErrorOutput => 2,
        }
    }
}

/// What a frame says. JSON payloads are kept as bytes; their reader parses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    Hello(Vec<u8>),
    Open(Vec<u8>),
    Accept(Vec<u8>),
    End(Vec<u8>),
    Cancel,
    Data(Stream, Vec<u8>),
    Eof(Stream),
    Credit(u32),
    Event(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Gap(Stream, u64),
}

impl Body {
    fn type_byte(&self) -> u8 {
        match self {
            Self::Hello(_) => 0x01,
            Self::Open(_) => 0x02,
            Self::Accept(_) => 0x03,
            Self::End(_) => 0x04,
            Self::Cancel => 0x05,
            Self::Data(..) => 0x06,
            Self::Eof(_) => 0x07,
            Self::Credit(_) => 0x08,
            Self::Event(_) => 0x09,
            Self::Ping(_) => 0x0a,
            Self::Pong(_) => 0x0b,
            Self::Gap(..) => 0x0c,
        }
    }

    /// True for the types that belong to the connection itself, which is channel 0.
    fn is_of_connection(&self) -> bool {
        matches!(
            self,
            Self::Hello(_) | Self::Event(_) | Self::Ping(_) | Self::Pong(_)
        )
    }
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub channel: u32,
    pub body: Body,
}

/// A breach of the protocol by the peer. It is fatal for the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation(pub &'static str);

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the peer broke the protocol: {}", self.0)
    }
}

impl std::error::Error for Violation {}

/// Appends the frame's bytes to `out`. The payload must be within [`PAYLOAD_BYTES_MAX`]; the sender sees to it.
pub fn encode(frame: &Frame, out: &mut Vec<u8>) {
    let type_byte = frame.body.type_byte();
    match &frame.body {
        Body::Hello(json)
        | Body::Open(json)
        | Body::Accept(json)
        | Body::End(json)
        | Body::Event(json)
        | Body::Ping(json)
        | Body::Pong(json) => encode_parts(out, type_byte, frame.channel, &[json]),
        Body::Cancel => encode_parts(out, type_byte, frame.channel, &[]),
        Body::Data(stream, bytes) => encode_data(out, frame.channel, *stream, bytes),
        Body::Eof(stream) => encode_parts(out, type_byte, frame.channel, &[&[stream.byte()]]),
        Body::Credit(bytes) => {
            encode_parts(out, type_byte, frame.channel, &[&bytes.to_le_bytes()]);
        }
        Body::Gap(stream, bytes) => encode_parts(
            out,
            type_byte,
            frame.channel,
            &[&[stream.byte()], &bytes.to_le_bytes()],
        ),
    }
}

/// Appends a DATA frame without a copy of `bytes` in between.
pub fn encode_data(out: &mut Vec<u8>, channel: u32, stream: Stream, bytes: &[u8]) {
    encode_parts(out, 0x06, channel, &[&[stream.byte()], bytes]);
}

fn encode_parts(out: &mut Vec<u8>, type_byte: u8, channel: u32, parts: &[&[u8]]) {
    let payload: usize = parts.iter().map(|part| part.len()).sum();
    assert!(payload <= PAYLOAD_BYTES_MAX, "frame payload over its bound");
    out.reserve(HEADER_BYTES + payload);
    let length = u32::try_from(payload + 5).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.push(type_byte);
    out.extend_from_slice(&channel.to_le_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// Takes bytes as they arrive and gives whole frames.
///
/// Memory stays below one frame plus what one [`Decoder::feed`] added.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
}

impl Decoder {
    /// Adds received bytes. Take all frames with [`Decoder::next_frame`] before the next call.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Reads once from `fd`, as [`Decoder::feed`] does: 0 is the end of the stream.
    pub fn read_from(&mut self, fd: BorrowedFd<'_>) -> Result<usize, Errno> {
        self.feed(&[]);
        self.buffer.reserve(READ_BYTES);
        rustix::io::read(fd, rustix::buffer::spare_capacity(&mut self.buffer))
    }

    /// Bytes that wait for the rest of their frame.
    pub fn buffered(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// The next whole frame, or `None` until more bytes arrive. After a violation the decoder is of no more use.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Violation> {
        let rest = &self.buffer[self.start..];
        let Some((length_bytes, after)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
            self.release_when_idle();
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length_bytes))
            .map_err(|_| Violation("frame too long"))?;
        if length < HEADER_BYTES - LENGTH_BYTES {
            return Err(Violation("frame too short"));
        }
        if length > HEADER_BYTES - LENGTH_BYTES + PAYLOAD_BYTES_MAX {
            return Err(Violation("frame too long"));
        }
        if after.len() < length {
            return Ok(None);
        }
        let frame = decode_one(&after[..length])?;
        self.start += LENGTH_BYTES + length;
        Ok(Some(frame))
    }

    /// Gives memory back once nothing is buffered, so that thousands of idle peers cost little.
    fn release_when_idle(&mut self) {
        if self.buffered() == 0 {
            self.start = 0;
            self.buffer.clear();
            self.buffer.shrink_to(4096);
        }
    }
}

fn decode_one(bytes: &[u8]) -> Result<Frame, Violation> {
    let (&type_byte, rest) = bytes.split_first().ok_or(Violation("frame too short"))?;
    let (channel_bytes, payload) = rest
        .split_first_chunk::<4>()
        .ok_or(Violation("frame too short"))?;
    let channel = u32::from_le_bytes(*channel_bytes);
    let body = decode_body(type_byte, payload)?;
    if body.is_of_connection() != (channel == 0) {
        return Err(Violation("frame on the wrong kind of channel"));
    }
    Ok(Frame { channel, body })
}

fn decode_body(type_byte: u8, payload: &[u8]) -> Result<Body, Violation> {
    Ok(match type_byte {
        0x01 => Body::Hello(payload.to_vec()),
        0x02 => Body::Open(payload.to_vec()),
        0x03 => Body::Accept(payload.to_vec()),
        0x04 => Body::End(payload.to_vec()),
        0x05 if payload.is_empty() => Body::Cancel,
        0x05 => return Err(Violation("CANCEL with a payload")),
        0x06 => match payload {
            [stream, bytes @ ..] if !bytes.is_empty() => {
                Body::Data(Stream::from_byte(*stream)?, bytes.to_vec())
            }
            _ => return Err(Violation("DATA without bytes")),
        },
        0x07 => match payload {
            [stream] => Body::Eof(Stream::from_byte(*stream)?),
            _ => return Err(Violation("EOF of a wrong size")),
        },
        0x08 => match payload.try_into() {
            Ok(bytes) => Body::Credit(u32::from_le_bytes(bytes)),
            Err(_) => return Err(Violation("CREDIT of a wrong size")),
        },
        0x09 => Body::Event(payload.to_vec()),
        0x0a | 0x0b if payload.len() > PING_BYTES_MAX => {
            return Err(Violation("PING or PONG too long"));
        }
        0x0a => Body::Ping(payload.to_vec()),
        0x0b => Body::Pong(payload.to_vec()),
        0x0c => match payload.split_first_chunk::<1>() {
            Some(([stream], bytes)) => {
                let bytes = bytes
                    .try_into()
                    .map_err(|_| Violation("GAP of a wrong size"))?;
                Body::Gap(Stream::from_byte(*stream)?, u64::from_le_bytes(bytes))
            }
            None => return Err(Violation("GAP of a wrong size")),
        },
        _ => return Err(Violation("unknown frame type")),
    })
}
