"""Calling tools from coroutines: `AsyncClient`, and `call_tool_async` for a single call.

Receives names, arguments, options. Sends the call over a connection that it makes when there is none.
Does not know about: threads, callbacks.

What only a call needs is imported by the first one: tools in Python import this package when their process
starts.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from ..values import ToolError
    from .connection import Connection
    from .options import CallOptions


async def call_tool_async(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    /,
    *,
    socket: str | None = None,
    timeout: int | None = None,  # noqa: ASYNC109 - the tool's, in the editor
    on_progress: Callable[[dict[str, Any]], Any] | None = None,
    on_log: Callable[[str, Any], Any] | None = None,
    on_elicit: Callable[[str, dict[str, Any]], Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """`call_tool` for coroutines: cancelling the task cancels the tool.

    The event loop calls the callbacks, so they must not block; `on_elicit` may be a coroutine function.
    """
    async with AsyncClient(socket) as client:
        return await client.call_tool(
            name,
            arguments,
            timeout=timeout,
            on_progress=on_progress,
            on_log=on_log,
            on_elicit=on_elicit,
            **more,
        )


class AsyncClient:
    """Several calls over one connection: `async with AsyncClient() as client: await client.call_tool(…)`.

    It connects with the first call, and anew when the editor has ended meanwhile. Belongs to one event loop.

    Args:
        socket: as in `call_tool`.
    """

    def __init__(self, socket: str | None = None) -> None:
        import asyncio

        self._socket = _socket(socket)
        _need_msgpack()
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: int | None = None,  # noqa: ASYNC109 - the tool's, in the editor
        on_progress: Callable[[dict[str, Any]], Any] | None = None,
        on_log: Callable[[str, Any], Any] | None = None,
        on_elicit: Callable[[str, dict[str, Any]], Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """As `call_tool_async`. Calls may run side by side."""
        from .values import arguments_of

        options: CallOptions = {
            "timeout": timeout,
            "on_progress": on_progress,
            "on_log": on_log,
            "on_elicit": on_elicit,
        }
        return await self._call(name, arguments_of(name, arguments, more, options), options)

    async def close(self) -> None:
        """Cancels what still runs and closes the connection."""
        self._closed = True
        async with self._connecting:
            connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _call(self, name: str, arguments: dict[str, Any], options: CallOptions) -> dict[str, Any]:
        """`call_tool` with arguments that `values.arguments_of` has made."""
        from ..values import ToolError
        from . import values

        wrong = values.argument_error(arguments)
        if wrong is not None:
            return values.failure(wrong)
        connection = await self._connected()
        if isinstance(connection, ToolError):
            return values.failure(connection)
        return await connection.call(name, arguments, options)

    async def _connected(self) -> Connection | ToolError:
        from ..instances.choose import Place, find
        from . import ambient
        from .connection import Connection, connect

        async with self._connecting:
            if self._closed:
                raise RuntimeError("this client is closed")
            if self._connection is not None and not self._connection.closed:
                return self._connection
            place = find(self._socket, ambient.home)
            if not isinstance(place, Place):
                return place
            connection = await connect(place)
            if isinstance(connection, Connection):
                self._connection = connection
            return connection


def _socket(socket: Any) -> str | None:
    if socket is not None and not isinstance(socket, str):
        raise TypeError(f"socket must be a string, not {type(socket).__name__}")
    if socket is not None and (not socket or "\0" in socket):
        raise ValueError(f"socket is {socket!r}: it must be the v:servername of a Neovim")
    return socket


def _need_msgpack() -> None:
    """Said before anything is tried: the traceback of a failed import leads nobody to the remedy."""
    if "msgpack" not in sys.modules and importlib.util.find_spec("msgpack") is None:
        raise ImportError(
            f"calls to Neovim need the package msgpack: {sys.executable or 'python3'} -m pip install msgpack",
            name="msgpack",
        )
