"""The life of a call against the editor's twin, on a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise, product
from typing import Any

import pytest

from mcp_tools_nvim.calls.call import Call, NullObserver
from mcp_tools_nvim.calls.runner import Calls
from mcp_tools_nvim.errors import Code, EditorError, LuaError
from mcp_tools_nvim.values import (
    CallRequest,
    CallState,
    ClientInfo,
    Limits,
    Outcome,
    Reply,
    Sender,
    Settings,
    ToolError,
)
from tests.support import virtual_time
from tests.support.memory import FailError, MemoryEditor, Seen, ToolContext
from tests.support.virtual_time import virtual

SENDER = Sender(ClientInfo("test", "1"))


class Bench:
    """An editor in memory, the calls on it, and one observer."""

    def __init__(self, **settings: Any) -> None:
        self.editor = MemoryEditor(Settings(**settings))
        self.calls = Calls(self.editor, self.editor.settings, "boot")
        self.seen = Seen()
        self.loop = asyncio.get_running_loop()

    async def run(self, name: str, **arguments: Any) -> Outcome:
        return await self.calls.run(CallRequest(name, arguments, SENDER), self.seen)

    def start(self, name: str, **arguments: Any) -> asyncio.Task[Outcome]:
        return asyncio.ensure_future(self.run(name, **arguments))

    def count(self, verb: str, since: float = 0.0) -> int:
        return sum(1 for name, at in self.editor.requests if name == verb and at >= since)


def after(seconds: float, value: Any = "late") -> Callable[[ToolContext, dict[str, Any]], Awaitable[Any]]:
    async def tool(ctx: ToolContext, args: dict[str, Any]) -> Any:
        await asyncio.sleep(seconds)
        return value

    return tool


def code(outcome: Outcome) -> Code | None:
    return outcome.error and outcome.error.code


@virtual
async def test_a_sync_tool_takes_one_request() -> None:
    """A tool that answers at once costs one request and no timer but the acknowledgement's."""
    bench = Bench()
    bench.editor.add_tool("echo", lambda ctx, args: args["text"])
    outcome = await bench.run("nvim_echo", text="hi")
    assert (outcome.state, outcome.kind, outcome.text) == ("done", "text", "hi")
    assert [verb for verb, _ in bench.editor.requests] == ["execute"]
    assert bench.calls.in_flight == 0


@virtual
async def test_kinds_of_outcome_pass_through() -> None:
    """Values, nothing, failures and unknown tools arrive as the editor gave them."""
    bench = Bench()

    def fails(ctx: ToolContext, args: dict[str, Any]) -> None:
        raise FailError("no", Code.STALE)

    bench.editor.add_tool("value", lambda ctx, args: {"n": 1}, outputSchema={"type": "object"})
    bench.editor.add_tool("nothing", lambda ctx, args: None)
    bench.editor.add_tool("fails", fails)
    value = await bench.run("value")
    assert (value.kind, value.text, value.structured) == ("json", '{"n":1}', True)
    assert (await bench.run("nothing")).kind == "empty"
    assert code(await bench.run("fails")) is Code.STALE
    assert code(await bench.run("absent")) is Code.UNKNOWN_TOOL


@virtual
async def test_a_wake_brings_the_result_at_once() -> None:
    """A pending call ends when its wake comes, without a further request when the result rides in it."""
    bench = Bench()
    bench.editor.add_tool("late", after(0.05))
    begun = bench.loop.time()
    assert (await bench.run("late")).text == "late"
    assert bench.loop.time() - begun == pytest.approx(0.05)
    assert bench.count("get_result") == 0


@virtual
async def test_a_large_result_is_asked_for() -> None:
    """A wake without a result makes one poll, and the editor may forget the large result at once."""
    bench = Bench()
    bench.editor.add_tool("late", after(0.05, "x" * 70_000))
    begun = bench.loop.time()
    assert len((await bench.run("late")).text) == 70_000
    assert bench.loop.time() - begun == pytest.approx(0.05)
    assert bench.count("get_result") == 1
    assert bench.count("acknowledge") == 1


@pytest.mark.parametrize("seconds", [0.05, 0.25, 2.5, 30.2])
def test_lost_wakes_cost_latency_only(seconds: float) -> None:
    """Without any event the polls find the result, at most a second late."""

    async def test() -> None:
        bench = Bench()
        bench.editor.lose_wakes = bench.editor.lose_started = True
        bench.editor.add_tool("late", after(seconds))
        begun = bench.loop.time()
        assert (await bench.run("late")).text == "late"
        assert seconds <= bench.loop.time() - begun <= seconds + max(1.01, 0.1)

    virtual_time.run(test())


