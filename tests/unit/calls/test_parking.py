"""Calls that ask their client, against an editor in memory, on virtual time."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mcp_tools_nvim.calls.call import FETCH_TIMEOUT
from mcp_tools_nvim.errors import Code
from mcp_tools_nvim.values import CallRequest, Inputs, Limits, Outcome, Parked
from tests.support.memory import ToolContext

from .bench import SENDER, code
from .bench import Bench as Calling

NAME = {"method": "elicitation/create", "params": {"message": "?"}}
ADA = {"name": {"result": {"action": "accept", "content": {"name": "Ada"}}}}


class Bench(Calling):
    """Its tools ask."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for tool in (self.asks, self.twice, self.withdrawn):
            self.editor.add_tool(tool.__name__, tool)

    async def asks(self, ctx: ToolContext, arguments: dict[str, Any]) -> Any:
        answers = await ctx.ask(name=NAME)
        await asyncio.sleep(arguments.get("seconds", 0))
        return answers["name"]

    async def withdrawn(self, ctx: ToolContext, arguments: dict[str, Any]) -> Any:
        """The user answers in the editor after two seconds."""
        self.loop.call_later(2, ctx.withdraw, {"name": "the user"})
        await ctx.ask(name=NAME)
        await asyncio.sleep(3)
        return "continued"

    async def twice(self, ctx: ToolContext, arguments: dict[str, Any]) -> Any:
        first = await ctx.ask(name=NAME)
        await asyncio.sleep(1)
        second = await ctx.ask(name=NAME, again=NAME)
        return [first, sorted(second)]

    async def park(self, name: str, **arguments: Any) -> Parked:
        parked = await self.calls.run_attempt(CallRequest(name, arguments, SENDER), self.seen)
        assert isinstance(parked, Parked)
        return parked

    async def resume(
        self, parked: Parked, answers: dict[str, Any] | None = None, seq: int | None = None
    ) -> Outcome | Parked | None:
        given = ADA if answers is None else answers
        return await self.calls.resume(parked.task_id, seq or parked.inputs.seq, given, self.seen)


