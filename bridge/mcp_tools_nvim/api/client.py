"""Functions and classes to call tools from Python: `call_tool` for one call, `Client` for several.

Most imports are delayed until the first call, since the worker for Python tools imports this at its start.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypedDict, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from ..values import ToolError
    from .connection import EditorConnection
    from .portal import Portal, Post

home: str | None = None
"""Address of the Neovim whose worker this process is; None elsewhere. The worker sets it."""
cancelled: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)
"""Set when the Python tool that runs in this thread is cancelled, which also cancels its calls."""

P = ParamSpec("P")
First = TypeVar("First")
Answer = TypeVar("Answer")


class CallOptions(TypedDict, total=False):
    """Options of a call; see `call_tool`."""

    timeout: int | None
    on_progress: Callable[[dict[str, Any]], Any] | None
    on_log: Callable[[str, Any], Any] | None
    on_elicit: Callable[[str, dict[str, Any]], Any] | None


def _with_signature_of(
    model: Callable[Concatenate[Any, P], object],
) -> Callable[[Callable[Concatenate[First, ...], Answer]], Callable[Concatenate[First, P], Answer]]:
    """Gives a function the signature of another one, for type checkers and documentation."""

    def mark(function: Any) -> Any:
        function.__wrapped__ = model
        return function

    return mark


def _split(given: dict[str, Any]) -> tuple[CallOptions, dict[str, Any]]:
    """Splits keyword arguments into options and arguments of the tool."""
    options: Any = {name: value for name, value in given.items() if name in CallOptions.__optional_keys__}
    return options, {name: value for name, value in given.items() if name not in options}


async def call_tool_async(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    /,
    *,
    socket: str | None = None,
    timeout: int | None = None,  # noqa: ASYNC109 - of the tool, in Neovim
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

    Connects with the first call, and again if Neovim has exited meanwhile. Belongs to one event loop.

    Args:
        socket: as in `call_tool`.
    """

    def __init__(self, socket: str | None = None) -> None:
        import asyncio

        self._socket = _socket(socket)
        _need_msgpack()
        self._connection: EditorConnection | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: int | None = None,  # noqa: ASYNC109 - of the tool, in Neovim
        on_progress: Callable[[dict[str, Any]], Any] | None = None,
        on_log: Callable[[str, Any], Any] | None = None,
        on_elicit: Callable[[str, dict[str, Any]], Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Like `call_tool_async`. Calls may run concurrently."""
        from .values import arguments_of

        options: CallOptions = {
            "timeout": timeout,
            "on_progress": on_progress,
            "on_log": on_log,
            "on_elicit": on_elicit,
        }
        return await self._call(name, arguments_of(name, arguments, more, options), options)

    async def close(self) -> None:
        """Cancels running calls and closes the connection."""
        self._closed = True
        async with self._connecting:
            connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _call(self, name: str, arguments: dict[str, Any], options: CallOptions) -> dict[str, Any]:
        """`call_tool` with arguments from `values.arguments_of`."""
        from ..values import ToolError
        from . import values

        wrong = values.argument_error(arguments)
        if wrong is not None:
            return values.failure(wrong)
        connection = await self._connected()
        if isinstance(connection, ToolError):
            return values.failure(connection)
        return await connection.call(name, arguments, options)

    async def _connected(self) -> EditorConnection | ToolError:
        from ..instances.choose import Place, find
        from .connection import EditorConnection, open_connection

        async with self._connecting:
            if self._closed:
                raise RuntimeError("this client is closed")
            if self._connection is not None and not self._connection.closed:
                return self._connection
            place = find(self._socket, home)
            if not isinstance(place, Place):
                return place
            connection = await open_connection(place)
            if isinstance(connection, EditorConnection):
                self._connection = connection
            return connection


def _socket(socket: Any) -> str | None:
    if socket is not None and not isinstance(socket, str):
        raise TypeError(f"socket must be a string, not {type(socket).__name__}")
    if socket is not None and (not socket or "\0" in socket):
        raise ValueError(f"socket is {socket!r}: it must be the v:servername of a Neovim")
    return socket


def _need_msgpack() -> None:
    """Raises an ImportError that names the fix, before anything else fails."""
    if "msgpack" not in sys.modules and importlib.util.find_spec("msgpack") is None:
        raise ImportError(
            f"calls to Neovim need the package msgpack: {sys.executable or 'python3'} -m pip install msgpack",
            name="msgpack",
        )


@_with_signature_of(call_tool_async)
def call_tool(
    name: str, arguments: Any = None, /, *, socket: str | None = None, **more: Any
) -> dict[str, Any]:
    """Runs a tool and waits for its end. For many calls use `Client`, which keeps its connection.

    Ctrl-C and exceptions of callbacks cancel the tool. In a running event loop this function blocks the loop;
    `await call_tool_async(…)` there. Tools written in Python call tools of their own Neovim, and are
    cancelled together with these calls; `async` ones must use `call_tool_async`.

    Args:
        name: name of the tool, with or without the prefix that clients see.
        arguments: arguments of the tool. They may also be keyword arguments, unless an option has that name.
        socket: `v:servername` of Neovim, a path or `host:port`; default: see above.
        timeout: maximum ms; a shorter limit of the tool applies as well. Default: that limit, else Neovim's
            option, which 0 turns off. Waiting for the user does not count.
        on_progress: called with `{"done", "total", "message"}`, and `"state"` for a state that is not text.
        on_log: called with level and data of each log message.
        on_elicit: called with message and JSON Schema when the tool asks for something; returns a dict with
            the answer, or None to decline. Without it such a tool gets `capability_missing`.
        more: arguments of the tool.
    """
    with Client(socket) as client:
        return client.call_tool(name, arguments, **more)


class Client:
    """Several calls over one connection: `with Client() as client: client.call_tool(…)`.

    Thread-safe. Callbacks run in the calling thread.

    Args:
        socket: as in `call_tool`.
    """

    def __init__(self, socket: str | None = None) -> None:
        self._client = AsyncClient(socket)
        self._lock = threading.Lock()
        self._portal: Portal | None = None
        self._closed = False

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @_with_signature_of(AsyncClient.call_tool)
    def call_tool(self, name: str, arguments: Any = None, /, **given: Any) -> dict[str, Any]:
        """Like the function `call_tool`."""
        from . import portal as portals
        from . import values

        options, more = _split(given)
        arguments = values.arguments_of(name, arguments, more, options)
        if home is not None and portals.is_in_a_loop():
            raise RuntimeError("an `async` tool must not block the others: await call_tool_async(…)")
        portal, ended = self._opened(), cancelled.get()

        def work(post: Post) -> Coroutine[Any, Any, dict[str, Any]]:
            call = self._client._call(name, arguments, _posted(options, post))
            return call if ended is None else portals.unless(ended, call, values.failure(values.CANCELLED))

        return portal.run(work)

    def close(self) -> None:
        """Cancels running calls and closes the connection."""
        with self._lock:
            portal, self._portal, self._closed = self._portal, None, True
        if portal is not None:
            try:
                portal.run(lambda _: self._client.close())
            finally:
                portal.close()

    def _opened(self) -> Portal:
        from .portal import Portal

        with self._lock:
            if self._closed:
                raise RuntimeError("this client is closed")
            if self._portal is None:
                self._portal = Portal()
            return self._portal


def _posted(options: CallOptions, post: Post) -> CallOptions:
    """Returns the options, with callbacks that run in the waiting thread."""
    from .portal import call_back

    on_progress, on_log = options.get("on_progress"), options.get("on_log")
    on_elicit = options.get("on_elicit")
    return {
        "timeout": options.get("timeout"),
        "on_progress": on_progress and (lambda news: post(lambda: on_progress(news))),
        "on_log": on_log and (lambda level, data: post(lambda: on_log(level, data))),
        "on_elicit": on_elicit and call_back(post, on_elicit),
    }
