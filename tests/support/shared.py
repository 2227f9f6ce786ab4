"""One bridge for many tests, which must be idle after each of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import urllib.request
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from . import bridge as support
from .bridge import Bridge
from .nvim import Nvim, new_home
from .nvim import start as start_nvim
from .raw import Raw
from .results import eventually

GRACE = 1_000
"""ms until a client without a connection is gone."""
BODY = 1 << 19
"""Maximum bytes of a request."""
MISUSED = support.with_limits(f"{{ limits = {{ request_body = {BODY} }} }}", orphan_grace=GRACE)
"""Options of the bridge that tests of misuse share."""
SETTLES = 2_000
"""ms for results to be acknowledged, connections to be closed and calls to be forgotten."""


@contextlib.asynccontextmanager
async def bridge_of(
    program: Path, *, setup: str = "{}", init: str = support.ROOT_TOOLS
) -> AsyncIterator[Bridge]:
    """A separate Neovim with a bridge that has imported the SDK."""
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
    """Returns a bridge of a Neovim version and options, which is started once."""

    async def __call__(
        self, version: str, *, setup: str = "{}", init: str = support.ROOT_TOOLS
    ) -> Bridge: ...


@contextlib.asynccontextmanager
async def keeping(programs: Mapping[str, str]) -> AsyncIterator[Keep]:
    """Bridges that run until the end; `programs` has the path of each Neovim version."""
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
    """The state in `/health`."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(f"{bridge.url}/health", headers=bridge.headers)
    with opener.open(request, timeout=3) as answer:
        return json.load(answer)


def open_files(pid: int) -> int | None:
    """Number of open files and sockets of a process; None if unknown."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except FileNotFoundError:
        return None


def memory_of(pid: int) -> int:
    """Resident kB of a process; 0 if unknown."""
    with contextlib.suppress(OSError):
        found = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return int(found[1]) if found else 0
    return 0


async def settled(bridge: Bridge, pid: int, files: int | None) -> None:
    """Checks that the bridge is the same process, and that it and its editor are idle."""
    assert await bridge.pid() == pid, "the bridge was restarted"
    await forgotten(bridge)

    async def is_idle() -> bool:
        calls = (await asyncio.to_thread(health, bridge))["calls"]["in_flight"]
        return calls == 0 and (files is None or (open_files(pid) or 0) <= files)

    try:
        await eventually(is_idle, SETTLES / 1000)
    except TimeoutError:
        raise AssertionError(f"left behind: {health(bridge)['calls']}, {open_files(pid)} files") from None


async def forgotten(bridge: Bridge) -> None:
    """Waits until the registry keeps no call and no result."""
    await bridge.nvim.wait_for("return next(probe.calls()) == nil", timeout=SETTLES)
