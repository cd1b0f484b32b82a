//! Processes by pid and start time, which together name one process for good.

use std::io;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::protocol::{Empty, ErrorCode, Failure, Kill};
use crate::sandbox::failure::Step;

/// Field 22 of `/proc/<pid>/stat`.
pub fn start_time(pid: Pid) -> io::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))?;
    parse_start_time(&stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Kills the process if it is still the one that started at that time.
pub fn kill(request: &Kill) -> Result<Empty, Failure> {
    let gone = || Failure::new(ErrorCode::NotFound, "that process is gone");
    let raw = i32::try_from(request.pid).map_err(|_| gone())?;
    let pid = Pid::from_raw(raw).ok_or_else(gone)?;
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Err(gone()),
        process => process.step("open the process")?,
    };
    // The descriptor holds whoever has the pid now; if the start time is right, it is the one that was meant.
    match start_time(pid) {
        Ok(found) if found == request.start_time => {}
        _ => return Err(gone()),
    }
    match pidfd_send_signal(&process, Signal::KILL) {
        Err(rustix::io::Errno::SRCH) => Err(gone()),
        sent => sent.step("kill the process").map(|()| Empty {}),
    }
}

fn parse_start_time(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    // The first field after the name is number 3.
    fields.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_field_22_whatever_the_name() {
        let fields: Vec<String> = (4..=30).map(|number| number.to_string()).collect();
        let stat = format!("1 (x) y) S {}", fields.join(" "));
        assert_eq!(parse_start_time(&stat), Some(22));
        assert_eq!(parse_start_time("1 (x) S 1 2"), None);
    }

    #[test]
    fn another_start_time_is_another_process() {
        let request = Kill {
            pid: std::process::id(),
            start_time: 1,
        };
        let code = kill(&request).expect_err("it must not die").code;
        assert_eq!(code, ErrorCode::NotFound);
    }
}
