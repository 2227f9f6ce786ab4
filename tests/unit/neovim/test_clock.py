"""The editor's clock as seen from here: never late, whatever the clocks do."""

from __future__ import annotations

import random

from mcp_tools_nvim.neovim.clock import NS, WINDOW, EditorClock


def test_it_is_never_later_than_the_truth() -> None:
    """With drift and any round trip, an instant translates to at most the editor's true clock."""
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


def test_the_best_sample_of_the_window_counts() -> None:
    """A slow answer does not spoil what a quick one taught."""
    clock = EditorClock()
    clock.sample(10.0, 10.001, 110 * NS)
    clock.sample(11.0, 14.0, 111 * NS)
    assert abs(clock.to_editor(20.0) - (120 * NS - 1_000_000)) < 1000


def test_a_clock_that_stood_still_is_noticed_at_once() -> None:
    """After the editor's machine slept, the first sample replaces all that was known."""
    clock = EditorClock()
    clock.sample(10.0, 10.001, 110 * NS)
    clock.sample(70.0, 70.001, 120 * NS)
    assert clock.to_editor(70.001) <= 120 * NS


def test_a_clock_that_went_on_in_our_sleep_is_followed() -> None:
    """When the editor's clock counted time that ours did not, the offset grows with the first sample."""
    clock = EditorClock()
    clock.sample(10.0, 10.001, 110 * NS)
    clock.sample(11.0, 11.001, 500 * NS)
    assert abs(clock.to_editor(11.001) - 500 * NS) < 1000


def test_old_samples_are_forgotten() -> None:
    """A sample counts for two windows at most, and a clock without news says so."""
    clock = EditorClock()
    assert clock.stale(0.0)
    clock.sample(10.0, 10.0, 110 * NS)
    assert not clock.stale(10.0 + WINDOW)
    assert clock.stale(10.0 + WINDOW + 1)
    clock.sample(80.0, 80.5, 180 * NS)
    assert abs(clock.offset - int(99.5 * NS)) < 1000


def test_both_directions_agree() -> None:
    """A deadline that the editor names comes back as the instant that it meant."""
    clock = EditorClock()
    clock.sample(10.0, 10.0, 110 * NS)
    assert abs(clock.to_local(clock.to_editor(42.0)) - 42.0) < 1e-6
