"""The editor's clock, as far as this side can know it.

Every answer carries the editor's `hrtime`, read at some moment between question and answer. So each sample
bounds the offset from both sides, and only the lower bound is used: an instant translated to the editor's
clock is never later than meant. A call may be refused less than a round trip too early, never started late.
Does not know about: I/O.
"""

from __future__ import annotations

NS = 1_000_000_000
WINDOW = 30.0
"""Seconds that a sample counts (up to twice that): the clocks of two machines drift, and stop in suspend."""


class EditorClock:
    """The offset of the editor's hrtime to the loop's clock.

    Attributes:
        offset: the best lower bound (ns) of the last WINDOW; 0 before the first sample.
    """

    __slots__ = ("_now_bound", "_old_bound", "_seen", "_since", "offset")

    def __init__(self) -> None:
        self._now_bound: int | None = None
        self._old_bound: int | None = None
        self.offset = 0
        self._since = 0.0
        self._seen = float("-inf")

    def sample(self, sent: float, received: float, clock: int) -> None:
        """Learns from one answer.

        Args:
            sent: seconds of the loop's clock when the question was written.
            received: seconds of the loop's clock when the answer was read.
            clock: the editor's hrtime in it.
        """
        lower, upper = clock - int(received * NS) - 1, clock - int(sent * NS)
        if self._now_bound is None or upper < self.offset:
            # The editor's clock stood still (suspend on its side): all that was known is too late now.
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
        """Tells whether the last sample is too old to be trusted."""
        return now - self._seen > WINDOW

    def to_editor(self, moment: float) -> int:
        """Translates seconds of the loop's clock to the editor's hrtime."""
        return int(moment * NS) + self.offset

    def to_local(self, clock: int) -> float:
        """Translates the editor's hrtime to seconds of the loop's clock."""
        return (clock - self.offset) / NS
