"""A real Neovim with a real bridge, and real MCP clients for it, one per transport."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import anyio
import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from .nvim import ROOT, Nvim, Spawn

Transport = Literal["sessions", "stateless", "sse"]
TRANSPORTS: tuple[Transport, ...] = ("sessions", "stateless", "sse")

ROOT_TOOLS = f"dofile([[{ROOT / 'tests' / 'e2e' / 'tools.lua'}]])"
"""Lua that registers the tools of tests/e2e/tools.lua."""

INIT = """
_G.mcp_tools = require('mcp-tools')
require('mcp-tools.config').change({{ tools = false }}) -- only those of the test
mcp_tools.setup(vim.tbl_deep_extend('force', {{ bridge = {{ python = [[{python}]] }} }}, {setup}))
{init}
"""


def with_limits(setup: str = "{}", **limits: int) -> str:
    """Options in Lua that also change limits that are not options."""
    values = ", ".join(f"{name} = {ms}" for name, ms in limits.items())
    change = f"for k, v in pairs({{ {values} }}) do probe.settings.limits[k] = v end"
    return f"(function() {change} return {setup} end)()"


@dataclass
class Bridge:
    """A running bridge."""

    nvim: Nvim
    port: int
    token: str

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """The header with the token."""
        return {"Authorization": f"Bearer {self.token}"}

    async def pid(self) -> int:
        return int(await self.nvim.lua("return require('mcp-tools').status().pid"))


Start = Callable[..., Awaitable[Bridge]]
"""A fixture that starts a bridge."""


async def start(spawn_nvim: Spawn, *, init: str = "", setup: str = "{}", **options: Any) -> Bridge:
    """Starts a Neovim and its bridge.

    Args:
        spawn_nvim: the fixture.
        init: Lua that runs after `setup()`; `mcp_tools` is the module.
        setup: a Lua table of options.
        options: more for `spawn_nvim`.
    """
    text = INIT.format(python=sys.executable, setup=setup, init=init)
    nvim = await spawn_nvim(init_lua=text, **options)
    await nvim.lua("mcp_tools.start()")
    return await ready(nvim)


async def ready(nvim: Nvim) -> Bridge:
    """Waits until the bridge of `nvim` is ready."""
    endpoint = await nvim.wait_for("return mcp_tools.endpoint()", timeout=15_000)
    return Bridge(nvim, endpoint["port"], endpoint["token"])


async def wait_restarted(bridge: Bridge, old_pid: int) -> None:
    """Waits for the bridge process after `old_pid`; port and token must be the same."""
    code = "return mcp_tools.status().pid ~= ... and mcp_tools.endpoint() ~= nil"
    await bridge.nvim.wait_for(code, old_pid, timeout=15_000)
    assert await ready(bridge.nvim) == bridge


async def crash(bridge: Bridge) -> None:
    """Kills the bridge, and waits until the next one is ready."""
    old = await bridge.pid()
    os.kill(old, signal.SIGKILL)
    await wait_restarted(bridge, old)


def http_client(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | float | None = 60,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    """A client with the signature of the SDK's `httpx_client_factory`."""
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, verify=False, trust_env=False)


@contextlib.contextmanager
def closing_quietly() -> Iterator[asyncio.Event]:
    """Ignores that a message breaks the SDK's SSE client while it closes; set the event before that."""
    closing = asyncio.Event()
    try:
        yield closing
    except* anyio.BrokenResourceError:
        if not closing.is_set():
            raise


@contextlib.asynccontextmanager
async def connect(
    bridge: Bridge, transport: Transport, query: str = "", **options: Any
) -> AsyncIterator[Client]:
    """A client of the official Python SDK over `transport`; `query` is added to the URL."""
    if transport == "sse":
        source = sse_client(f"{bridge.url}/sse{query}", bridge.headers, httpx_client_factory=http_client)
        with closing_quietly() as closing:
            async with Client(source, mode="legacy", **options) as client:
                yield client
                closing.set()
        return
    mode = "legacy" if transport == "sessions" else "auto"
    async with (
        http_client(bridge.headers) as http,
        Client(
            streamable_http_client(f"{bridge.url}/mcp{query}", http_client=http), mode=mode, **options
        ) as client,
    ):
        yield client
