//! Messages between init and a file helper, over a SOCK_SEQPACKET pair.

/// Most bytes of content in one message.
pub const CHUNK_BYTES: usize = 65_536;
/// Bytes that hold any message.
pub const MESSAGE_BYTES_MAX: usize = CHUNK_BYTES + 1;

#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// From the helper: JSON of ACCEPT.
    Accept(Vec<u8>),
    /// Content, in either direction.
    Data(Vec<u8>),
    /// From the helper: JSON of END. Its last message.
    End(Vec<u8>),
    /// To the helper: the content is complete.
    Eof,
    /// To the helper: give up and leave everything as it was.
    Cancel,
}

impl Message {
    pub fn encode(&self) -> Vec<u8> {
        let (kind, bytes): (u8, &[u8]) = match self {
            Self::Accept(json) => (b'A', json),
            Self::Data(bytes) => (b'D', bytes),
            Self::End(json) => (b'E', json),
            Self::Eof => (b'F', &[]),
            Self::Cancel => (b'C', &[]),
        };
        let mut encoded = Vec::with_capacity(bytes.len() + 1);
        encoded.push(kind);
        encoded.extend_from_slice(bytes);
        encoded
    }

    /// `None` at the end of the socket and for what is not a message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, bytes) = bytes.split_first()?;
        let bytes = bytes.to_vec();
        match kind {
            b'A' => Some(Self::Accept(bytes)),
            b'D' => Some(Self::Data(bytes)),
            b'E' => Some(Self::End(bytes)),
            b'F' => Some(Self::Eof),
            b'C' => Some(Self::Cancel),
            _ => None,
        }
    }
}
