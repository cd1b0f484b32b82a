"""A cache bounded by use and by age."""

from .cache import ExpiringCache
from .clock import ManualClock, SystemClock
from .stats import CacheStats

__all__ = ["CacheStats", "ExpiringCache", "ManualClock", "SystemClock"]
