"""Room for large results: one after the other, while what is held leaves room."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from bridge.calls.room import RESERVE, ROOM_BYTES, Room
from bridge.model import Outcome

MIB = 1024 * 1024


async def granted(room: Room, size: int, seconds: float = 0.1) -> bool:
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
    room = Room(limit=10 * MIB)
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
    room = Room()
    taken = asyncio.Event()
    first = asyncio.ensure_future(room.turn(2 * MIB, partial(until, taken)))
    await asyncio.sleep(0)
    assert not await granted(room, 2 * MIB)
    assert await granted(room, MIB)
    taken.set()
    await first
    assert await granted(room, 2 * MIB)


async def test_holders_are_asked_to_ease_while_somebody_waits() -> None:
    """They hear by how much; what they let go of is room."""
    held, asked = [ROOM_BYTES], list[int]()

    def ease(size: int) -> None:
        asked.append(size)
        if len(asked) == 2:
            held[0] = 0

    room = Room()
    room.watch(lambda: held[0], ease)
    assert await granted(room, 2 * MIB)
    assert asked == [2 * MIB, 2 * MIB]


@pytest.mark.parametrize(("size", "comes"), [(MIB, True), (2 * MIB, False)])
async def test_small_results_do_not_wait_for_those_who_read_nothing(size: int, comes: bool) -> None:
    """They have more room than the large ones."""
    room = Room()
    room.watch(lambda: ROOM_BYTES, lambda _: None)
    assert await granted(room, size) == comes
    room.watch(lambda: RESERVE, lambda _: None)
    assert not await granted(room, size)
