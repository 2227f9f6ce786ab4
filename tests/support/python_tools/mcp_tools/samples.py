"""Tools of every kind, for the tests. Their directory is on the runtimepath.

`marker` is a path outside the project; its name does not tell the gateway that it is one.
"""

from __future__ import annotations

import asyncio
import enum
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from mcp_tools_nvim.python_tools import (
    AsyncContext,
    Context,
    Result,
    ToolError,
    audio,
    image,
    mcp_tool,
    resource,
    resource_link,
    text,
)

READ = {"read_only": True}


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float = 0


class Sum(TypedDict):
    sum: int
    words: list[str]


@mcp_tool(annotations=READ)
def py_add(a: int, b: Annotated[int, "The other"] = 2) -> Sum:  # noqa: D417
    """Adds two numbers.

    Args:
        a: The one.
    """
    return {"sum": a + b, "words": []}


@mcp_tool(annotations=READ)
def py_echo(value: Any = None) -> Any:
    """Returns its argument."""
    return value


@mcp_tool(annotations=READ)
def py_types(
    color: Color, points: list[Point], by_name: dict[str, float], ratio: float = 1
) -> dict[str, Any]:
    """Returns the types of its arguments."""
    assert isinstance(color, Color)
    assert isinstance(points, list)
    return {
        "color": color.name,
        "points": [type(point).__name__ for point in points],
        "by_name": type(by_name).__name__,
        "ratio": type(ratio).__name__,
    }


@mcp_tool(annotations=READ)
def py_value(kind: str) -> Any:
    """Returns a value of a kind."""
    values: dict[str, Any] = {
        "none": lambda: None,
        "text": lambda: "hällo",
        "number": lambda: 1.5,
        "empty_dict": dict,
        "point": lambda: Point(1, 2),
        "enum": lambda: Color.RED,
        "nested": lambda: {"points": [Point(1)], "null": None, "path": Path("a")},
        "blocks": lambda: [
            text("t"),
            image(b"\0\1", "image/png"),
            audio(b"\2", "audio/wav"),
            resource("x://y", "z"),
            resource_link("x://y", "link"),
        ],
        "result": lambda: Result([text("no")], is_error=True, meta={"x/y": 1}),
        "set_of_object": lambda: {"a": [object()]},
        "nan": lambda: {"x": float("nan")},
        "huge": lambda: {"n": [2**60]},
        "bad_text": lambda: "\udc80",
        "bytes": lambda: {"b": b"x"},
        "path_as_image": lambda: image(Path("x"), "image/png"),  # type: ignore[arg-type]
        "text_of_object": lambda: text(object()),  # type: ignore[arg-type]
        "bad_block": lambda: text("\ud800"),
        "content_and_data": lambda: [text("a"), "b"],
        "result_of_text": lambda: Result("text"),  # type: ignore[arg-type]
        "result_of_list": lambda: Result([text("a")], structured=[1]),  # type: ignore[arg-type]
        "large": lambda: "x" * (11 * 1024 * 1024),
    }
    return values[kind]()


