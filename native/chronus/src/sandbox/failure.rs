//! A step of an operation that failed.

use std::io;

use crate::protocol::{ErrorCode, Failure};

/// Names the step that an error of the system ended.
pub trait Step<T> {
    /// `internal`, "Cannot `step`: cause".
    fn step(self, step: &str) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: &str) -> Result<T, Failure> {
        self.map_err(|error| {
            let cause: io::Error = error.into();
            Failure::new(ErrorCode::Internal, format!("Cannot {step}: {cause}"))
        })
    }
}
