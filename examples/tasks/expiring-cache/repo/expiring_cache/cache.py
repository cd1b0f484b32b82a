"""The cache: an ordered mapping for use, a heap of deadlines for age."""

import heapq
import threading
from collections import OrderedDict

from .clock import SystemClock
from .stats import CacheStats


class _Entry:
    __slots__ = ("value", "deadline_s")

    def __init__(self, value, deadline_s):
        self.value = value
        self.deadline_s = deadline_s


class ExpiringCache:
    """Holds at most `capacity` entries, each for at most `ttl_s` seconds.

    The entry order in `_entries` is the order of use, oldest first. `_deadlines`
    is a heap of (deadline, serial, key), so that what is over is found without
    a walk over everything.
    """

    def __init__(self, capacity, ttl_s, clock=None):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        if ttl_s <= 0:
            raise ValueError("ttl_s must be positive")
        self._capacity = capacity
        self._ttl_s = ttl_s
        self._clock = clock or SystemClock()
        self._entries = OrderedDict()
        self._deadlines = []
        self._serial = 0
        self._lock = threading.Lock()
        self.stats = CacheStats()

    def __len__(self):
        with self._lock:
            self._purge()
            return len(self._entries)

    def __contains__(self, key):
        with self._lock:
            self._purge()
            return key in self._entries

    def put(self, key, value, ttl_s=None):
        """Stores a value, as the most recently used, with a new deadline."""
        with self._lock:
            self._purge()
            deadline_s = self._clock.now() + (self._ttl_s if ttl_s is None else ttl_s)
            self._entries[key] = _Entry(value, deadline_s)
            self._entries.move_to_end(key)
            self._serial += 1
            heapq.heappush(self._deadlines, (deadline_s, self._serial, key))
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
                self.stats.evicted += 1

    def get(self, key, default=None):
        """The value, which becomes the most recently used; or the default."""
        with self._lock:
            self._purge()
            entry = self._entries.get(key)
            if entry is None:
                self.stats.misses += 1
                return default
            self._entries.move_to_end(key)
            self.stats.hits += 1
            return entry.value

    def delete(self, key):
        """Removes an entry; says whether there was one."""
        with self._lock:
            return self._entries.pop(key, None) is not None

    def keys(self):
        """Live keys, least recently used first."""
        with self._lock:
            self._purge()
            return list(self._entries)

    def _purge(self):
        """Removes what is over. The caller holds the lock."""
        now_s = self._clock.now()
        while self._deadlines and self._deadlines[0][0] <= now_s:
            _, _, key = heapq.heappop(self._deadlines)
            if self._entries.pop(key, None) is not None:
                self.stats.expired += 1
