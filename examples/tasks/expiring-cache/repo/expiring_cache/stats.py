"""Counters that say how a cache is doing."""

from dataclasses import dataclass


@dataclass
class CacheStats:
    hits: int = 0
    misses: int = 0
    evicted: int = 0
    expired: int = 0

    @property
    def hit_rate(self):
        """Share of reads that found something, 0.0 to 1.0."""
        reads = self.hits + self.misses
        return self.hits / reads if reads else 0.0
