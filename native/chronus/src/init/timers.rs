//! Deadlines of the event loop.

use std::collections::BTreeSet;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::output::CommandNumber;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The command has run for as long as it may.
    Timeout(CommandNumber),
    /// The command's killed processes had long enough to vanish.
    Vanish(CommandNumber),
    /// The command's output has been kept for long enough.
    Expire(CommandNumber),
    /// A file helper is to be checked for progress.
    File(u64),
}

/// Deadlines in order, in milliseconds of a clock that only goes forward.
#[derive(Debug)]
pub(super) struct Timers {
    start: Instant,
    set: BTreeSet<(u64, Timer)>,
}

impl Timers {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            set: BTreeSet::new(),
        }
    }

    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Sets a timer and gives its deadline, by which it can be removed.
    pub(super) fn set_in(&mut self, ms: u64, timer: Timer) -> u64 {
        let deadline = self.now_ms().saturating_add(ms);
        self.set.insert((deadline, timer));
        deadline
    }

    pub(super) fn remove(&mut self, deadline: u64, timer: Timer) {
        self.set.remove(&(deadline, timer));
    }

    /// Milliseconds until the next deadline.
    pub(super) fn next_in(&self) -> Option<u64> {
        let (deadline, _) = self.set.first()?;
        Some(deadline.saturating_sub(self.now_ms()))
    }

    /// The next timer that is due.
    pub(super) fn pop_due(&mut self) -> Option<Timer> {
        let (deadline, timer) = *self.set.first()?;
        if deadline > self.now_ms() {
            return None;
        }
        self.set.pop_first();
        Some(timer)
    }
}

/// Milliseconds since 1970.
pub(super) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
