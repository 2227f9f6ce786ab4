"""A token bucket, for rate limits."""

from __future__ import annotations

import math


class TokenBucket:
    """Starts full, with `burst` tokens, and gains `rate` per second. Times are seconds of any one clock."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._at = now

    def take(self, now: float) -> int:
        """Takes a token and returns 0; without one returns the milliseconds until there is one."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens >= 1:
            self._tokens -= 1
            return 0
        return max(1, math.ceil((1 - self._tokens) / self._rate * 1000))