@virtual
async def test_the_poll_schedule() -> None:
    """Polls come after 0.1, 0.2, 0.4, 0.8 and then 1 s; at most 1.1 per second in the end."""
    bench = Bench()
    bench.editor.lose_wakes = True
    bench.editor.add_tool("late", after(60.0))
    begun = bench.loop.time()
    await bench.run("late")
    times = [at - begun for verb, at in bench.editor.requests if verb == "get_result"]
    steps = [b - a for a, b in zip([0.0, *times], times, strict=False)]
    assert steps[:4] == pytest.approx([0.1, 0.1, 0.2, 0.4], abs=0.001)
    assert steps[5:] == pytest.approx([1.0] * len(steps[5:]), abs=0.001)
    assert sum(1 for _, at in bench.editor.requests if at - begun >= 30) <= 33


@virtual
async def test_nothing_is_sent_when_idle() -> None:
    """When no call is in flight and all is acknowledged, the editor hears nothing."""
    bench = Bench()
    bench.editor.add_tool("echo", lambda ctx, args: "x")
    await bench.run("echo")
    await asyncio.sleep(1)
    before = len(bench.editor.requests)
    await asyncio.sleep(600)
    assert len(bench.editor.requests) == before


@virtual
async def test_acknowledgements_are_sent_together_within_a_quarter_second() -> None:
    """One message acknowledges several results, after a time or once there are many."""
    bench = Bench()
    bench.editor.add_tool("echo", lambda ctx, args: "x")
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


@virtual
async def test_a_wake_before_the_reply_ends_the_call() -> None:
    """A result that overtakes the reply to execute counts; the reply is dropped."""
    bench = Bench()
    bench.editor.add_tool("echo", lambda ctx, args: "from the reply")
    call = bench.start("echo")
    await asyncio.sleep(0)
    bench.calls.wake("boot-1", Reply(True, Outcome("done", "text", "from the wake")))
    assert (await call).text == "from the wake"
    await asyncio.sleep(1)
    assert bench.editor.acknowledged == ["boot-1"]


@virtual
async def test_an_empty_wake_before_the_reply_makes_one_poll() -> None:
    """A wake without a result that overtakes the reply makes the first poll immediate."""
    bench = Bench()
    bench.editor.lose_wakes = True
    bench.editor.add_tool("late", after(0.0))
    call = bench.start("late")
    await asyncio.sleep(0)
    bench.calls.wake("boot-1", None)
    begun = bench.loop.time()
    assert (await call).text == "late"
    assert bench.loop.time() - begun < 0.11


@virtual
async def test_doubled_and_unknown_wakes_are_harmless() -> None:
    """A second wake, one for an unknown call and one for another bridge's change nothing."""
    bench = Bench()
    bench.editor.add_tool("late", after(0.2))
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


@virtual
async def test_started_without_a_reply_waits_for_the_tool() -> None:
    """A tool that keeps the main thread busy after `started` is waited for beyond start_by."""
    bench = Bench()
    bench.editor.silent = True
    bench.editor.add_tool("echo", lambda ctx, args: "done at last")
    bench.editor.last_heard = bench.loop.time()
    call = bench.start("echo")
    await asyncio.sleep(0.01)
    bench.calls.started("boot-1", bench.loop.time() + 60)
    await asyncio.sleep(5)
    assert not call.done()
    bench.editor.silent = False
    # The execute is refused as late by the twin; what counts is what get_result says.
    bench.editor.calls["boot-1"] = context = ToolContext(
        "boot-1", CallRequest("echo", {}, SENDER), bench.editor.offers.of["tools"]["echo"], bench.editor
    )
    context.outcome = Outcome("done", "text", "done at last")
    bench.editor.recover()
    assert (await call).text == "done at last"


@virtual
async def test_a_silent_editor_before_the_call_is_busy() -> None:
    """No word for 50 ms and none to the question for the mode: refused after 2 s, and nothing was sent."""
    bench = Bench()
    bench.editor.silent = True
    bench.editor.add_tool("echo", lambda ctx, args: "x")
    await asyncio.sleep(0.06)
    begun = bench.loop.time()
    outcome = await bench.run("echo")
    assert code(outcome) is Code.EDITOR_BLOCKED
    assert "busy: no answer for 2 s" in message(outcome)
    assert bench.loop.time() - begun == pytest.approx(2.0)
    assert bench.count("execute") == 0


