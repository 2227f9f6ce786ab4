"""One bridge for many tests, since its start costs more than they do: it must be idle after each of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import urllib.request
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from . import bridge as support
from .bridge import Bridge
from .nvim import Nvim, new_home
from .nvim import start as start_nvim
from .raw import Raw

GRACE = 1_000
"""ms until a client without a connection is gone; short, since tests wait for it."""
BODY = 1 << 19
"""Bytes of a request at most."""
MISUSED = support.with_limits(f"{{ limits = {{ request_body = {BODY} }} }}", orphan_grace=GRACE)
"""Options of the bridge that all share who misuse it."""
SETTLES = 2_000
"""ms for results to be acknowledged, connections to be closed and calls to be forgotten."""


@contextlib.asynccontextmanager
async def bridge_of(
    program: Path, *, setup: str = "{}", init: str = support.ROOT_TOOLS
) -> AsyncIterator[Bridge]:
    """A Neovim of its own with a bridge that has imported everything already."""
    with new_home() as home:
        nvims: list[Nvim] = []

        async def spawn(**options: Any) -> Nvim:
            nvims.append(await start_nvim(program, home, **options))
            return nvims[-1]

        try:
            bridge = await support.start(spawn, setup=setup, init=init)
            async with Raw(bridge) as raw:
                await raw.initialize()
            yield bridge
        finally:
            for nvim in nvims:
                await nvim.stop()


class Keep(Protocol):
    """Starts a bridge, unless there is one of that Neovim and these options already."""

    async def __call__(
        self, version: str, *, setup: str = "{}", init: str = support.ROOT_TOOLS
    ) -> Bridge: ...


@contextlib.asynccontextmanager
async def keeping(programs: Mapping[str, str]) -> AsyncIterator[Keep]:
    """Bridges that live until the end.

    Args:
        programs: path of each version of Neovim.
    """
    running: dict[tuple[str, str, str], Bridge] = {}
    async with contextlib.AsyncExitStack() as stack:

        async def keep(version: str, *, setup: str = "{}", init: str = support.ROOT_TOOLS) -> Bridge:
            key = (version, setup, init)
            if key not in running or running[key].nvim.process.returncode is not None:
                starting = bridge_of(Path(programs[version]), setup=setup, init=init)
                running[key] = await stack.enter_async_context(starting)
            return running[key]

        yield keep


def health(bridge: Bridge) -> dict[str, Any]:
    """What `/health` tells who has the token."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(f"{bridge.url}/health", headers=bridge.headers)
    with opener.open(request, timeout=3) as answer:
        status: dict[str, Any] = json.load(answer)
        return status


def open_files(pid: int) -> int | None:
    """How many files and sockets a process has open; None where nobody tells."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except FileNotFoundError:
        return None


def memory_of(pid: int) -> int:
    """Resident kB of a process; 0 where nobody tells."""
    try:
        with open(f"/proc/{pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    except FileNotFoundError:
        return 0


async def settled(bridge: Bridge, pid: int, files: int | None) -> None:
    """Fails unless the bridge is the same process as ever, and it and its editor hold nothing any more."""
    assert await bridge.pid() == pid, "the bridge has ended meanwhile"
    await forgotten(bridge)
    try:
        async with asyncio.timeout(SETTLES / 1000):
            while (await asyncio.to_thread(health, bridge))["calls"]["in_flight"] != 0:
                await asyncio.sleep(0.02)
            while files is not None and (open_files(pid) or 0) > files:
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"left behind: {health(bridge)['calls']}, {open_files(pid)} files") from None


async def forgotten(bridge: Bridge) -> None:
    """The registry keeps no call and no result; a result is acknowledged within a quarter of a second."""
    await bridge.nvim.wait_for("return next(probe.calls()) == nil", timeout=SETTLES)
