"""The life of a call against an editor in memory, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from mcp_tools_nvim.calls.call import Call, NullObserver
from mcp_tools_nvim.errors import Code, EditorError, LuaError
from mcp_tools_nvim.values import CallRequest, CallState, Outcome, Reply, ToolError
from tests.support.memory import MemoryEditor, ToolContext

from .bench import SENDER, code
from .bench import Bench as Calling


class Bench(Calling):
    """Its elapsed time is measured."""

    def __init__(self, late: float = 60, value: Any = "late", **settings: Any) -> None:
        super().__init__(**settings)
        self.begun = self.loop.time()
        self.editor.add_tool("echo", lambda ctx, args: args.get("text", "x"))
        self.editor.add_tool("late", after(late, value))

    @property
    def elapsed(self) -> float:
        """Seconds since the start, or since `begun` was set."""
        return self.loop.time() - self.begun

    def count(self, verb: str, since: float = 0.0) -> int:
        return sum(1 for name, at in self.editor.requests if name == verb and at >= since)


def after(seconds: float, value: Any = "late") -> Callable[[ToolContext, dict[str, Any]], Awaitable[Any]]:
    async def tool(ctx: ToolContext, args: dict[str, Any]) -> Any:
        await asyncio.sleep(seconds)
        return value

    return tool


def message(outcome: Outcome) -> str:
    assert outcome.error
    return outcome.error.message


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def test_a_sync_tool_takes_one_request(bench: Bench) -> None:
    outcome = await bench.run("nvim_echo", text="hi")
    assert (outcome.state, outcome.kind, outcome.text) == ("done", "text", "hi")
    assert [verb for verb, _ in bench.editor.requests] == ["execute"]
    assert bench.calls.in_flight == 0


@pytest.mark.parametrize(("size", "requests"), [(10, 0), (70_000, 1)])
async def test_a_wake_brings_a_small_result_and_a_large_one_is_fetched(size: int, requests: int) -> None:
    bench = Bench(late=0.05, value="x" * size)
    assert len((await bench.run("late")).text) == size
    assert bench.elapsed == pytest.approx(0.05)
    assert (bench.count("get_result"), bench.count("acknowledge")) == (requests, requests)


@pytest.mark.parametrize("seconds", [0.05, 0.25, 2.5, 30.2])
async def test_without_wakes_polling_finds_the_result_within_a_second(seconds: float) -> None:
    bench = Bench(late=seconds)
    bench.editor.lose_wakes = bench.editor.lose_started = True
    assert (await bench.run("late")).text == "late"
    assert seconds <= bench.elapsed <= seconds + max(1.01, 0.1)


async def test_polls_slow_down_to_one_per_second(bench: Bench) -> None:
    bench.editor.lose_wakes = True
    await bench.run("late")
    times = [at - bench.begun for verb, at in bench.editor.requests if verb == "get_result"]
    steps = [b - a for a, b in zip([0.0, *times], times, strict=False)]
    assert steps[:4] == pytest.approx([0.1, 0.1, 0.2, 0.4], abs=0.001)
    assert steps[5:] == pytest.approx([1.0] * len(steps[5:]), abs=0.001)
    assert sum(1 for _, at in bench.editor.requests if at - bench.begun >= 30) <= 33


async def test_nothing_is_sent_while_no_call_is_in_flight(bench: Bench) -> None:
    await bench.run("echo")
    await asyncio.sleep(1)
    before = len(bench.editor.requests)
    await asyncio.sleep(600)
    assert len(bench.editor.requests) == before


async def test_results_are_acknowledged_together_after_a_quarter_second_or_64_results(bench: Bench) -> None:
    await bench.run("echo")
    await bench.run("echo")
    assert bench.editor.acknowledged == []
    await asyncio.sleep(0.26)
    assert bench.editor.acknowledged == ["boot-1", "boot-2"]
    assert bench.count("acknowledge") == 1
    assert not bench.editor.calls
    for _ in range(64):
        await bench.run("echo")
    await asyncio.sleep(0.01)
    assert bench.count("acknowledge") == 2
    assert not bench.editor.calls


async def test_a_wake_before_the_reply_ends_the_call(bench: Bench) -> None:
    bench.editor.add_tool("echo", lambda ctx, args: "from the reply")
    call = bench.start("echo")
    await asyncio.sleep(0)
    bench.calls.wake("boot-1", Reply(True, Outcome("done", "text", "from the wake")))
    assert (await call).text == "from the wake"
    await asyncio.sleep(1)
    assert bench.editor.acknowledged == ["boot-1"]


async def test_an_empty_wake_before_the_reply_makes_the_first_poll_immediate() -> None:
    bench = Bench(late=0.0)
    bench.editor.lose_wakes = True
    call = bench.start("late")
    await asyncio.sleep(0)
    bench.calls.wake("boot-1", None)
    bench.begun = bench.loop.time()
    assert (await call).text == "late"
    assert bench.elapsed < 0.11


async def test_repeated_and_unknown_wakes_are_ignored() -> None:
    bench = Bench(late=0.2)
    call = bench.start("late")
    await asyncio.sleep(0.05)
    for reply in (None, Reply(False), None):
        bench.calls.wake("boot-1", reply)
    bench.calls.wake("boot-99", None)
    bench.calls.wake("other-1", Reply(True, Outcome("done")))
    assert (await call).text == "late"
    bench.calls.wake("boot-1", Reply(True, Outcome("done", "text", "again")))
    await asyncio.sleep(1)
    assert set(bench.editor.acknowledged) == {"boot-1"}


async def test_a_started_tool_that_blocks_the_main_thread_is_awaited(bench: Bench) -> None:
    bench.editor.silent = True
    bench.editor.last_heard = bench.loop.time()
    call = bench.start("echo")
    await asyncio.sleep(0.01)
    bench.calls.started("boot-1", bench.loop.time() + 60)
    await asyncio.sleep(5)
    assert not call.done()
    bench.editor.silent = False
    # The editor refuses the late execute; the bridge then reads get_result.
    bench.editor.calls["boot-1"] = context = ToolContext(
        "boot-1", CallRequest("echo", {}, SENDER), bench.editor.offers.of["tools"]["echo"], bench.editor
    )
    context.outcome = Outcome("done", "text", "done at last")
    bench.editor.recover()
    assert (await call).text == "done at last"


async def test_a_call_without_a_start_or_reply_is_withdrawn_and_never_runs(bench: Bench) -> None:
    ran: list[str] = []
    bench.editor.add_tool("echo", lambda ctx, args: ran.append("ran"))
    bench.editor.blocking_mode = "r"
    bench.begun = bench.loop.time()
    outcome = await bench.run("echo")
    assert code(outcome) is Code.EDITOR_BLOCKED
    assert "press Enter" in message(outcome)
    assert 2.1 <= bench.elapsed <= 2.4
    assert bench.editor.cancels == [("boot-1", "blocked")]
    assert bench.editor.reports[0][0] == "blocked"
    assert bench.editor.reports[0][1]["mode"] == "r"
    bench.editor.recover()
    await asyncio.sleep(1)
    assert not ran


async def test_calls_wait_while_a_prompt_is_open_and_run_when_it_closes(bench: Bench) -> None:
    bench.editor.blocking_mode = "r"
    await asyncio.sleep(0.06)
    bench.begun = bench.loop.time()
    calls = [bench.start("echo") for _ in range(50)]
    await asyncio.sleep(1.0)
    assert bench.count("execute") == 0
    assert bench.count("mode", bench.begun + 0.01) <= 11
    bench.editor.recover()
    assert {outcome.text for outcome in await asyncio.gather(*calls)} == {"x"}
    assert bench.elapsed < 1.2


@pytest.mark.parametrize(("mode", "reason"), [(None, "busy: no answer for 2 s"), ("rm", "More")])
async def test_after_2_s_an_error_has_the_reason(bench: Bench, mode: str | None, reason: str) -> None:
    bench.editor.silent, bench.editor.blocking_mode = mode is None, mode
    await asyncio.sleep(0.06)
    bench.begun = bench.loop.time()
    outcomes = await asyncio.gather(*(bench.run("echo") for _ in range(5)))
    assert bench.elapsed == pytest.approx(2.0)
    assert all(reason in message(o) and code(o) is Code.EDITOR_BLOCKED for o in outcomes)
    assert len(bench.editor.reports) == 1
    assert (bench.count("execute"), bench.editor.cancels) == (0, [])
    await asyncio.sleep(1)
    before = len(bench.editor.requests)
    await asyncio.sleep(60)
    assert len(bench.editor.requests) == before


async def test_a_started_call_waits_until_its_deadline_plus_2_s(bench: Bench) -> None:
    bench.editor.add_tool("late", after(1.0), timeout=20_000)
    call = bench.start("late")
    await asyncio.sleep(0.01)
    bench.editor.lose_wakes = bench.editor.silent = True
    bench.begun = bench.loop.time()
    await asyncio.sleep(10)
    assert not call.done()
    outcome = await call
    assert (outcome.state, code(outcome)) == ("timed_out", Code.TIMEOUT)
    assert bench.elapsed == pytest.approx(22.0, abs=0.1)
    assert bench.editor.cancels == [("boot-1", "timeout")]


async def test_a_timeout_of_0_is_no_limit() -> None:
    bench = Bench(late=3600, tool_timeout=0)
    assert (await bench.run("late")).text == "late"
    assert bench.elapsed == pytest.approx(3600)


async def test_the_timeout_starts_after_approval(bench: Bench) -> None:
    decision: asyncio.Future[bool] = bench.loop.create_future()
    bench.editor.add_tool("late", after(0.5), timeout=1000, approval=lambda: decision)
    call = bench.start("late")
    await asyncio.sleep(25)
    assert not call.done()
    assert [p.message for p in bench.seen.progresses] == ["waiting for the user's approval"] * 3
    decision.set_result(True)
    assert (await call).text == "late"


@pytest.mark.parametrize("now", ["running", "waiting_input"])
def test_a_late_reply_does_not_move_a_started_call_back_to_approval(now: CallState) -> None:
    call = Call("1", CallRequest("tool", {}, SENDER), NullObserver(), lambda: 0.0)
    call.state = "sent"
    call.take(Reply(False, state="waiting_approval"))
    assert call.state == "waiting_approval"
    call.start(None)
    call.take(Reply(False, state=now))
    call.take(Reply(False, state="waiting_approval"))
    assert call.state == now


async def test_the_bridge_ends_a_call_2_s_after_a_missed_approval_deadline(bench: Bench) -> None:
    never: asyncio.Future[bool] = bench.loop.create_future()
    bench.editor.add_tool("late", after(0.5), approval=lambda: never)
    call = bench.start("late")
    await asyncio.sleep(0.05)
    bench.begun = bench.loop.time()
    bench.editor.silent = bench.editor.lose_wakes = True
    bench.calls.wake("boot-1", Reply(False, state="waiting_approval", deadline=bench.begun + 5))
    outcome = await call
    assert (outcome.state, bench.elapsed) == ("timed_out", pytest.approx(7.0))
    bench.editor.close()


@pytest.mark.parametrize(("pause", "reason"), [(0, None), (1, None), (1, "client"), (1, "session_closed")])
async def test_cancelling_a_task_cancels_the_tool_once(bench: Bench, pause: int, reason: str | None) -> None:
    """Also before its reply."""
    call = bench.start("late")
    await asyncio.sleep(pause)
    if reason is not None:
        bench.calls.set_cancel_reason(call, reason)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.sleep(5)
    assert bench.editor.cancels == [("boot-1", reason or "disconnected")]
    assert (bench.calls.in_flight, bench.editor.calls) == (0, {})
    # The late result of the cancelled call is dropped and acknowledged.
    assert bench.editor.acknowledged == ["boot-1"]


async def test_cancelling_a_call_that_was_not_sent_yet_sends_nothing(bench: Bench) -> None:
    bench.editor.blocking_mode = "r"
    await asyncio.sleep(0.06)
    call = bench.start("echo")
    await asyncio.sleep(0.5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not bench.editor.cancels
    await asyncio.sleep(5)


@pytest.mark.parametrize("silent", [False, True])
async def test_pending_and_new_calls_end_at_once_when_the_editor_closes(bench: Bench, silent: bool) -> None:
    bench.editor.silent = silent
    pending = bench.start("late")
    await asyncio.sleep(0.5)
    bench.editor.close()
    bench.begun = bench.loop.time()
    for outcome in (await pending, await bench.run("late")):
        assert code(outcome) is Code.EDITOR_GONE
        assert "try again" in message(outcome)
    assert bench.elapsed == 0


@pytest.mark.parametrize(
    ("state", "pause", "reasons"),
    [
        ("not sent", 0.06, []),
        ("sent", 0.0, ["shutdown"]),
        ("being refused", 2.15, ["blocked", "shutdown"]),
        ("running", 0.5, ["shutdown"]),
        ("waiting for approval", 0.5, ["shutdown"]),
        ("waiting for input", 0.5, ["shutdown"]),
    ],
)
async def test_stop_ends_every_call(bench: Bench, state: str, pause: float, reasons: list[str]) -> None:

    async def tool(ctx: ToolContext, args: dict[str, Any]) -> Any:
        if state == "waiting for input":
            return await ctx.ask(name={"method": "elicitation/create"})
        return await asyncio.sleep(600)

    async def ask(requests: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(600)
        return {}

    asks = state == "waiting for approval"
    bench.editor.add_tool("tool", tool, approval=bench.loop.create_future if asks else None)
    if state == "not sent":
        await asyncio.sleep(0.06)
        bench.editor.blocking_mode = "r"
    bench.editor.silent = state in ("sent", "being refused")
    call = bench.start("tool", ask)
    await asyncio.sleep(pause)
    assert not call.done()
    bench.calls.stop("shutdown")
    outcome = await call
    assert (outcome.state, code(outcome)) == ("cancelled", Code.CANCELLED)
    await asyncio.sleep(5)
    assert [reason for _, reason in bench.editor.cancels] == reasons
    assert bench.calls.in_flight == 0
    assert (await bench.run("late")).state == "cancelled"


async def test_a_call_that_starts_while_it_is_being_refused_is_awaited(bench: Bench) -> None:
    bench.editor.silent = True
    call = bench.start("late")
    await asyncio.sleep(2.15)
    assert bench.editor.cancels == [("boot-1", "blocked")]
    bench.calls.started("boot-1", bench.loop.time() + 60)
    await asyncio.sleep(0.5)
    assert not call.done()
    cancelled = Outcome("cancelled", error=ToolError(Code.CANCELLED, "cancelled"))
    bench.calls.wake("boot-1", Reply(True, cancelled))
    assert code(await call) is Code.CANCELLED


async def test_progress_increases_and_heartbeats_fit_below_the_next_value(bench: Bench) -> None:

    async def tool(ctx: ToolContext, args: dict[str, Any]) -> str:
        for value in (0, 1, 1, 0.5, 2):
            ctx.progress(value, 10, f"at {value}")
            await asyncio.sleep(0.01)
        await asyncio.sleep(35)
        ctx.progress(3, 10)
        return "x"

    bench.editor.add_tool("steps", tool)
    await bench.run("steps")
    values = [p.done for p in bench.seen.progresses]
    assert all(a < b for a, b in pairwise(values))
    beats = [v for v in values if 2 < v < 3]
    assert len(beats) == 3
    assert max(beats) < 2.001
    assert values[-1] == 3
    assert {p.total for p in bench.seen.progresses} == {10}


async def test_a_tool_without_progress_gets_heartbeats(bench: Bench) -> None:

    async def tool(ctx: ToolContext, args: dict[str, Any]) -> str:
        await asyncio.sleep(21)
        ctx.progress(0, 2)
        ctx.progress(1, 2)
        await asyncio.sleep(1)
        return "x"

    bench.editor.add_tool("quiet", tool)
    await bench.run("quiet")
    assert [str(p.done) for p in bench.seen.progresses] == ["0.0001", "0.0002", "0.0003", "1"]


async def test_polls_report_each_progress_once(bench: Bench) -> None:
    bench.editor.lose_wakes = True

    async def tool(ctx: ToolContext, args: dict[str, Any]) -> str:
        for value in (1, 2, 3):
            await asyncio.sleep(2)
            ctx.progress(value)
        return "x"

    bench.editor.add_tool("steps", tool)
    await bench.run("steps")
    assert [p.seq for p in bench.seen.progresses] == [1, 2, 3]


async def test_logs_reach_the_observer_of_their_call_until_it_ends(bench: Bench) -> None:

    def tool(ctx: ToolContext, args: dict[str, Any]) -> str:
        ctx.log("warning", {"n": 1})
        return "x"

    bench.editor.add_tool("logs", tool)
    await bench.run("logs")
    bench.calls.log("boot-1", "info", "too late")
    assert bench.seen.logs == [("warning", {"n": 1})]


async def test_calls_are_refused_while_the_channel_is_congested(bench: Bench) -> None:
    bench.editor.congested = True
    assert code(await bench.run("echo")) is Code.EDITOR_BLOCKED
    assert bench.count("execute") == 0


class Garbling(MemoryEditor):
    """An editor whose replies about a call are unreadable."""

    garbled: type[Exception] = EditorError
    verb = "execute"

    def _garble(self, reply: asyncio.Future[Reply]) -> asyncio.Future[Reply]:
        bad: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        reply.add_done_callback(lambda _: bad.done() or bad.set_exception(self.garbled("?")))
        return bad

    def execute(self, *args: Any, **options: Any) -> asyncio.Future[Reply]:
        reply = super().execute(*args, **options)
        return self._garble(reply) if self.verb == "execute" else reply

    def get_result(self, *args: Any) -> asyncio.Future[Reply]:
        reply = super().get_result(*args)
        return self._garble(reply) if self.verb == "get_result" else reply


async def test_a_failed_request_reports_its_reason(bench: Bench) -> None:
    failing: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    failing.set_exception(EditorError("it knows no scopes yet; restart Neovim"))
    bench.editor.execute = lambda *_, **__: failing  # type: ignore[method-assign]
    assert "restart Neovim" in message(await bench.run("echo"))


@pytest.mark.parametrize("verb", ["execute", "get_result"])
@pytest.mark.parametrize("fault", [EditorError, LuaError])
async def test_an_unreadable_reply_fails_the_call(bench: Bench, verb: str, fault: type[Exception]) -> None:
    bench.use(editor := Garbling(bench.editor.settings))
    editor.verb, editor.garbled, editor.lose_wakes = verb, fault, True
    editor.add_tool("slow", after(5))
    assert code(await bench.run("nvim_slow")) is Code.EXECUTION_ERROR
    assert [reason for _, reason in editor.cancels] == ["unreadable"]