@virtual
async def test_an_editor_that_falls_silent_never_starts_the_call() -> None:
    """Sent, but neither started nor answered by start_by + 100 ms: blocked, withdrawn, and it never runs."""
    bench = Bench()
    ran: list[str] = []
    bench.editor.add_tool("echo", lambda ctx, args: ran.append("ran"))
    bench.editor.blocking_mode = "r"
    begun = bench.loop.time()
    outcome = await bench.run("echo")
    assert code(outcome) is Code.EDITOR_BLOCKED
    assert "press Enter" in message(outcome)
    assert 2.1 <= bench.loop.time() - begun <= 2.4
    assert bench.editor.cancels == [("boot-1", "blocked")]
    assert bench.editor.reports[0][0] == "blocked"
    assert bench.editor.reports[0][1]["mode"] == "r"
    bench.editor.recover()
    await asyncio.sleep(1)
    assert not ran


@virtual
async def test_a_known_prompt_holds_calls_back() -> None:
    """While a prompt is up nothing is sent, one watcher asks for all calls, and a freed editor runs them."""
    bench = Bench()
    bench.editor.add_tool("echo", lambda ctx, args: "ran")
    bench.editor.blocking_mode = "r"
    await asyncio.sleep(0.06)
    begun = bench.loop.time()
    calls = [bench.start("echo") for _ in range(50)]
    await asyncio.sleep(1.0)
    assert bench.count("execute") == 0
    assert bench.count("mode", begun + 0.01) <= 11
    bench.editor.recover()
    outcomes = await asyncio.gather(*calls)
    assert {o.text for o in outcomes} == {"ran"}
    assert bench.loop.time() - begun < 1.2


@virtual
async def test_a_prompt_that_stays_is_named() -> None:
    """After 2 s of a prompt the client hears which one and what to press."""
    bench = Bench()
    bench.editor.add_tool("echo", lambda ctx, args: "ran")
    bench.editor.blocking_mode = "rm"
    await asyncio.sleep(0.06)
    begun = bench.loop.time()
    outcomes = await asyncio.gather(*(bench.run("echo") for _ in range(5)))
    assert bench.loop.time() - begun == pytest.approx(2.0)
    assert all("More" in message(o) and code(o) is Code.EDITOR_BLOCKED for o in outcomes)
    assert len(bench.editor.reports) == 1
    assert not bench.editor.cancels
    await asyncio.sleep(1)
    before = len(bench.editor.requests)
    await asyncio.sleep(60)
    assert len(bench.editor.requests) == before


@virtual
async def test_a_started_call_survives_a_silent_editor() -> None:
    """Once started, silence is waited through until the tool's own deadline plus 2 s."""
    bench = Bench()
    bench.editor.add_tool("late", after(1.0), timeout=20_000)
    call = bench.start("late")
    await asyncio.sleep(0.01)
    bench.editor.lose_wakes = bench.editor.silent = True
    begun = bench.loop.time()
    await asyncio.sleep(10)
    assert not call.done()
    outcome = await call
    assert (outcome.state, code(outcome)) == ("timed_out", Code.TIMEOUT)
    assert bench.loop.time() - begun == pytest.approx(22.0, abs=0.1)
    assert bench.editor.cancels == [("boot-1", "timeout")]


@virtual
async def test_the_editors_own_timeout_arrives() -> None:
    """A tool that runs too long is ended by the editor, at its time, and the bridge's net stays out of it."""
    bench = Bench(tool_timeout=3000)
    bench.editor.add_tool("global", after(60))
    bench.editor.add_tool("own", after(60), timeout=1000)
    begun = bench.loop.time()
    outcome = await bench.run("own")
    assert (outcome.state, bench.loop.time() - begun) == ("timed_out", pytest.approx(1.0))
    begun = bench.loop.time()
    outcome = await bench.run("global")
    assert (outcome.state, bench.loop.time() - begun) == ("timed_out", pytest.approx(3.0))
    assert not bench.editor.cancels


@virtual
async def test_no_timeout_means_no_limit() -> None:
    """A timeout of 0 waits as long as it takes."""
    bench = Bench(tool_timeout=0)
    bench.editor.add_tool("late", after(3600))
    begun = bench.loop.time()
    assert (await bench.run("late")).text == "late"
    assert bench.loop.time() - begun == pytest.approx(3600)


