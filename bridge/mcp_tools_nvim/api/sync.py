"""Calling tools from programs without an event loop: `Client`, and `call_tool` for a single call.

Receives names, arguments, options. Sends the call through an event loop in a thread of its own (`portal`).
Does not know about: connections, which editor is meant.

What only a call needs is imported by the first one: tools in Python import this package when their process
starts.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from .aio import AsyncClient, call_tool_async
from .options import parted, takes_what

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType

    from .options import CallOptions
    from .portal import Portal, Post


@takes_what(call_tool_async)
def call_tool(
    name: str, arguments: Any = None, /, *, socket: str | None = None, **more: Any
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
        return client.call_tool(name, arguments, **more)


class Client:
    """Several calls over one connection: `with Client() as client: client.call_tool(…)`.

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

    @takes_what(AsyncClient.call_tool)
    def call_tool(self, name: str, arguments: Any = None, /, **given: Any) -> dict[str, Any]:
        """As the function `call_tool`."""
        from . import ambient, values
        from . import portal as portals

        options, more = parted(given)
        arguments = values.arguments_of(name, arguments, more, options)
        if ambient.home is not None and portals.is_in_a_loop():
            raise RuntimeError("an `async` tool must not hold up the others: await call_tool_async(…)")
        portal, ended = self._opened(), ambient.cancelled.get()

        def work(post: Post) -> Coroutine[Any, Any, dict[str, Any]]:
            call = self._client._call(name, arguments, _posted(options, post))
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


def _posted(options: CallOptions, post: Post) -> CallOptions:
    """The options, with callbacks that the thread runs which waits for the call."""
    from .portal import call_back

    heard, logged, asked = options.get("on_progress"), options.get("on_log"), options.get("on_elicit")
    return {
        "timeout": options.get("timeout"),
        "on_progress": heard and (lambda news: post(lambda: heard(news))),
        "on_log": logged and (lambda level, data: post(lambda: logged(level, data))),
        "on_elicit": asked and call_back(post, asked),
    }
