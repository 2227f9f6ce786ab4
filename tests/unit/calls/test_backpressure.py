"""Backpressure: large results are taken one after the other while there is room for them."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from mcp_tools_nvim.calls.backpressure import MAX_HELD_BYTES, RESERVE, Backpressure
from mcp_tools_nvim.values import Outcome

MIB = 1024 * 1024


async def granted(room: Backpressure, size: int, seconds: float = 0.1) -> bool:
    """Whether there is room within this time."""
    try:
        async with asyncio.timeout(seconds):
            await room.run_when_room(size, partial(asyncio.sleep, 0))
            return True
    except TimeoutError:
        return False


async def until(taken: asyncio.Event) -> None:
    await taken.wait()


async def test_a_result_uses_room_until_it_is_released() -> None:
    room = Backpressure(limit=10 * MIB)
    outcome = Outcome("done", "text", "x")
    room.note(outcome, 8 * MIB)
    assert room.held == 8 * MIB
    assert await granted(room, 2 * MIB)
    assert not await granted(room, 3 * MIB)
    del outcome
    assert room.held == 0
    assert await granted(room, 11 * MIB)  # larger than all room, while nothing else is there


async def test_turns_are_granted_one_after_the_other() -> None:
    room = Backpressure()
    taken = asyncio.Event()
    first = asyncio.ensure_future(room.run_when_room(2 * MIB, partial(until, taken)))
    await asyncio.sleep(0)
    assert not await granted(room, 2 * MIB)
    assert await granted(room, MIB)
    taken.set()
    await first
    assert await granted(room, 2 * MIB)


async def test_holders_are_asked_to_free_memory_while_a_result_waits() -> None:
    held, asked = [MAX_HELD_BYTES], list[int]()

    def free(size: int) -> None:
        asked.append(size)
        if len(asked) == 2:
            held[0] = 0

    room = Backpressure()
    room.watch(lambda: held[0], free)
    waiting = asyncio.ensure_future(granted(room, 2 * MIB))
    await asyncio.sleep(0.02)
    assert asked == [2 * MIB]
    room.notify_freed()
    assert await waiting
    assert asked == [2 * MIB, 2 * MIB]


async def test_a_holder_drops_only_what_the_ones_before_it_did_not() -> None:
    held, asked = [MAX_HELD_BYTES, MAX_HELD_BYTES], list[int]()

    def drop_all(size: int) -> None:
        held[0] = 0

    room = Backpressure()
    room.watch(lambda: held[0], drop_all)
    room.watch(lambda: held[1], asked.append)
    held[1] = MIB
    assert await granted(room, 2 * MIB)
    assert max(asked) <= 0


async def test_all_waiting_results_are_granted_when_room_is_reported() -> None:
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


async def test_room_that_is_not_reported_is_found_by_polling() -> None:
    held = [MAX_HELD_BYTES]
    room = Backpressure(check_seconds=0.01)
    room.watch(lambda: held[0], lambda _: None)
    waiting = asyncio.ensure_future(granted(room, 2 * MIB, 5))
    await asyncio.sleep(0)
    held[0] = 0
    assert await waiting


@pytest.mark.parametrize(("size", "comes"), [(MIB, True), (2 * MIB, False)])
async def test_small_results_have_reserved_room(size: int, comes: bool) -> None:
    room = Backpressure()
    room.watch(lambda: MAX_HELD_BYTES, lambda _: None)
    assert await granted(room, size) == comes
    room.watch(lambda: RESERVE, lambda _: None)
    assert not await granted(room, size)
