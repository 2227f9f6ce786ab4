"""Interleaved rounds: compared measurements take turns, so load on the machine affects all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

Measure = Callable[[], Awaitable[Any]]


@dataclass(frozen=True)
class Amount:
    """The amount of work of a run."""

    rounds: int
    seconds: int  # of load per measurement and round
    calls: tuple[int, int]  # memory must not grow between them
    idle: float  # seconds
    pending: float  # seconds


FULL = Amount(rounds=5, seconds=1, calls=(20_000, 100_000), idle=10, pending=60)
QUICK = Amount(rounds=1, seconds=1, calls=(500, 2_000), idle=1, pending=4)


class Rounds:
    """The samples of each measurement, one per round."""

    def __init__(self, samples: Mapping[str, list[Any]]) -> None:
        self.samples = samples

    def median(self, name: str, field: str) -> float:
        """Median over the rounds."""
        return median(getattr(sample, field) for sample in self.samples[name])

    def ratio(self, name: str, other: str, field: str) -> float:
        """Median over the rounds of the ratio of two measurements."""
        pairs = zip(self.samples[name], self.samples[other], strict=True)
        return median(getattr(one, field) / getattr(two, field) for one, two in pairs)

    def spread(self, name: str) -> float:
        """Median over the rounds of p99 ÷ p50."""
        return median(sample.p99 / sample.p50 for sample in self.samples[name])


async def interleaved(measures: Mapping[str, Measure], count: int) -> Rounds:
    """Runs every measurement once per round, in the same order."""
    samples: dict[str, list[Any]] = {name: [] for name in measures}
    for _ in range(count):
        for name, measure in measures.items():
            samples[name].append(await measure())
    return Rounds(samples)
