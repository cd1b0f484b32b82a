"""Sources of time. Seconds, monotonic, from an arbitrary start."""

import time


class SystemClock:
    """The machine's own monotonic clock."""

    def now(self):
        return time.monotonic()


class ManualClock:
    """A clock that stands still until it is moved; for tests."""

    def __init__(self, start_s=0.0):
        self._now_s = start_s

    def now(self):
        return self._now_s

    def advance(self, seconds):
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self._now_s += seconds
