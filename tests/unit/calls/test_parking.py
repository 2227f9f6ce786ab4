"""Calls that ask their client, against the editor's twin, on a clock that jumps."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mcp_tools_nvim.calls.call import FETCH_TIMEOUT
from mcp_tools_nvim.calls.runner import Calls
from mcp_tools_nvim.errors import Code
from mcp_tools_nvim.values import CallRequest, ClientInfo, Inputs, Limits, Outcome, Parked, Sender, Settings
from tests.support import virtual_time
from tests.support.memory import MemoryEditor, Seen, ToolContext
from tests.support.virtual_time import virtual

NAME = {"method": "elicitation/create", "params": {"message": "?"}}
ADA = {"name": {"result": {"action": "accept", "content": {"name": "Ada"}}}}


class Bench:
    """An editor in memory with tools that ask; the calls on it."""

    def __init__(self, **settings: Any) -> None:
        self.editor = MemoryEditor(Settings(**settings))
        self.calls = Calls(self.editor, self.editor.settings, "boot")
        self.seen = Seen()
        self.loop = asyncio.get_running_loop()
        self.editor.add_tool("who", self.who)
        self.editor.add_tool("twice", self.twice)
        self.editor.add_tool("slowly", self.slowly)

    async def who(self, ctx: ToolContext, arguments: dict[str, Any]) -> Any:
        answers = await ctx.ask(name=NAME)
        await asyncio.sleep(arguments.get("seconds", 0))
        return answers["name"]

    async def slowly(self, ctx: ToolContext, arguments: dict[str, Any]) -> Any:
        """Somebody else answers after two seconds."""
        self.loop.call_later(2, ctx.withdraw, {"name": "somebody else"})
        await ctx.ask(name=NAME)
        await asyncio.sleep(3)
        return "went on"

    async def twice(self, ctx: ToolContext, arguments: dict[str, Any]) -> Any:
        first = await ctx.ask(name=NAME)
        await asyncio.sleep(1)
        second = await ctx.ask(name=NAME, again=NAME)
        return [first, sorted(second)]

    def request(self, name: str, **arguments: Any) -> CallRequest:
        return CallRequest(name, arguments, Sender(ClientInfo("test", "1")))

    async def park(self, name: str, **arguments: Any) -> Parked:
        parked = await self.calls.run_attempt(self.request(name, **arguments), self.seen)
        assert isinstance(parked, Parked)
        return parked

    async def back(
        self, parked: Parked, answers: dict[str, Any] | None = None, seq: int | None = None
    ) -> Outcome | Parked | None:
        given = ADA if answers is None else answers
        return await self.calls.resume(parked.task_id, seq or parked.inputs.seq, given, self.seen)


def code(result: Any) -> Code | None:
    assert isinstance(result, Outcome)
    return result.error and result.error.code


# The client waits


@virtual
async def test_a_waiting_client_is_asked() -> None:
    """Every question reaches the client once and its answer the tool; heartbeats go on meanwhile."""
    bench = Bench()
    asked: list[dict[str, Any]] = []

    async def ask(requests: dict[str, Any]) -> dict[str, Any]:
        asked.append(requests)
        await asyncio.sleep(25)
        return {key: {"result": {}} for key in requests}

    outcome = await bench.calls.run(bench.request("twice"), bench.seen, ask)
    assert outcome.text == '[{"name":{"result":{}}},["again","name"]]'
    assert asked == [{"name": NAME}, {"name": NAME, "again": NAME}]
    assert [seq for _, seq, _ in bench.editor.received] == [1, 2]
    assert [p.message for p in bench.seen.progresses][:2] == ["waiting for an answer"] * 2


@virtual
async def test_a_client_that_cannot_be_asked_for_a_fault_of_ours() -> None:
    """Whatever fails while a client is asked, the tool gets an answer: an error under each of its keys."""
    bench = Bench()

    async def ask(requests: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("a fault")

    async with asyncio.timeout(60):
        outcome = await bench.calls.run(bench.request("who"), bench.seen, ask)
    assert json.loads(outcome.text)["error"]["message"] == "the client could not be asked"


@pytest.mark.parametrize("silent", [False, True])
def test_lost_wakes_and_a_silent_editor_cost_time_only(silent: bool) -> None:
    """The question comes with the polls; an answer that the editor does not take at once arrives later."""

    async def test() -> None:
        bench = Bench()
        bench.editor.lose_wakes = True

        async def ask(requests: dict[str, Any]) -> dict[str, Any]:
            if silent:
                bench.editor.silent = True
                bench.loop.call_later(30, bench.editor.recover)
            return ADA

        outcome = await bench.calls.run(bench.request("who"), bench.seen, ask)
        assert "Ada" in outcome.text
        assert len(bench.editor.received) == 1

    virtual_time.run(test())


@virtual
async def test_the_tools_clock_stands_still() -> None:
    """A person may take longer than the tool has; after that its time goes on."""
    bench = Bench(tool_timeout=5_000)

    async def ask(requests: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(100)
        return ADA

    assert "Ada" in (await bench.calls.run(bench.request("who", seconds=4), bench.seen, ask)).text
    begun = bench.loop.time()
    assert code(await bench.calls.run(bench.request("who", seconds=9), bench.seen, ask)) is Code.TIMEOUT
    assert 104 <= bench.loop.time() - begun <= 107


@virtual
async def test_the_end_of_a_call_ends_its_question() -> None:
    """The client is not asked any longer, whoever ended the call."""
    bench = Bench()
    ended: list[str] = []

    async def ask(requests: dict[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.sleep(1_000)
        finally:
            ended.append("asking")
        return {}

    task = asyncio.ensure_future(bench.calls.run(bench.request("who"), bench.seen, ask))
    await asyncio.sleep(1)
    bench.calls.cancel_reason(task, "client")
    task.cancel()
    await asyncio.sleep(1)
    assert ended == ["asking"]
    assert bench.editor.cancels == [("boot-1", "client")]
    task = asyncio.ensure_future(bench.calls.run(bench.request("who"), bench.seen, ask))
    await asyncio.sleep(1)
    bench.editor.cancel("boot-2", "user")
    assert code(await task) is Code.CANCELLED
    await asyncio.sleep(1)
    assert ended == ["asking", "asking"]
    assert bench.calls.in_flight == 0


@virtual
async def test_a_call_that_cannot_ask_hears_so() -> None:
    """Without a way to the client every question is answered with an error."""
    bench = Bench()
    assert "cannot be asked" in (await bench.calls.run(bench.request("who"), bench.seen)).text


@pytest.mark.parametrize("lost", [False, True])
def test_a_question_that_is_taken_back(lost: bool) -> None:
    """The client is asked no longer, and the call goes on; also when the news come with a poll only."""

    async def test() -> None:
        bench = Bench()
        bench.editor.lose_wakes = lost
        ended: list[float] = []

        async def ask(requests: dict[str, Any]) -> dict[str, Any]:
            try:
                await asyncio.sleep(1_000)
            finally:
                ended.append(bench.loop.time())
            return {}

        outcome = await bench.calls.run(bench.request("slowly"), bench.seen, ask)
        assert outcome.text == "went on"
        assert len(ended) == 1
        assert ended[0] <= bench.loop.time() - 2
        assert bench.editor.received == []

    virtual_time.run(test())


# The client is away


@virtual
async def test_legs_of_a_call() -> None:
    """A question ends a leg, the answers begin the next one; its progress goes to who waits."""
    bench = Bench()
    first = await bench.park("twice")
    assert first == Parked("boot-1", Inputs(1, {"name": NAME}))
    await asyncio.sleep(300)
    second = await bench.back(first)
    assert isinstance(second, Parked)
    assert second.inputs.seq == 2
    end = await bench.back(second, {"name": {}, "again": {}, "more": {}})
    assert isinstance(end, Outcome)
    assert end.text.endswith('["again","name"]]')
    assert bench.calls.in_flight == 0


@virtual
async def test_no_question_is_answered_twice() -> None:
    """Older questions, missing answers and repetitions change nothing."""
    bench = Bench()
    first = await bench.park("twice")
    assert await bench.back(first, {}) == first
    assert await bench.back(first, seq=7) == first
    tries = await asyncio.gather(*(bench.back(first) for _ in range(3)))
    assert all(isinstance(second, Parked) and second.inputs.seq == 2 for second in tries)
    assert await bench.back(first) == tries[0]
    assert isinstance(tries[0], Parked)
    both = {"name": {}, "again": {}}
    ends = await asyncio.gather(bench.back(tries[0], both), bench.back(first), bench.back(tries[0], both))
    assert ends[0] == ends[1] == ends[2] == await bench.back(first)
    assert [seq for _, seq, _ in bench.editor.received] == [1, 2]


@virtual
async def test_a_result_is_kept_for_a_minute() -> None:
    """Then the call is unknown, as one that never was."""
    bench = Bench()
    parked = await bench.park("who")
    end = await bench.back(parked)
    await asyncio.sleep(59)
    assert await bench.back(parked) == end
    await asyncio.sleep(2)
    assert await bench.back(parked) is None
    assert await bench.calls.resume("boot-9", 1, {}, bench.seen) is None


@virtual
async def test_a_question_taken_back_while_its_client_is_away() -> None:
    """Its late answer changes nothing: it gets what has come of the call, and has time to come for it."""
    bench = Bench()
    parked = await bench.park("slowly")
    await asyncio.sleep(2.5)
    joined = asyncio.ensure_future(bench.back(parked))
    await asyncio.sleep(0)
    end = await joined
    assert isinstance(end, Outcome)
    assert end.text == "went on"
    assert bench.editor.received == []
    parked = await bench.park("slowly")
    await asyncio.sleep(290)
    assert await bench.back(parked) == end
    await asyncio.sleep(20)
    assert await bench.back(parked) is None


@virtual
async def test_a_large_result_that_comes_while_the_client_is_away() -> None:
    """A client that returns late gets it, as it gets a small one."""
    bench = Bench()

    async def large(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        bench.loop.call_later(2, ctx.withdraw, {"name": "somebody else"})
        await ctx.ask(name=NAME)
        return "x" * 100_000

    bench.editor.add_tool("large", large)
    parked = await bench.park("large")
    await asyncio.sleep(2 * FETCH_TIMEOUT)
    outcome = await bench.back(parked)
    assert isinstance(outcome, Outcome)
    assert (outcome.state, len(outcome.text)) == ("done", 100_000)
    assert bench.editor.cancels == []


@virtual
async def test_bytes_that_are_no_text_while_the_client_is_away() -> None:
    """They are refused as for a client that waits, not kept for the next one as what they are not."""
    bench = Bench()

    async def broken(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        bench.loop.call_later(2, ctx.withdraw, {"name": "somebody else"})
        await ctx.ask(name=NAME)
        return "caf\udce9"

    bench.editor.add_tool("broken", broken)
    parked = await bench.park("broken")
    await asyncio.sleep(3)
    assert code(await bench.back(parked)) is Code.NOT_SERIALIZABLE


@virtual
async def test_a_client_that_stays_away() -> None:
    """The call ends as a timeout when `parked` is over, counted from the last time that it was there."""
    bench = Bench(limits=Limits(parked=10_000))
    parked = await bench.park("who")
    await asyncio.sleep(9)
    assert await bench.back(parked, {}) == parked
    await asyncio.sleep(9)
    assert bench.calls.in_flight == 1
    await asyncio.sleep(2)
    assert bench.calls.in_flight == 0
    assert bench.editor.cancels == [("boot-1", "timeout")]
    assert code(await bench.back(parked)) is Code.TIMEOUT
    assert bench.editor.received == []


@virtual
async def test_going_away_in_a_leg_cancels() -> None:
    """When the last one who waits for a leg is gone, the tool is cancelled; not before."""
    bench = Bench()
    parked = await bench.park("who", seconds=50)
    legs = [asyncio.ensure_future(bench.back(parked)) for _ in range(2)]
    await asyncio.sleep(1)
    legs[0].cancel()
    await asyncio.sleep(1)
    assert bench.editor.cancels == []
    bench.calls.cancel_reason(legs[1], "client")
    legs[1].cancel()
    await asyncio.sleep(1)
    assert bench.editor.cancels == [("boot-1", "client")]
    assert code(await bench.back(parked)) is Code.CANCELLED
    assert bench.calls.in_flight == 0


@pytest.mark.parametrize("lost", [False, True])
def test_a_call_that_ends_while_its_client_is_away(lost: bool) -> None:
    """The person at the editor cancels it: the client hears that when it comes back."""

    async def test() -> None:
        bench = Bench()
        parked = await bench.park("who")
        bench.editor.lose_wakes = lost
        bench.editor.cancel(parked.task_id, "user")
        await asyncio.sleep(1)
        assert bench.calls.in_flight == (1 if lost else 0)
        assert code(await bench.back(parked)) is Code.CANCELLED
        assert bench.calls.in_flight == 0
        assert bench.editor.received == []

    virtual_time.run(test())


@pytest.mark.parametrize("reason", ["editor_gone", "shutdown"])
def test_the_end_of_everything(reason: str) -> None:
    """Parked calls end with the editor and with the bridge."""

    async def test() -> None:
        bench = Bench()
        parked = await bench.park("who")
        if reason == "editor_gone":
            bench.editor.close()
            await asyncio.sleep(0)
        else:
            bench.calls.stop(reason)
            assert bench.editor.cancels == [("boot-1", "shutdown")]
        assert bench.calls.in_flight == 0
        assert code(await bench.back(parked)) in (Code.EDITOR_GONE, Code.CANCELLED)

    virtual_time.run(test())


@virtual
async def test_kept_results_are_bounded() -> None:
    """The oldest give way when all of them together become too large."""
    bench = Bench()

    async def large(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        await ctx.ask(name=NAME)
        return "x" * 40_000_000

    bench.editor.add_tool("large", large)
    parked = [await bench.park("large") for _ in range(2)]
    for one in parked:
        await bench.back(one)
    assert await bench.back(parked[0]) is None
    assert isinstance(await bench.back(parked[1]), Outcome)


@virtual
async def test_a_client_that_joins_when_the_last_one_has_just_gone() -> None:
    """Its call is being cancelled in this very turn: it hears that, and is not cancelled itself."""
    bench = Bench()

    async def slow(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        await ctx.ask(name=NAME)
        await asyncio.sleep(100)
        return "done"

    bench.editor.add_tool("slow", slow)
    parked = await bench.park("slow")
    for turns in range(4):
        parked = await bench.park("slow")
        first = asyncio.ensure_future(bench.back(parked))
        await asyncio.sleep(1)
        first.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
        second = asyncio.ensure_future(bench.back(parked))
        await asyncio.wait([first, second], timeout=200)
        assert first.cancelled()
        assert not second.cancelled(), turns
        outcome = second.result()
        assert isinstance(outcome, Outcome)
        assert outcome.text == "done" or outcome.state == "cancelled"
