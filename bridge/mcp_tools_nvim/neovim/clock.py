"""Estimates Neovim's clock.

Every answer contains Neovim's `hrtime` between request and answer, so each gives a lower and an upper bound
of the offset. The lower one is used: converted times are early by at most a round trip and never late, so a
call may be refused slightly too early, but never starts too late.
"""

from __future__ import annotations

NS = 1_000_000_000
WINDOW = 30.0
"""Samples are dropped after one to two times this many seconds: clocks of two machines drift apart."""


class EditorClock:
    """The offset of Neovim's hrtime from the loop's clock.

    Attributes:
        offset: the highest recent lower bound, in ns; 0 before the first sample.
    """

    __slots__ = ("_now_bound", "_old_bound", "_seen", "_since", "offset")

    def __init__(self) -> None:
        self._now_bound: int | None = None
        self._old_bound: int | None = None
        self.offset = 0
        self._since = 0.0
        self._seen = float("-inf")

    def sample(self, sent: float, received: float, clock: int) -> None:
        """Adds the sample of one answer.

        Args:
            sent: seconds of the loop's clock when the request was sent.
            received: seconds of the loop's clock when the answer was read.
            clock: Neovim's hrtime in the answer.
        """
        lower, upper = clock - int(received * NS) - 1, clock - int(sent * NS)
        if self._now_bound is None or upper < self.offset:
            # Neovim's clock was stopped (its machine was suspended): earlier bounds are too high.
            self._now_bound, self._old_bound, self._since = lower, None, received
        elif received - self._since > WINDOW:
            self._old_bound = self._now_bound if received - self._since < 2 * WINDOW else None
            self._now_bound, self._since = lower, received
        elif lower > self._now_bound:
            self._now_bound = lower
        self._seen = received
        old, now = self._old_bound, self._now_bound
        self.offset = now if old is None or now > old else old

    def stale(self, now: float) -> bool:
        """Whether the last sample is too old."""
        return now - self._seen > WINDOW

    def to_editor(self, moment: float) -> int:
        """Converts seconds of the loop's clock to Neovim's hrtime."""
        return int(moment * NS) + self.offset

    def to_local(self, clock: int) -> float:
        """Converts Neovim's hrtime to seconds of the loop's clock."""
        return (clock - self.offset) / NS
