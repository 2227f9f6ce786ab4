"""Backpressure for large results: one after the other, while what is held leaves room."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from mcp_tools_nvim.calls.backpressure import MAX_HELD_BYTES, RESERVE, Backpressure
from mcp_tools_nvim.values import Outcome

MIB = 1024 * 1024


async def granted(room: Backpressure, size: int, seconds: float = 0.1) -> bool:
    """Whether a turn comes within so long."""
    try:
        async with asyncio.timeout(seconds):
            await room.turn(size, partial(asyncio.sleep, 0))
            return True
    except TimeoutError:
        return False


async def until(taken: asyncio.Event) -> None:
    """Takes a result until then."""
    await taken.wait()


async def test_a_result_counts_as_long_as_anybody_has_it() -> None:
    """The next large one waits for that, and nothing has to be given back."""
    room = Backpressure(limit=10 * MIB)
    outcome = Outcome("done", "text", "x")
    room.note(outcome, 8 * MIB)
    assert room.held == 8 * MIB
    assert await granted(room, 2 * MIB)
    assert not await granted(room, 3 * MIB)
    del outcome
    assert room.held == 0
    assert await granted(room, 11 * MIB)  # larger than all room, while nothing else is there


async def test_turns_come_one_after_the_other() -> None:
    """A result is taken when the one before has been."""
    room = Backpressure()
    taken = asyncio.Event()
    first = asyncio.ensure_future(room.turn(2 * MIB, partial(until, taken)))
    await asyncio.sleep(0)
    assert not await granted(room, 2 * MIB)
    assert await granted(room, MIB)
    taken.set()
    await first
    assert await granted(room, 2 * MIB)


async def test_holders_are_asked_to_ease_while_somebody_waits() -> None:
    """They hear by how much, once more after each word of one; what they let go of is room."""
    held, asked = [MAX_HELD_BYTES], list[int]()

    def ease(size: int) -> None:
        asked.append(size)
        if len(asked) == 2:
            held[0] = 0

    room = Backpressure()
    room.watch(lambda: held[0], ease)
    waiting = asyncio.ensure_future(granted(room, 2 * MIB))
    await asyncio.sleep(0.02)
    assert asked == [2 * MIB]
    room.notify_freed()
    assert await waiting
    assert asked == [2 * MIB, 2 * MIB]


async def test_a_holder_drops_only_what_the_ones_before_it_did_not() -> None:
    """The last holder closes connections, which is not needed when outcomes were enough."""
    held, asked = [MAX_HELD_BYTES, MAX_HELD_BYTES], list[int]()

    def drop_all(size: int) -> None:
        held[0] = 0

    room = Backpressure()
    room.watch(lambda: held[0], drop_all)
    room.watch(lambda: held[1], asked.append)
    held[1] = MIB
    assert await granted(room, 2 * MIB)
    assert max(asked) <= 0


async def test_who_waits_for_room_hears_of_it_and_looks_seldom() -> None:
    """Nothing is looked at while nobody lets go of anything; all who wait look when somebody does."""
    held, looks = [MAX_HELD_BYTES + RESERVE], [0]

    def count() -> int:
        looks[0] += 1
        return held[0]

    room = Backpressure()
    room.watch(count, lambda _: None)
    waiting = [asyncio.ensure_future(granted(room, size, 5)) for size in (MIB, 2 * MIB)]
    await asyncio.sleep(0.1)
    before = looks[0]
    assert before <= 2 * len(waiting)
    held[0] = 0
    room.notify_freed()
    assert await asyncio.gather(*waiting) == [True, True]


async def test_room_without_word_is_found_nevertheless() -> None:
    """A holder may be silent; then it is looked after a while."""
    held = [MAX_HELD_BYTES]
    room = Backpressure(check_seconds=0.01)
    room.watch(lambda: held[0], lambda _: None)
    waiting = asyncio.ensure_future(granted(room, 2 * MIB, 5))
    await asyncio.sleep(0)
    held[0] = 0
    assert await waiting


@pytest.mark.parametrize(("size", "comes"), [(MIB, True), (2 * MIB, False)])
async def test_small_results_do_not_wait_for_those_who_read_nothing(size: int, comes: bool) -> None:
    """They have more room than the large ones."""
    room = Backpressure()
    room.watch(lambda: MAX_HELD_BYTES, lambda _: None)
    assert await granted(room, size) == comes
    room.watch(lambda: RESERVE, lambda _: None)
    assert not await granted(room, size)