@virtual
async def test_waiting_for_approval_is_not_tool_time() -> None:
    """The tool's timeout starts when the tool does; heartbeats say what is waited for."""
    bench = Bench()
    decision: asyncio.Future[bool] = bench.loop.create_future()
    bench.editor.add_tool("late", after(0.5), timeout=1000, approval=lambda: decision)
    call = bench.start("late")
    await asyncio.sleep(25)
    assert not call.done()
    assert [p.message for p in bench.seen.progresses] == ["waiting for the user's approval"] * 2
    decision.set_result(True)
    assert (await call).text == "late"


@pytest.mark.parametrize("now", ["running", "waiting_input"])
def test_a_call_that_has_started_is_past_its_approval(now: CallState) -> None:
    """A reply that says otherwise was overtaken by the start."""
    call = Call("1", CallRequest("tool", {}, SENDER), NullObserver(), lambda: 0.0)
    call.state = "sent"
    call.take(Reply(False, state="waiting_approval"))
    assert call.state == "waiting_approval"
    call.start(None)
    call.take(Reply(False, state=now))
    call.take(Reply(False, state="waiting_approval"))
    assert call.state == now


@virtual
async def test_an_approval_deadline_that_the_editor_misses_is_netted() -> None:
    """When the editor says until when it waits for the person, the bridge waits 2 s longer and no more."""
    bench = Bench()
    never: asyncio.Future[bool] = bench.loop.create_future()
    bench.editor.add_tool("late", after(0.5), approval=lambda: never)
    call = bench.start("late")
    await asyncio.sleep(0.05)
    begun = bench.loop.time()
    bench.editor.silent = bench.editor.lose_wakes = True
    bench.calls.wake("boot-1", Reply(False, state="waiting_approval", deadline=begun + 5))
    outcome = await call
    assert (outcome.state, bench.loop.time() - begun) == ("timed_out", pytest.approx(7.0))
    bench.editor.close()


@virtual
async def test_denied_approval_arrives() -> None:
    """A refusal by the person is an outcome like any other."""
    bench = Bench()
    decision: asyncio.Future[bool] = bench.loop.create_future()
    bench.editor.add_tool("late", after(0.5), approval=lambda: decision)
    call = bench.start("late")
    await asyncio.sleep(1)
    decision.set_result(False)
    assert code(await call) is Code.ACCESS_DENIED


@pytest.mark.parametrize("reason", [None, "client", "session_closed"])
def test_cancelling_the_task_cancels_the_tool_once(reason: str | None) -> None:
    """CancelledError becomes one cancel_task with the reason that was set, else `disconnected`."""

    async def test() -> None:
        bench = Bench()
        bench.editor.add_tool("late", after(60))
        call = bench.start("late")
        await asyncio.sleep(1)
        if reason is not None:
            bench.calls.cancel_reason(call, reason)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert bench.editor.cancels == [("boot-1", reason or "disconnected")]
        await asyncio.sleep(5)
        assert len(bench.editor.cancels) == 1
        assert bench.calls.in_flight == 0
        # The late end of the cancelled call is dropped, and the editor may forget it.
        assert bench.editor.acknowledged == ["boot-1"]

    virtual_time.run(test())


@virtual
async def test_a_cancel_before_the_reply_overtakes_it() -> None:
    """A call that was cancelled while its execute is on the way is cancelled; its reply is dropped."""
    bench = Bench()
    bench.editor.add_tool("late", after(60))
    call = bench.start("late")
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.sleep(1)
    assert bench.editor.cancels == [("boot-1", "disconnected")]
    assert bench.editor.calls == {}


