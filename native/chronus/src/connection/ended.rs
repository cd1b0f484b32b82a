//! Ends of connections.

use std::fmt;
use std::io;

use crate::frame::Violation;

/// Why a connection is over.
#[derive(Debug)]
pub enum Ended {
    /// The peer closed it.
    Closed,
    Violation(Violation),
    Io(io::Error),
    /// The peer reads too slowly for what it asked for.
    Overflow,
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => write!(out, "the peer closed the connection"),
            Self::Violation(violation) => violation.fmt(out),
            Self::Io(error) => write!(out, "the connection failed: {error}"),
            Self::Overflow => write!(out, "the peer does not read what it asked for"),
        }
    }
}

impl std::error::Error for Ended {}

impl From<Violation> for Ended {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}
