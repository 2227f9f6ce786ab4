"""The estimate of the editor's clock is never late."""

from __future__ import annotations

import random

from mcp_tools_nvim.neovim.clock import NS, WINDOW, EditorClock


def test_an_estimate_is_never_later_than_the_clock_of_the_editor() -> None:
    """With drift and any round trip."""
    chance = random.Random(7)
    for drift in (-100e-6, 0.0, 100e-6):
        clock, now = EditorClock(), 50.0
        for _ in range(2000):
            now += chance.expovariate(1 / 2)
            out, back = chance.uniform(0, 0.02), chance.uniform(0, 0.02)
            read_at = now + out
            clock.sample(now, read_at + back, int((read_at * (1 + drift) + 777) * NS))
            now = read_at + back
            moment = now + 2.0
            late = clock.to_editor(moment) / NS - (moment * (1 + drift) + 777)
            assert late < 2.5 * WINDOW * abs(drift) + 1e-6
            assert late > -0.05


def sampled(*samples: tuple[float, float, int]) -> EditorClock:
    """A clock with samples: seconds before and after, and seconds of the editor."""
    clock = EditorClock()
    for before, after, seconds in samples:
        clock.sample(before, after, seconds * NS)
    return clock


def test_the_best_sample_of_the_window_is_used() -> None:
    clock = sampled((10.0, 10.001, 110), (11.0, 14.0, 111))
    assert abs(clock.to_editor(20.0) - (120 * NS - 1_000_000)) < 1000


def test_a_clock_that_stopped_while_the_editor_slept_is_corrected_by_the_next_sample() -> None:
    assert sampled((10.0, 10.001, 110), (70.0, 70.001, 120)).to_editor(70.001) <= 120 * NS


def test_a_clock_that_ran_while_we_slept_is_corrected_by_the_next_sample() -> None:
    clock = sampled((10.0, 10.001, 110), (11.0, 11.001, 500))
    assert abs(clock.to_editor(11.001) - 500 * NS) < 1000


def test_old_samples_expire() -> None:
    clock = EditorClock()
    assert clock.stale(0.0)
    clock.sample(10.0, 10.0, 110 * NS)
    assert not clock.stale(10.0 + WINDOW)
    assert clock.stale(10.0 + WINDOW + 1)
    clock.sample(80.0, 80.5, 180 * NS)
    assert abs(clock.offset - int(99.5 * NS)) < 1000


def test_a_converted_time_converts_back() -> None:
    clock = sampled((10.0, 10.0, 110))
    assert abs(clock.to_local(clock.to_editor(42.0)) - 42.0) < 1e-6
