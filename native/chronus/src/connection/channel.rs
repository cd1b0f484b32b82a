//! State of one channel.

use super::{CREDIT_INITIAL, CREDIT_MAX, Incoming};
use crate::frame::{Body, Stream, Violation};

#[derive(Debug)]
pub(super) struct Channel {
    pub(super) opened_by_peer: bool,
    pub(super) accepted: bool,
    /// DATA bytes that we may send.
    pub(super) send_credit: u32,
    /// DATA bytes that the peer may send.
    pub(super) receive_credit: u32,
    /// Bytes consumed and not yet given back as credit.
    pub(super) consumed: u32,
    /// Streams that the peer ended with EOF, one bit each.
    pub(super) ended_streams: u8,
}

impl Channel {
    pub(super) fn new(opened_by_peer: bool) -> Self {
        Self {
            opened_by_peer,
            accepted: false,
            send_credit: CREDIT_INITIAL,
            receive_credit: CREDIT_INITIAL,
            consumed: 0,
            ended_streams: 0,
        }
    }

    /// Takes a frame of the channel and checks it against what was sent before.
    pub(super) fn take(&mut self, channel: u32, body: Body) -> Result<Option<Incoming>, Violation> {
        Ok(match body {
            Body::Accept(payload) if !self.opened_by_peer && !self.accepted => {
                self.accepted = true;
                Some(Incoming::Accept { channel, payload })
            }
            Body::End(payload) if !self.opened_by_peer => Some(Incoming::End { channel, payload }),
            Body::Cancel if self.opened_by_peer => Some(Incoming::Cancel { channel }),
            Body::Credit(bytes) => {
                let credit = self.send_credit.checked_add(bytes);
                let credit = credit.filter(|&credit| credit <= CREDIT_MAX);
                self.send_credit = credit.ok_or(Violation("more credit than allowed"))?;
                Some(Incoming::Credit { channel })
            }
            Body::Data(stream, bytes) => {
                let cost = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                if self.ended_streams & stream_bit(stream) != 0 {
                    return Err(Violation("DATA after EOF"));
                }
                let credit = self.receive_credit.checked_sub(cost);
                self.receive_credit = credit.ok_or(Violation("DATA beyond its credit"))?;
                Some(Incoming::Data {
                    channel,
                    stream,
                    bytes,
                })
            }
            Body::Eof(stream) => {
                if self.ended_streams & stream_bit(stream) != 0 {
                    return Err(Violation("EOF twice"));
                }
                self.ended_streams |= stream_bit(stream);
                Some(Incoming::Eof { channel, stream })
            }
            _ => return Err(Violation("a frame that the opener's side never sends")),
        })
    }
}

/// The stream's bit in [`Channel::ended_streams`].
pub(super) fn stream_bit(stream: Stream) -> u8 {
    match stream {
        Stream::Input => 1,
        Stream::Output => 2,
        Stream::ErrorOutput => 4,
    }
}
