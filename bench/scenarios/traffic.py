"""Requests to Neovim while idle and while one call is pending, counted by a relay."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgpack
import servers
from rounds import Amount
from stage import editor, http_client
from table import Row

PER_SECOND = 1.1
SETTLE = 1.5  # seconds until the work after a call is done


class Relay:
    """A relay between a bridge and its Neovim, which records the time of each message to Neovim."""

    def __init__(self, upstream: Path) -> None:
        self.times: list[float] = []
        self._upstream = str(upstream)

    def count(self, since: float) -> int:
        """Messages to Neovim since a time."""
        return sum(1 for at in self.times if at >= since)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        up_reader, up_writer = await asyncio.open_unix_connection(self._upstream)
        unpacker = msgpack.Unpacker(raw=True, strict_map_key=False)

        async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter, counted: bool) -> None:
            while data := await source.read(1 << 16):
                if counted:
                    unpacker.feed(data)
                    self.times += [time.monotonic() for _ in unpacker]
                target.write(data)
                await target.drain()
            target.close()

        with contextlib.suppress(ConnectionError):
            await asyncio.gather(pump(reader, up_writer, True), pump(up_reader, writer, False))


@contextlib.asynccontextmanager
async def relayed(upstream: Path, socket: Path) -> AsyncIterator[Relay]:
    """Starts the relay."""
    relay = Relay(upstream)
    server = await asyncio.start_unix_server(relay.serve, str(socket))
    try:
        yield relay
    finally:
        server.close()


async def measure(program: Path, folder: Path, amount: Amount) -> list[Row]:
    """Measures with a separate Neovim and bridge, so that it can run besides other measurements."""
    async with contextlib.AsyncExitStack() as stack:
        running = await stack.enter_async_context(editor(program, folder / "quiet"))
        socket = running.home.path / "relay.sock"
        relay = await stack.enter_async_context(relayed(running.socket, socket))
        bridge = await stack.enter_async_context(servers.bridge(socket, running.home))
        http = await stack.enter_async_context(http_client())
        echo = await servers.with_sessions(http, bridge, servers.call("nvim_echo", "hello"), "hello")
        await servers.ask(http, echo)
        await asyncio.sleep(SETTLE)
        begun = time.monotonic()
        await asyncio.sleep(amount.idle)
        idle = relay.count(begun)
        message = {"method": "tools/call", "params": {"name": "nvim_pending", "arguments": {}}}
        endpoint = await servers.with_sessions(http, bridge, message, "")
        pending = asyncio.create_task(servers.ask(http, endpoint))
        await asyncio.sleep(amount.pending / 2)
        begun = time.monotonic()
        await asyncio.sleep(amount.pending / 2)
        rate = relay.count(begun) / (time.monotonic() - begun)
        alive = not pending.done()
        pending.cancel()
        await asyncio.wait([pending])
        assert alive, "the pending call ended"
    half = f"second half of a call pending for {amount.pending:g} s"
    return [
        Row("requests to Neovim, idle", f"{idle} in {amount.idle:g} s", "0", idle == 0),
        Row(f"requests to Neovim, {half}", f"{rate:.2f} per s", f"≤ {PER_SECOND} per s", rate <= PER_SECOND),
    ]