class Client:
    """Answers each question after some seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.ended: list[float] = []

    async def __call__(self, requests: dict[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.ended.append(asyncio.get_running_loop().time())
        return ADA


@pytest.fixture
async def bench() -> Bench:
    return Bench()


# The client waits for the result


async def test_every_question_reaches_a_waiting_client_once(bench: Bench) -> None:
    asked: list[dict[str, Any]] = []

    async def ask(requests: dict[str, Any]) -> dict[str, Any]:
        asked.append(requests)
        await asyncio.sleep(25)
        return {key: {"result": {}} for key in requests}

    outcome = await bench.run("twice", ask)
    assert outcome.text == '[{"name":{"result":{}}},["again","name"]]'
    assert asked == [{"name": NAME}, {"name": NAME, "again": NAME}]
    assert [seq for _, seq, _ in bench.editor.received] == [1, 2]
    assert [p.message for p in bench.seen.progresses][:2] == ["waiting for an answer"] * 2


async def test_a_failure_while_asking_answers_every_question_with_an_error(bench: Bench) -> None:

    async def ask(requests: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("a fault")

    async with asyncio.timeout(60):
        outcome = await bench.run("asks", ask)
    assert json.loads(outcome.text)["error"]["message"] == "the client could not be asked"


@pytest.mark.parametrize("silent", [False, True])
async def test_questions_and_answers_arrive_by_polling(bench: Bench, silent: bool) -> None:
    bench.editor.lose_wakes = True

    async def ask(requests: dict[str, Any]) -> dict[str, Any]:
        if silent:
            bench.editor.silent = True
            bench.loop.call_later(30, bench.editor.recover)
        return ADA

    outcome = await bench.run("asks", ask)
    assert "Ada" in outcome.text
    assert len(bench.editor.received) == 1


async def test_the_timeout_of_a_tool_stops_while_the_user_is_asked() -> None:
    bench, client = Bench(tool_timeout=5_000), Client(100)
    assert "Ada" in (await bench.run("asks", client, seconds=4)).text
    begun = bench.loop.time()
    assert code(await bench.run("asks", client, seconds=9)) is Code.TIMEOUT
    assert 104 <= bench.loop.time() - begun <= 107


async def test_the_end_of_a_call_ends_its_question(bench: Bench) -> None:
    client = Client(1_000)
    task = bench.start("asks", client)
    await asyncio.sleep(1)
    bench.calls.set_cancel_reason(task, "client")
    task.cancel()
    await asyncio.sleep(1)
    assert len(client.ended) == 1
    assert bench.editor.cancels == [("boot-1", "client")]
    task = bench.start("asks", client)
    await asyncio.sleep(1)
    bench.editor.cancel("boot-2", "user")
    assert code(await task) is Code.CANCELLED
    await asyncio.sleep(1)
    assert len(client.ended) == 2
    assert bench.calls.in_flight == 0


async def test_without_a_way_to_the_client_a_question_is_answered_with_an_error(bench: Bench) -> None:
    assert "cannot answer questions" in (await bench.run("asks")).text


@pytest.mark.parametrize("lost", [False, True])
async def test_a_question_answered_in_the_editor_is_withdrawn(bench: Bench, lost: bool) -> None:
    bench.editor.lose_wakes = lost
    client = Client(1_000)
    assert (await bench.run("withdrawn", client)).text == "continued"
    [ended] = client.ended
    assert ended <= bench.loop.time() - 2
    assert bench.editor.received == []


# The client is disconnected: the call is parked


async def test_a_question_parks_the_call_and_the_answers_resume_it(bench: Bench) -> None:
    first = await bench.park("twice")
    assert first == Parked("boot-1", Inputs(1, {"name": NAME}))
    await asyncio.sleep(300)
    second = await bench.resume(first)
    assert isinstance(second, Parked)
    assert second.inputs.seq == 2
    end = await bench.resume(second, {"name": {}, "again": {}, "more": {}})
    assert isinstance(end, Outcome)
    assert end.text.endswith('["again","name"]]')
    assert bench.calls.in_flight == 0


async def test_old_missing_and_repeated_answers_change_nothing(bench: Bench) -> None:
    first = await bench.park("twice")
    assert await bench.resume(first, {}) == first
    assert await bench.resume(first, seq=7) == first
    tries = await asyncio.gather(*(bench.resume(first) for _ in range(3)))
    assert all(isinstance(second, Parked) and second.inputs.seq == 2 for second in tries)
    assert await bench.resume(first) == tries[0]
    assert isinstance(tries[0], Parked)
    both = {"name": {}, "again": {}}
    second = [bench.resume(tries[0], both) for _ in range(2)]
    ends = await asyncio.gather(*second, bench.resume(first))
    assert ends[0] == ends[1] == ends[2] == await bench.resume(first)
    assert [seq for _, seq, _ in bench.editor.received] == [1, 2]


async def test_a_result_is_kept_for_a_minute(bench: Bench) -> None:
    parked = await bench.park("asks")
    end = await bench.resume(parked)
    await asyncio.sleep(59)
    assert await bench.resume(parked) == end
    await asyncio.sleep(2)
    assert await bench.resume(parked) is None
    assert await bench.calls.resume("boot-9", 1, {}, bench.seen) is None


async def test_a_late_answer_to_a_withdrawn_question_gets_the_result(bench: Bench) -> None:
    parked = await bench.park("withdrawn")
    await asyncio.sleep(2.5)
    end = await bench.resume(parked)
    assert isinstance(end, Outcome)
    assert end.text == "continued"
    assert bench.editor.received == []
    parked = await bench.park("withdrawn")
    await asyncio.sleep(290)
    assert await bench.resume(parked) == end
    await asyncio.sleep(20)
    assert await bench.resume(parked) is None


async def test_a_parked_call_keeps_a_large_result(bench: Bench) -> None:

    async def large(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        bench.loop.call_later(2, ctx.withdraw, {"name": "the user"})
        await ctx.ask(name=NAME)
        return arguments["text"] * 100_000

    bench.editor.add_tool("large", large)
    parked = await bench.park("large", text="x")
    await asyncio.sleep(2 * FETCH_TIMEOUT)
    outcome = await bench.resume(parked)
    assert isinstance(outcome, Outcome)
    assert (outcome.state, len(outcome.text)) == ("done", 100_000)
    assert bench.editor.cancels == []
    parked = await bench.park("large", text="\udce9")
    await asyncio.sleep(3)
    assert code(await bench.resume(parked)) is Code.NOT_SERIALIZABLE


async def test_a_parked_call_times_out_after_the_last_resume() -> None:
    bench = Bench(limits=Limits(parked=10_000))
    parked = await bench.park("asks")
    await asyncio.sleep(9)
    assert await bench.resume(parked, {}) == parked
    await asyncio.sleep(9)
    assert bench.calls.in_flight == 1
    await asyncio.sleep(2)
    assert bench.calls.in_flight == 0
    assert bench.editor.cancels == [("boot-1", "timeout")]
    assert code(await bench.resume(parked)) is Code.TIMEOUT
    assert bench.editor.received == []


async def test_a_call_is_cancelled_when_its_last_waiting_client_disconnects(bench: Bench) -> None:
    parked = await bench.park("asks", seconds=50)
    attempts = [asyncio.ensure_future(bench.resume(parked)) for _ in range(2)]
    await asyncio.sleep(1)
    attempts[0].cancel()
    await asyncio.sleep(1)
    assert bench.editor.cancels == []
    bench.calls.set_cancel_reason(attempts[1], "client")
    attempts[1].cancel()
    await asyncio.sleep(1)
    assert bench.editor.cancels == [("boot-1", "client")]
    assert code(await bench.resume(parked)) is Code.CANCELLED
    assert bench.calls.in_flight == 0


@pytest.mark.parametrize("lost", [False, True])
async def test_a_call_cancelled_while_parked_reports_that_on_resume(bench: Bench, lost: bool) -> None:
    parked = await bench.park("asks")
    bench.editor.lose_wakes = lost
    bench.editor.cancel(parked.task_id, "user")
    await asyncio.sleep(1)
    assert bench.calls.in_flight == (1 if lost else 0)
    assert code(await bench.resume(parked)) is Code.CANCELLED
    assert bench.calls.in_flight == 0
    assert bench.editor.received == []


@pytest.mark.parametrize("reason", ["editor_gone", "shutdown"])
async def test_parked_calls_end_with_the_editor_and_the_bridge(bench: Bench, reason: str) -> None:
    parked = await bench.park("asks")
    if reason == "editor_gone":
        bench.editor.close()
        await asyncio.sleep(0)
    else:
        bench.calls.stop(reason)
        assert bench.editor.cancels == [("boot-1", "shutdown")]
    assert bench.calls.in_flight == 0
    assert code(await bench.resume(parked)) in (Code.EDITOR_GONE, Code.CANCELLED)


async def test_the_oldest_results_are_dropped_beyond_the_total_limit(bench: Bench) -> None:

    async def large(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        await ctx.ask(name=NAME)
        return "x" * 40_000_000

    bench.editor.add_tool("large", large)
    parked = [await bench.park("large") for _ in range(2)]
    for one in parked:
        await bench.resume(one)
    assert await bench.resume(parked[0]) is None
    assert isinstance(await bench.resume(parked[1]), Outcome)


async def test_a_client_that_resumes_a_call_being_cancelled_gets_its_outcome(bench: Bench) -> None:

    async def slow(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        await ctx.ask(name=NAME)
        await asyncio.sleep(100)
        return "done"

    bench.editor.add_tool("slow", slow)
    parked = await bench.park("slow")
    for turns in range(4):
        parked = await bench.park("slow")
        first = asyncio.ensure_future(bench.resume(parked))
        await asyncio.sleep(1)
        first.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
        second = asyncio.ensure_future(bench.resume(parked))
        await asyncio.wait([first, second], timeout=200)
        assert first.cancelled()
        assert not second.cancelled(), turns
        outcome = second.result()
        assert isinstance(outcome, Outcome)
        assert outcome.text == "done" or outcome.state == "cancelled"