@mcp_tool(annotations=READ)
def py_cpu(seconds: float = 60) -> str:
    """Computes for a while."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
    return "computed"


@mcp_tool(annotations=READ)
def py_block(marker: str, ctx: Context) -> str:
    """Waits until a file exists."""
    ctx.progress(0, message="waiting")
    while not os.path.exists(marker):
        if ctx.cancelled.wait(0.01):
            Path(marker + ".cancelled").write_text(ctx.cancelled.reason or "")
            raise ToolError("cancelled")
    return "the file is there"


@mcp_tool(annotations=READ)
def py_never(ctx: Context) -> None:
    """Never ends and ignores cancels."""
    ctx.progress(1)
    threading.Event().wait()


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@mcp_tool(annotations=READ)
def py_reads_input() -> str:
    """Reads stdin, itself and by another process."""
    try:
        input()
    except EOFError:
        return subprocess.run(["cat"], capture_output=True, check=True, text=True).stdout or "nothing"
    return "something"


@mcp_tool(annotations=READ)
def py_fail(how: str) -> None:
    """Fails."""
    if how == "tool":
        raise ToolError("no luck", "not_found")
    if how == "exit":
        sys.exit(3)
    if how == "mute":
        raise MuteError
    if how == "bad_text":
        raise ToolError("bad \ud800", errors=[object()])  # type: ignore[list-item]
    if how == "number":
        raise ToolError(5)  # type: ignore[arg-type]
    if how == "endless":
        raise ToolError("x" * 10_000_000)
    if how == "lines":
        raise ValueError("first\nsecond")
    raise ValueError(how)


@mcp_tool(annotations=READ)
async def py_steps(ctx: AsyncContext, steps: int = 3, marker: str | None = None) -> str:
    """Reports steps; with a marker, each waits for a file."""
    for step in range(steps):
        ctx.progress(step + 1, steps, f"step {step + 1}")
        ctx.log("info", {"step": step})
        while marker and not os.path.exists(f"{marker}.{step}"):
            await asyncio.sleep(0.01)
    return f"{steps} steps"


@mcp_tool(annotations=READ)
async def py_await_forever(marker: str, ctx: AsyncContext) -> None:
    """Waits forever, and writes the reason of a cancel."""
    ctx.progress(1)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        Path(marker).write_text(ctx.cancelled.reason or "")
        raise


@mcp_tool(annotations=READ)
async def py_hold_loop(ctx: AsyncContext, seconds: float = 600) -> str:
    """Blocks the event loop of its process."""
    ctx.progress(1)
    await asyncio.sleep(0)
    time.sleep(seconds)
    return "slept"


@mcp_tool(annotations=READ)
async def py_ask_async(ctx: AsyncContext) -> Any:
    """Asks the user for a name."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return await ctx.elicit("Who?", schema)


@mcp_tool(annotations=READ)
def py_ask(ctx: Context) -> Any:
    """Asks the user for a name, and waits."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return ctx.elicit("Who?", schema)


@mcp_tool(annotations=READ)
def py_editor(ctx: Context, code: str) -> Any:
    """Runs Lua in the editor."""
    return ctx.lua(code, 20, 22)


@mcp_tool(annotations=READ)
def py_die() -> None:
    """Kills its own process."""
    os.kill(os.getpid(), signal.SIGKILL)


@mcp_tool(annotations=READ)
def py_starts_a_program() -> int:
    """Starts a process and does not wait for it."""
    return subprocess.Popen(["sleep", "600"]).pid


@mcp_tool(annotations=READ)
def py_pid() -> int:
    """Returns its process id."""
    return os.getpid()


@mcp_tool(annotations=READ)
def py_context(ctx: Context) -> dict[str, Any]:
    """Returns its context."""
    return {
        "client": dict(ctx.client),
        "host": ctx.host,
        "root": ctx.root,
        "cwd": ctx.cwd,
        "env": [name for name in ("NVIM", "MCP_AUTH_TOKEN", "NVIM_LISTEN_ADDRESS") if name in os.environ],
    }


@mcp_tool
def py_asks_first() -> str:
    """Is not read-only."""
    return "done"


@mcp_tool(approval="it is expensive", timeout=1234)
def py_dear() -> str:
    """Asks each time."""
    return "done"


@mcp_tool(annotations=READ)
def py_prints_much() -> str:
    """Prints a lot."""
    for number in range(20_000):
        print(number)
    print("x" * 1_000_000)
    return "done"


@mcp_tool(annotations=READ)
def py_prints() -> str:
    """Prints to stdout, which must not be the RPC channel."""
    print("printed by a tool")
    os.write(1, b"written by a tool\n")
    return "done"


@mcp_tool(annotations=READ)
def _py_private() -> str:
    """Is private."""
    return "secret"
