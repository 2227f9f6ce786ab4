"""Tools of a running Neovim, called from Python: `call_tool("buffer_list")`.

Receives the name of a tool and its arguments. Sends the call straight to the editor, where it is checked,
approved, run and noted like any other; gives back a dict, also for whatever goes wrong.
Does not know about: MCP, HTTP, the bridge's process (none is needed).

A result is `{"ok": True, "text": …, "structured": …, "content": […]}`: the text, the data (None when the tool
gives text), and both as the content blocks that an AI client gets. A failure is `{"ok": False, "error":
{"code": …, "message": …}}`, with `errors` (a list of `{"field", "message"}`) where arguments are wrong;
`:h mcp-tools-errors` has the codes. Only misuse raises: TypeError or ValueError for what can be no argument,
RuntimeError for a closed client.

The editor is the one that `socket` names, else the one that this program runs in ($NVIM), else
$NVIM_LISTEN_ADDRESS, else the one that has the project of the working folder open.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from types import TracebackType

    from ..model import ToolError
    from .link import Callbacks, Link
    from .portal import Portal

__all__ = ["AsyncClient", "Client", "call_tool", "call_tool_async"]


def call_tool(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    /,
    *,
    socket: str | None = None,
    timeout: int | None = None,
    on_progress: Callable[[dict[str, Any]], Any] | None = None,
    on_log: Callable[[str, Any], Any] | None = None,
    on_elicit: Callable[[str, dict[str, Any]], Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Runs a tool and waits for its end. For many calls use `Client`, which keeps its connection.

    Ctrl-C, and what a callback raises, cancel the tool. Inside of a running event loop it works too, but it
    holds that loop up; there `await call_tool_async(…)`. Tools written in Python call those of their editor,
    and a call ends when its tool is cancelled; `async` ones have to await.

    Args:
        name: of the tool, with or without the prefix that clients see.
        arguments: the tool's. They may also be given by name; those named like an option belong here.
        socket: `v:servername` of the editor, a path or `host:port`; default: see above.
        timeout: ms that the tool may take; a limit of its own stays. Default: that, else the editor's option,
            which 0 takes away. The time of a person who is asked does not count.
        on_progress: gets `{"done", "total", "message"}`, and `"state"` where a tool yields more than text.
        on_log: gets level and data of what the tool logs for its client.
        on_elicit: gets message and JSON Schema when the tool asks for something; returns a dict with what was
            asked for, or None to decline. Without it such a tool gets `capability_missing`.
        more: arguments by name.
    """
    with Client(socket) as client:
        return client.call_tool(
            name,
            arguments,
            timeout=timeout,
            on_progress=on_progress,
            on_log=on_log,
            on_elicit=on_elicit,
            **more,
        )


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
    """`call_tool` for coroutines: cancelling the task cancels the tool; `on_elicit` may be a coroutine too.

    Args:
        name: as in `call_tool`.
        arguments: as there.
        socket: as there.
        timeout: as there.
        on_progress: as there; called by the event loop, so it must not block.
        on_log: likewise.
        on_elicit: likewise.
        more: arguments by name.
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
        self._link: Link | None = None
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
        from .link import Callbacks

        given = _given(name, arguments, more, timeout)
        return await self._call(name, given, timeout, Callbacks(on_progress, on_log, on_elicit))

    async def close(self) -> None:
        """Cancels what still runs and closes the connection."""
        self._closed = True
        async with self._connecting:
            link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def _call(
        self,
        name: str,
        arguments: dict[str, Any],
        timeout: int | None,  # noqa: ASYNC109 - the tool's
        callbacks: Callbacks,
    ) -> dict[str, Any]:
        from ..model import ToolError
        from . import values

        wrong = values.argument_error(arguments)
        if wrong is not None:
            return values.failure(wrong)
        link = await self._linked()
        if isinstance(link, ToolError):
            return values.failure(link)
        return await link.call(name, arguments, timeout, callbacks)

    async def _linked(self) -> Link | ToolError:
        from ..instances.choose import Place, find
        from . import ambient
        from .link import Link, connect

        async with self._connecting:
            if self._closed:
                raise RuntimeError("this client is closed")
            if self._link is not None and not self._link.closed:
                return self._link
            place = find(self._socket, ambient.home)
            if not isinstance(place, Place):
                return place
            link = await connect(place)
            if isinstance(link, Link):
                self._link = link
            return link


class Client:
    """The same for programs without an event loop: `with Client() as client: client.call_tool(…)`.

    Several threads may use it at once. Callbacks run in the thread that called.

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

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: int | None = None,
        on_progress: Callable[[dict[str, Any]], Any] | None = None,
        on_log: Callable[[str, Any], Any] | None = None,
        on_elicit: Callable[[str, dict[str, Any]], Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """As the function `call_tool`."""
        from . import ambient, values
        from . import portal as portals
        from .link import Callbacks

        given = _given(name, arguments, more, timeout)
        if ambient.home is not None and portals.is_in_a_loop():
            raise RuntimeError("an `async` tool must not hold up the others: await call_tool_async(…)")
        portal, ended = self._opened(), ambient.cancelled.get()

        def work(post: Callable[[Callable[[], None]], None]) -> Coroutine[Any, Any, dict[str, Any]]:
            callbacks = Callbacks(
                None if on_progress is None else lambda news: post(lambda: on_progress(news)),
                None if on_log is None else lambda level, data: post(lambda: on_log(level, data)),
                None if on_elicit is None else portal.call_back(post, on_elicit),
            )
            call = self._client._call(name, given, timeout, callbacks)
            return call if ended is None else portals.unless(ended, call, values.failure(values.CANCELLED))

        return portal.run(work)

    def close(self) -> None:
        """Cancels what still runs and closes the connection."""
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


def _socket(socket: Any) -> str | None:
    if socket is not None and not isinstance(socket, str):
        raise TypeError(f"socket must be a string, not {type(socket).__name__}")
    if socket is not None and (not socket or "\0" in socket):
        raise ValueError(f"socket is {socket!r}: it must be the v:servername of a Neovim")
    return socket


def _given(name: Any, arguments: Any, more: dict[str, Any], timeout: Any) -> dict[str, Any]:
    """The arguments, once everything is what it must be."""
    from .values import plain

    if not isinstance(name, str):
        raise TypeError(f"the name of a tool must be a string, not {type(name).__name__}")
    if timeout is not None and (not isinstance(timeout, int) or isinstance(timeout, bool)):
        raise TypeError(f"timeout must be a whole number of ms, not {timeout!r}")
    if timeout is not None and not 0 <= timeout < 2**31:
        raise ValueError(f"timeout is {timeout}: it must be from 0 to {2**31 - 1} ms")
    given = plain({} if arguments is None else arguments)
    if twice := given.keys() & more.keys():
        raise TypeError(f"given twice: {', '.join(sorted(twice))}")
    return {**given, **plain(more)}
