//! JSON payloads of the chronus protocol (PROTOCOL.md, sections 3 to 6). Unknown keys are errors, but in HELLO.

mod init;
mod spawner;

use serde::{Deserialize, Serialize};

pub use init::*;
pub use spawner::*;

/// The one version of the protocol that this chronus speaks.
pub const PROTOCOL_VERSION: u32 = 1;
/// Most bytes of an error's message.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Codes of a failed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    Invalid,
    NotFound,
    Denied,
    Exists,
    NotDirectory,
    IsDirectory,
    NotEmpty,
    DiskQuota,
    TooLarge,
    TooMany,
    Busy,
    Cancelled,
    Deadline,
    AgentKilled,
    Conflict,
    Internal,
}

/// Why an operation failed: the payload of `END {error}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub code: ErrorCode,
    /// Text for people, at most 1,024 bytes.
    pub message: String,
}

impl Failure {
    /// A failure whose message is cut to its bound.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE_BYTES_MAX {
            let end = (0..=MESSAGE_BYTES_MAX)
                .rev()
                .find(|&at| message.is_char_boundary(at))
                .unwrap_or(0);
            message.truncate(end);
        }
        Self { code, message }
    }
}

/// Payload of END.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum End<T> {
    Ok(T),
    Error(Failure),
}

/// The empty object, answer of many operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Edge,
    Spawner,
    Init,
    Guest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRange {
    pub min: u32,
    pub max: u32,
}

/// HELLO. Unknown keys are ignored, so that an old init serves a new edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    pub protocol: VersionRange,
    pub role: Role,
    /// Process id in the host's pid namespace, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// 32 hexadecimal digits, random per process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
}

/// EVENT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    #[serde(rename_all = "camelCase")]
    InitEnded {
        sandbox_id: String,
        pid: u32,
        exit_code: Option<i32>,
        signal: Option<i32>,
    },
    CommandEnded {
        outcome: Outcome,
    },
}
