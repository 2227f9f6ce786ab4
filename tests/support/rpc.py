"""A msgpack-RPC client, independent of the one under test."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgpack

REQUEST, RESPONSE, NOTIFICATION = 0, 1, 2


class RpcError(Exception):
    """Neovim answered with an error, or has exited."""


class GoneError(RpcError):
    """The connection has ended."""


class Rpc(asyncio.Protocol):
    """One connection; requests may overlap."""

    def __init__(self) -> None:
        self.notifications: asyncio.Queue[tuple[str, list[Any]]] = asyncio.Queue()
        self.closed = asyncio.get_running_loop().create_future()
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._last_id = 0
        self._why = "Neovim has exited"
        self._transport: asyncio.WriteTransport | None = None
        self._unpacker = msgpack.Unpacker(raw=False, unicode_errors="surrogateescape", strict_map_key=False)

    @classmethod
    async def connect(cls, socket: Path) -> Rpc:
        """Connects to a Neovim at a unix socket."""
        _, rpc = await asyncio.get_running_loop().create_unix_connection(cls, str(socket))
        return rpc

    async def request(self, method: str, *args: Any, timeout: int = 10_000) -> Any:
        """The result of an API function; `timeout` in ms."""
        if self._transport is None or self._transport.is_closing():
            raise GoneError(self._why)
        self._last_id += 1
        request_id = self._last_id
        answer = self._pending[request_id] = asyncio.get_running_loop().create_future()
        message = [REQUEST, request_id, method, args]
        self._transport.write(msgpack.packb(message, unicode_errors="surrogateescape"))
        try:
            async with asyncio.timeout(timeout / 1000):
                return await answer
        finally:
            self._pending.pop(request_id, None)

    async def lua(self, code: str, *args: Any, timeout: int = 10_000) -> Any:
        """The result of Lua code with `args` as `...`."""
        return await self.request("nvim_exec_lua", code, list(args), timeout=timeout)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None:  # for example an exception of data_received
            self._why = f"{self._why}: {error!r}"
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(GoneError(self._why))
        if not self.closed.done():
            self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._unpacker.feed(data)
        for message in self._unpacker:
            if message[0] == RESPONSE:
                self._answer(*message[1:])
            elif message[0] == NOTIFICATION:
                self.notifications.put_nowait((message[1], message[2]))
            else:
                raise AssertionError(f"Neovim must never wait for a client: {message[2]!r}")

    def _answer(self, request_id: int, error: Any, result: Any) -> None:
        answer = self._pending.get(request_id)
        if answer is None or answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(RpcError(error[1] if isinstance(error, list) else str(error)))
