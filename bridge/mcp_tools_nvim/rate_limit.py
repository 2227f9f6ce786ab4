"""How much of something a client may have in a time. Does not know about: what is counted, clients."""

from __future__ import annotations

import math


class TokenBucket:
    """Full at the beginning; `rate` tokens a second, `burst` at most. Times in seconds of any one clock."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._at = now

    def take(self, now: float) -> int:
        """Takes a token; without one the milliseconds until there is one, else 0."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens >= 1:
            self._tokens -= 1
            return 0
        return max(1, math.ceil((1 - self._tokens) / self._rate * 1000))
