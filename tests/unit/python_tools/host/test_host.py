"""Calls of the host, with an editor in memory: what is told, and when."""

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
    """Counts on."""
    return count()

@mcp_tool
def many(ctx: Context) -> str:
    """Tells much."""
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
    """Does not mind."""
    ctx.progress(1)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "went on"
    return ""

@mcp_tool
def look_often(ctx: Context) -> int:
    """Asks the editor again and again, and keeps nothing of what it gets."""
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


class Said(list[Any]):
    """What Lua returned; unlike a list it can be referred to weakly."""


class MemoryWire:
    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.news = threading.Condition()

    def post(self, verb: str, *args: Any) -> None:
        with self.news:
            self.told.append((verb, *args))
            self.news.notify_all()

    def lua(self, code: str, args: tuple[Any, ...], done: Callable[[Any, Exception | None], None]) -> None:
        done(Said([code, *args]), None)

    async def received(self, verb: str, call: str, count: int = 1) -> tuple[Any, ...]:
        """The `count`th message of a kind on a call."""

        def look() -> tuple[Any, ...]:
            with self.news:
                assert self.news.wait_for(lambda: len(self.of(verb, call)) >= count, 10), self.told
                return self.of(verb, call)[count - 1]

        return await asyncio.to_thread(look)

    def of(self, verb: str, call: str) -> list[tuple[Any, ...]]:
        return [message[2:] for message in self.told if message[:2] == (verb, call)]


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
        found: dict[str, Any] = outcome
        return found


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "tools.py")


async def test_a_module_is_run_once(bench: Bench) -> None:
    """All tools of a module share what it holds, however many calls come at the same time."""
    for n in range(4):
        bench.call(f"a{n}", "count")
        bench.call(f"b{n}", "count_again")
    counts = [int((await bench.result(f"{x}{n}"))["text"]) for n in range(4) for x in "ab"]

    assert sorted(counts) == list(range(1, 9))


async def test_news_are_bounded_and_end_with_the_call(bench: Bench) -> None:
    """Of a flood a few go out, in order, and nothing comes after the result."""
    bench.call("a", "many")
    assert await bench.result("a") == {"kind": "text", "text": "done"}
    await asyncio.sleep(0.1)  # longer than what was held back may wait

    steps = [step[0] for step in bench.wire.of("remote_progress", "a")]
    assert 1 <= len(steps) < 200
    assert steps == sorted(steps)
    assert len(bench.wire.of("remote_log", "a")) < 500
    assert bench.wire.told[-1][0] == "remote_result"


async def test_a_cancel_is_heard(bench: Bench) -> None:
    """The function that waits learns why; one that goes on all the same tells its end, too."""
    for name, text in (("wait", "client"), ("swallow", "went on")):
        bench.call(name, name)
        await bench.wire.received("remote_progress", name)
        bench.host.handle("remote_cancel", name, "client")
        assert (await bench.result(name))["text"] == text
        assert len(bench.wire.of("remote_result", name)) == 1


async def test_a_cancel_that_comes_first(bench: Bench) -> None:
    """A call that was cancelled before its function began never begins."""
    bench.call("a", "count")
    bench.host.handle("remote_cancel", "a", "client")
    outcome = await bench.result("a")
    bench.call("b", "count")

    if outcome["kind"] == "error":
        assert outcome["code"] == "cancelled"
        assert (await bench.result("b"))["text"] == "1"
    else:  # its thread was quicker
        assert (await bench.result("b"))["text"] == "2"


async def test_a_cancel_in_the_moment_of_the_begin(bench: Bench) -> None:
    """A function on the loop whose cancel comes together with its call never begins, and that is told."""
    bench.call("a", "swallow")
    await bench.wire.received("remote_progress", "a")  # so that it is ready
    bench.call("b", "swallow")
    bench.host.handle("remote_cancel", "b", "client")
    await asyncio.sleep(0.1)

    assert [outcome["code"] for (outcome,) in bench.wire.of("remote_result", "b")] == ["cancelled"]
    assert not bench.wire.of("remote_progress", "b")
    assert list(bench.host.calls) == ["a"]


async def test_answers(bench: Bench) -> None:
    """An answer reaches the function that asked; an error is raised in it; none comes after a cancel."""
    bench.call("a", "ask")
    await bench.wire.received("remote_ask", "a")
    bench.host.handle("remote_answer", "a", 1, {"action": "decline"}, None)
    assert (await bench.result("a"))["text"] == "decline"
    bench.call("b", "ask")
    await bench.wire.received("remote_ask", "b")
    bench.host.handle("remote_answer", "b", 1, None, {"code": "capability_missing", "message": "no"})
    assert (await bench.result("b"))["code"] == "capability_missing"
    bench.call("c", "ask")
    await bench.wire.received("remote_ask", "c")
    bench.host.handle("remote_cancel", "c", "timeout")
    assert (await bench.result("c"))["code"] == "cancelled"
    bench.host.handle("remote_answer", "c", 1, {}, None)
    bench.host.handle("remote_answer", "nowhere", 1, {}, None)
    bench.host.handle("remote_cancel", "nowhere", "client")


@pytest.mark.parametrize("error", [None, ValueError("late")])
def test_an_answer_in_the_moment_of_the_end(error: Exception | None) -> None:
    """A call may end between any two steps of its answer; that is no fault of either."""

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


async def test_answers_of_the_editor_are_not_kept(bench: Bench) -> None:
    """A call that looks at the editor again and again holds nothing of what it was told before."""
    bench.call("1", "look_often")
    assert await bench.result("1") == {"kind": "json", "text": "0"}


async def test_what_is_not_there(bench: Bench) -> None:
    """A tool that the module does not have any more, and a module that is gone, are errors of the call."""
    bench.call("a", "nothing")
    assert (await bench.result("a"))["message"].endswith("has no tool 'nothing' any more")
    target = {"key": "x", "name": "x", "source": {"path": "/nowhere/x.py"}}
    bench.host.handle("remote_call", "b", target, {}, {})
    assert "FileNotFoundError" in (await bench.result("b"))["message"]


async def test_a_file_that_is_not_the_trusted_one(tmp_path: Path) -> None:
    """A file whose hash is another is not run."""
    path = tmp_path / "a.py"
    path.write_text("raise SystemExit('it ran')")

    with pytest.raises(modules.UntrustedError):
        modules.load(modules.Source(path=str(path), sha256="0" * 64))


async def test_hints_are_what_an_import_makes_of_them(tmp_path: Path) -> None:
    """Types, unless the file itself wants them to be texts: what reads hints may look at either."""
    body = "def f(x: int): ...\nHINT = f.__annotations__['x']\n"
    for name, begin, hint in (("a", "", int), ("b", "from __future__ import annotations\n", "int")):
        path = tmp_path / f"{name}.py"
        path.write_text(begin + body)
        assert hint == modules.load(modules.Source(path=str(path))).HINT