@virtual
async def test_a_cancel_while_held_back_sends_nothing() -> None:
    """A call that was never sent needs no cancel in the editor."""
    bench = Bench()
    bench.editor.add_tool("echo", lambda ctx, args: "x")
    bench.editor.blocking_mode = "r"
    await asyncio.sleep(0.06)
    call = bench.start("echo")
    await asyncio.sleep(0.5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not bench.editor.cancels
    await asyncio.sleep(5)


@virtual
async def test_the_editor_closes_in_the_middle() -> None:
    """Pending, held and new calls all end at once as editor_gone, which says that trying again is right."""
    bench = Bench()
    bench.editor.add_tool("late", after(60))
    pending = bench.start("late")
    await asyncio.sleep(1)
    bench.editor.close()
    begun = bench.loop.time()
    for outcome in (await pending, await bench.run("late")):
        assert code(outcome) is Code.EDITOR_GONE
        assert "try again" in message(outcome)
    assert bench.loop.time() == begun


@virtual
async def test_the_editor_closes_before_the_reply() -> None:
    """A call whose execute is on the way ends as editor_gone as well."""
    bench = Bench()
    bench.editor.silent = True
    bench.editor.add_tool("echo", lambda ctx, args: "x")
    call = bench.start("echo")
    await asyncio.sleep(0.5)
    bench.editor.close()
    assert code(await call) is Code.EDITOR_GONE


@virtual
async def test_stop_cancels_everything_in_the_editor() -> None:
    """A shutdown answers every call and tells the editor why."""
    bench = Bench()
    bench.editor.add_tool("late", after(60))
    calls = [bench.start("late") for _ in range(3)]
    await asyncio.sleep(1)
    bench.calls.stop("shutdown")
    outcomes = await asyncio.gather(*calls)
    assert {(o.state, code(o)) for o in outcomes} == {("cancelled", Code.CANCELLED)}
    assert sorted(bench.editor.cancels) == [(f"boot-{n}", "shutdown") for n in (1, 2, 3)]
    assert (await bench.run("late")).state == "cancelled"


def held_back(bench: Bench) -> tuple[float, list[str]]:
    """Nothing was sent: the editor is silent and is asked for its mode."""
    bench.editor.blocking_mode = "r"
    return 0.06, []


def on_its_way(bench: Bench) -> tuple[float, list[str]]:
    """Sent, without a sign of the editor."""
    bench.editor.silent = True
    return 0.0, ["shutdown"]


def being_refused(bench: Bench) -> tuple[float, list[str]]:
    """Without a sign until `start_by`; the editor is asked why."""
    bench.editor.silent = True
    return 2.15, ["blocked", "shutdown"]


def running(bench: Bench) -> tuple[float, list[str]]:
    return 0.5, ["shutdown"]


def waiting_for_approval(bench: Bench) -> tuple[float, list[str]]:
    return 0.5, ["shutdown"]


def waiting_for_input(bench: Bench) -> tuple[float, list[str]]:
    return 0.5, ["shutdown"]


STATES = [held_back, on_its_way, being_refused, running, waiting_for_approval, waiting_for_input]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_stop_ends_a_call_in_every_state(state: Callable[[Bench], tuple[float, list[str]]]) -> None:
    """Wherever a call is, a shutdown gives it one outcome, and the editor hears of those that it may know."""

    async def test() -> None:
        bench = Bench()

        async def tool(ctx: ToolContext, args: dict[str, Any]) -> Any:
            if state is waiting_for_input:
                return await ctx.ask(name={"method": "elicitation/create"})
            return await asyncio.sleep(600)

        async def ask(requests: dict[str, Any]) -> dict[str, Any]:
            await asyncio.sleep(600)
            return {}

        asked = state is waiting_for_approval
        bench.editor.add_tool("tool", tool, approval=bench.loop.create_future if asked else None)
        before = 0.06 if state is held_back else 0.0
        await asyncio.sleep(before)
        pause, told = state(bench)
        call = asyncio.ensure_future(bench.calls.run(CallRequest("tool", {}, SENDER), bench.seen, ask))
        await asyncio.sleep(pause)
        assert not call.done()
        bench.calls.stop("shutdown")
        outcome = await call
        assert (outcome.state, code(outcome)) == ("cancelled", Code.CANCELLED)
        await asyncio.sleep(5)
        assert [reason for _, reason in bench.editor.cancels] == told
        assert bench.calls.in_flight == 0

    virtual_time.run(test())


@virtual
async def test_a_sign_of_life_while_the_refusal_is_worded_counts() -> None:
    """A tool that turns out to have started is not called one that did not run: its end is waited for."""
    bench = Bench()
    bench.editor.add_tool("late", after(60))
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


@pytest.mark.parametrize("limit", [4, 1024])
def test_busy_beyond_the_limit(limit: int) -> None:
    """The limit of calls in flight is reached, but not passed."""

    async def test() -> None:
        bench = Bench(limits=Limits(calls=limit))
        bench.editor.add_tool("late", after(1))
        calls = [bench.start("late") for _ in range(limit)]
        await asyncio.sleep(0.5)
        assert bench.calls.in_flight == limit
        assert code(await bench.run("late")) is Code.BUSY
        assert {o.text for o in await asyncio.gather(*calls)} == {"late"}
        assert (await bench.run("late")).text == "late"

    virtual_time.run(test())


@virtual
async def test_progress_always_rises() -> None:
    """Progress that stands still or falls is lifted; heartbeats lie below the tool's next value."""
    bench = Bench()

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


@virtual
async def test_heartbeats_begin_without_any_progress() -> None:
    """A tool that says nothing still shows life every 10 s, and its own first value fits after that."""
    bench = Bench()

    async def tool(ctx: ToolContext, args: dict[str, Any]) -> str:
        await asyncio.sleep(21)
        ctx.progress(0, 2)
        ctx.progress(1, 2)
        await asyncio.sleep(1)
        return "x"

    bench.editor.add_tool("quiet", tool)
    await bench.run("quiet")
    values = [p.done for p in bench.seen.progresses]
    assert len(values) == 4
    assert all(a < b for a, b in pairwise(values))
    assert values[-1] == 1
    assert [str(value) for value in values] == ["0.0001", "0.0002", "0.0003", "1"]


@virtual
async def test_progress_seen_by_polls_alone() -> None:
    """Without wakes the polls bring the progress, each seq once."""
    bench = Bench()
    bench.editor.lose_wakes = True

    async def tool(ctx: ToolContext, args: dict[str, Any]) -> str:
        for value in (1, 2, 3):
            await asyncio.sleep(2)
            ctx.progress(value)
        return "x"

    bench.editor.add_tool("steps", tool)
    await bench.run("steps")
    assert [p.seq for p in bench.seen.progresses] == [1, 2, 3]


@virtual
async def test_logs_reach_their_own_observer() -> None:
    """What a tool logs goes to its call, and to nobody when that has ended."""
    bench = Bench()

    def tool(ctx: ToolContext, args: dict[str, Any]) -> str:
        ctx.log("warning", {"n": 1})
        return "x"

    bench.editor.add_tool("logs", tool)
    await bench.run("logs")
    bench.calls.log("boot-1", "info", "too late")
    assert bench.seen.logs == [("warning", {"n": 1})]


@virtual
async def test_bytes_that_are_not_utf8_are_explained() -> None:
    """A result with such bytes is refused with their place, while the editor still holds it."""
    bench = Bench()
    bench.editor.add_tool("bad", lambda ctx, args: "caf\udce9")
    bench.editor.add_tool("good", lambda ctx, args: "café")
    outcome = await bench.run("bad")
    assert code(outcome) is Code.NOT_SERIALIZABLE
    assert "not UTF-8" in message(outcome)
    assert not bench.editor.acknowledged
    assert (await bench.run("good")).text == "café"


@virtual
async def test_a_congested_channel_is_not_written_to() -> None:
    """While the editor does not read, calls wait and then are refused as blocked."""
    bench = Bench()
    bench.editor.add_tool("echo", lambda ctx, args: "x")
    bench.editor.congested = True
    assert code(await bench.run("echo")) is Code.EDITOR_BLOCKED
    assert bench.count("execute") == 0


def message(outcome: Outcome) -> str:
    assert outcome.error
    return outcome.error.message


class Garbling(MemoryEditor):
    """An editor whose words about a call cannot be read."""

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


@virtual
async def test_the_client_gets_the_reason_of_a_request_that_fails() -> None:
    """An error of the channel names the fix."""
    bench = Bench()
    bench.editor.add_tool("echo", lambda ctx, args: "x")
    failing: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    failing.set_exception(EditorError("it knows no scopes yet; restart Neovim"))
    bench.editor.execute = lambda *_, **__: failing  # type: ignore[method-assign]
    assert "restart Neovim" in message(await bench.run("echo"))


@virtual
async def test_an_answer_that_cannot_be_read_ends_the_tool_as_well() -> None:
    """The client hears of a failure, so the tool must not run on."""
    for verb, fault in product(("execute", "get_result"), (EditorError, LuaError)):
        bench = Bench()
        bench.editor = editor = Garbling(bench.editor.settings)
        editor.verb, editor.garbled, editor.lose_wakes = verb, fault, True
        bench.calls = Calls(editor, editor.settings, "boot")
        editor.add_tool("slow", after(5))
        outcome = await bench.run("nvim_slow")
        assert code(outcome) == Code.EXECUTION_ERROR
        assert [reason for _, reason in editor.cancels] == ["unreadable"]
