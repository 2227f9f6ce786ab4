"""Calls in the worker, with an editor in memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from mcp_tools_nvim.python_tools import modules
from mcp_tools_nvim.python_tools.worker.client_messages import settle
from mcp_tools_nvim.python_tools.worker.host import Host

SOURCE = '''
import asyncio, gc, threading, weakref
from mcp_tools_nvim.python_tools import AsyncContext, Context, mcp_tool

COUNT = [0]

@mcp_tool
def count() -> int:
    """Counts."""
    COUNT[0] += 1
    return COUNT[0]

@mcp_tool
def count_again() -> int:
    """Counts again."""
    return count()

@mcp_tool
def many(ctx: Context) -> str:
    """Reports a lot."""
    for n in range(5000):
        ctx.progress(n)
        ctx.log("info", n)
    return "done"

@mcp_tool
def wait(ctx: Context) -> str:
    """Waits for a cancel."""
    ctx.progress(1)
    ctx.cancelled.wait()
    assert ctx.cancelled
    return ctx.cancelled.reason or ""

@mcp_tool
async def swallow(ctx: AsyncContext) -> str:
    """Ignores a cancel."""
    ctx.progress(1)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "continued"
    return ""

@mcp_tool
def call_lua_often(ctx: Context) -> int:
    """Calls Lua many times and keeps no result."""
    kept = []
    for _ in range(100):
        kept.append(weakref.ref(ctx.lua("return 1")))
    gc.collect()
    return sum(each() is not None for each in kept)

@mcp_tool
def ask(ctx: Context) -> str:
    """Asks."""
    return ctx.elicit("?", {"type": "object"})["action"]
'''


class LuaResult(list[Any]):
    """A result of Lua; unlike a list it can be weakly referenced."""


class MemoryWire:
    def __init__(self) -> None:
        self.messages: list[tuple[Any, ...]] = []
        self.news = threading.Condition()

    def post(self, verb: str, *args: Any) -> None:
        with self.news:
            self.messages.append((verb, *args))
            self.news.notify_all()

    def lua(self, code: str, args: tuple[Any, ...], done: Callable[[Any, Exception | None], None]) -> None:
        done(LuaResult([code, *args]), None)

    async def received(self, verb: str, call: str) -> tuple[Any, ...]:
        """Waits for a message about a call."""

        def wait() -> tuple[Any, ...]:
            with self.news:
                assert self.news.wait_for(lambda: self.of(verb, call), 10), self.messages
                return self.of(verb, call)[0]

        return await asyncio.to_thread(wait)

    def of(self, verb: str, call: str) -> list[tuple[Any, ...]]:
        return [message[2:] for message in self.messages if message[:2] == (verb, call)]


class Bench:
    """A host with one module."""

    def __init__(self, path: Path) -> None:
        path.write_text(SOURCE)
        self.path = str(path)
        self.wire = MemoryWire()
        self.host = Host(self.wire, asyncio.get_running_loop())

    def call(self, call: str, name: str, args: dict[str, Any] | None = None) -> None:
        target = {"key": self.path, "name": name, "source": {"path": self.path}}
        self.host.handle("remote_call", call, target, args or {}, {"limit": 1000})

    async def result(self, call: str) -> dict[str, Any]:
        (outcome,) = await self.wire.received("remote_result", call)
        return outcome


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "tools.py")


async def test_a_module_is_loaded_once_for_concurrent_calls(bench: Bench) -> None:
    for n in range(4):
        bench.call(f"a{n}", "count")
        bench.call(f"b{n}", "count_again")
    counts = [int((await bench.result(f"{x}{n}"))["text"]) for n in range(4) for x in "ab"]

    assert sorted(counts) == list(range(1, 9))


async def test_reports_are_rate_limited_and_end_with_the_call(bench: Bench) -> None:
    bench.call("a", "many")
    assert await bench.result("a") == {"kind": "text", "text": "done"}
    await asyncio.sleep(0.1)  # longer than reports are delayed

    steps = [step[0] for step in bench.wire.of("remote_progress", "a")]
    assert 1 <= len(steps) < 200
    assert steps == sorted(steps)
    assert len(bench.wire.of("remote_log", "a")) < 500
    assert bench.wire.messages[-1][0] == "remote_result"


async def test_a_cancelled_function_gets_the_reason_and_ends_once(bench: Bench) -> None:
    for name, text in (("wait", "client"), ("swallow", "continued")):
        bench.call(name, name)
        await bench.wire.received("remote_progress", name)
        bench.host.handle("remote_cancel", name, "client")
        assert (await bench.result(name))["text"] == text
        assert len(bench.wire.of("remote_result", name)) == 1


async def test_a_call_cancelled_before_its_function_starts_is_not_run(bench: Bench) -> None:
    bench.call("a", "count")
    bench.host.handle("remote_cancel", "a", "client")
    outcome = await bench.result("a")
    bench.call("b", "count")
    ran = outcome["kind"] != "error"  # its thread was faster
    assert ran or outcome["code"] == "cancelled"
    assert (await bench.result("b"))["text"] == ("2" if ran else "1")


async def test_a_call_cancelled_together_with_its_start_is_not_run(bench: Bench) -> None:
    bench.call("a", "swallow")
    await bench.wire.received("remote_progress", "a")  # so that it runs
    bench.call("b", "swallow")
    bench.host.handle("remote_cancel", "b", "client")
    await asyncio.sleep(0.1)

    assert [outcome["code"] for (outcome,) in bench.wire.of("remote_result", "b")] == ["cancelled"]
    assert not bench.wire.of("remote_progress", "b")
    assert list(bench.host.calls) == ["a"]


async def test_answers_and_errors_reach_the_function_that_asked(bench: Bench) -> None:
    missing = {"code": "capability_missing", "message": "no"}
    for call, message, expected in (
        ("a", ("remote_answer", "a", 1, {"action": "decline"}, None), {"kind": "text", "text": "decline"}),
        ("b", ("remote_answer", "b", 1, None, missing), {"code": "capability_missing"}),
        ("c", ("remote_cancel", "c", "timeout"), {"code": "cancelled"}),
    ):
        bench.call(call, "ask")
        await bench.wire.received("remote_ask", call)
        bench.host.handle(*message)
        assert expected.items() <= (await bench.result(call)).items()
    for call in ("c", "nowhere"):
        bench.host.handle("remote_answer", call, 1, {}, None)
    bench.host.handle("remote_cancel", "nowhere", "client")


@pytest.mark.parametrize("error", [None, ValueError("late")])
def test_an_answer_to_a_call_that_just_ended_is_ignored(error: Exception | None) -> None:
    class Ending(Future[Any]):
        def set_result(self, result: Any) -> None:
            self.cancel()
            super().set_result(result)

        def set_exception(self, exception: BaseException | None) -> None:
            self.cancel()
            super().set_exception(exception)

    answer = Ending()
    settle(answer, 1, error)
    assert answer.cancelled()


async def test_results_of_lua_are_released(bench: Bench) -> None:
    bench.call("1", "call_lua_often")
    assert await bench.result("1") == {"kind": "json", "text": "0"}


async def test_a_missing_tool_or_module_is_an_error_of_the_call(bench: Bench) -> None:
    bench.call("a", "nothing")
    assert (await bench.result("a"))["message"].endswith("has no tool 'nothing' any more")
    target = {"key": "x", "name": "x", "source": {"path": "/nowhere/x.py"}}
    bench.host.handle("remote_call", "b", target, {}, {})
    assert "FileNotFoundError" in (await bench.result("b"))["message"]


async def test_a_file_with_another_hash_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("raise SystemExit('it ran')")

    with pytest.raises(modules.UntrustedError):
        modules.load({"path": str(path), "sha256": "0" * 64})


async def test_type_hints_are_the_same_as_after_an_import(tmp_path: Path) -> None:
    body = "def f(x: int): ...\nHINT = f.__annotations__['x']\n"
    for name, begin, hint in (("a", "", int), ("b", "from __future__ import annotations\n", "int")):
        path = tmp_path / f"{name}.py"
        path.write_text(begin + body)
        assert hint == modules.load({"path": str(path)}).HINT
