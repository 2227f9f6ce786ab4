"""A forwarder like `ssh -L`, from a port or unix socket to another."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

Address = str
"""`host:port`, `[host]:port`, or the path of a unix socket."""


class Forwarder:
    """Forwards connections to `here` to `there`."""

    def __init__(self, here: Address, there: Address) -> None:
        self.here = here
        self.there = there
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Listens; port 0 becomes a free one, in `here`."""
        if "/" in self.here:
            self._server = await asyncio.start_unix_server(self._carry, self.here)
            return
        host, port = _split(self.here)
        self._server = await asyncio.start_server(self._carry, host, port)
        host = f"[{host}]" if ":" in host else host
        self.here = f"{host}:{self._server.sockets[0].getsockname()[1]}"

    async def cut(self) -> None:
        """Closes all connections and the port."""
        if self._server:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        streams = [writer]
        try:
            if "/" in self.there:
                down, up = await asyncio.open_unix_connection(self.there)
            else:
                down, up = await asyncio.open_connection(*_split(self.there))
            streams.append(up)
            ways = [asyncio.ensure_future(_pass(reader, up)), asyncio.ensure_future(_pass(down, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass  # no listener: the client sees the end
        finally:
            for stream in streams:
                stream.close()
            self._tasks.discard(task)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


def _split(address: Address) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


@contextlib.asynccontextmanager
async def forwarded(here: Address, there: Address) -> AsyncIterator[Forwarder]:
    """Runs a forwarder."""
    forwarder = Forwarder(here, there)
    await forwarder.serve()
    try:
        yield forwarder
    finally:
        await forwarder.cut()
