"""The seam between the bridge and the editor.

`nvim.NvimEditor` is the real one (msgpack-RPC); the tests have a twin in memory, with tools in Python.
Does not know about: MCP, HTTP, tools by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from ..values import AgentEndpoint, CallRequest, Hello, HelloInfo, Kind, Listing, Mode, Reply, ToolError, View


class EditorListener(Protocol):
    """Who hears of calls; every method is synchronous and returns at once."""

    def started(self, task_id: str, deadline: float | None) -> None:
        """The tool is about to run; from now on only its own deadline (by the loop's clock) ends it."""

    def wake(self, task_id: str, reply: Reply | None) -> None:
        """Something happened: `reply` is what `get_result` would answer, None = ask for it."""

    def log(self, task_id: str, level: str, data: Any) -> None:
        """The tool logged `data` (any JSON value) for its client."""


class Editor(Protocol):
    """The verbs of the wire, typed.

    Requests are plain methods that return a future, so that a caller which already sits in a task pays for no
    second one; they fail with an `EditorError`. Cancelling the future only stops waiting for the answer.
    """

    closed: asyncio.Future[None]
    """Done (without an exception) when the channel to the editor is gone."""

    @property
    def last_heard(self) -> float:
        """When the editor last sent anything, by the loop's clock."""

    @property
    def congested(self) -> bool:
        """True while the editor does not read what was written; then `drain` before writing more."""

    async def drain(self, until: float) -> bool:
        """Waits until the editor reads again, or `until` (by the loop's clock); True = it does."""

    def hello(self, info: HelloInfo, timeout: float = 5.0) -> Awaitable[Hello]:
        """Introduces the bridge; `timeout` in seconds, as the user may have to answer a prompt first."""

    def list(self, kind: Kind, revision: int | None, view: View | None = None) -> asyncio.Future[Listing]:
        """Definitions of one kind, or `json=None` when `revision` still holds; those of `view` alone."""

    def execute(
        self,
        call_id: str,
        request: CallRequest,
        start_by: float,
        timeout_ms: int,
        ack: Sequence[str] = (),
        give_up: float | None = None,
    ) -> asyncio.Future[Reply]:
        """Starts a call.

        Args:
            call_id: made by the caller, never repeated; it is the task id of every later verb.
            request: what to call.
            start_by: moment of the loop's clock; the editor refuses a call that it gets to later than that.
            timeout_ms: for tools that set none; 0 = no limit.
            ack: ids of results that the editor may forget.
            give_up: moment of it at which the future fails with `NoAnswerError`.
        """

    def get_result(self, task_id: str, since: int, *, whole: bool = False) -> asyncio.Future[Reply]:
        """What is known of a call; of a result beyond `LARGE` the size alone, unless the `whole` is wanted.

        Args:
            task_id: of the call.
            since: the last progress `seq` seen.
            whole: a large result, too. Every other verb gives its size.
        """

    def explain(self, task_id: str) -> asyncio.Future[tuple[str, str]]:
        """Path and message of the bytes in a result that are not UTF-8."""

    def mode(self, timeout: float = 2.0) -> asyncio.Future[Mode | None]:
        """The editor's mode, answered even at a prompt; None when it was silent for `timeout` seconds."""

    def answer(self, task_id: str, seq: int, answers: dict[str, Any]) -> asyncio.Future[Reply]:
        """Hands a tool what its client answered to the question `seq`; to another than the open one: nothing.

        Args:
            task_id: of the call.
            seq: as in `Inputs`.
            answers: `{key: {"result": {…}} | {"error": {"code": …, "message": …}}}`.
        """

    def cancel(self, task_id: str, reason: str) -> None:
        """Tells the editor to end a call; nothing is answered."""

    def acknowledge(self, task_ids: Sequence[str]) -> None:
        """Lets the editor forget these results."""

    def subscribe(self, uri: str) -> asyncio.Future[ToolError | None]:
        """Subscribes to changes of a resource; returns why not. Each subscription is cancelled once."""

    def unsubscribe(self, uri: str) -> None:
        """Cancels one `subscribe`; has no reply."""

    def report(self, kind: str, data: dict[str, Any]) -> None:
        """Tells the editor something about the bridge (`listening`, `sessions`, `blocked`)."""

    def set_listener(self, listener: EditorListener) -> None:
        """Names the one that hears of calls."""

    def on_changed(self, callback: Callable[[str, int], None]) -> None:
        """Adds one that hears `(kind, revision)` when a list of definitions changed."""

    def on_updated(self, callback: Callable[[str], None]) -> None:
        """Adds one that hears the URI of a resource that was subscribed to and has changed."""

    def on_endpoints(self, callback: Callable[[tuple[AgentEndpoint, ...]], None]) -> None:
        """Adds a callback for endpoints of terminal agents, when they differ from those of `hello`."""

    def on_integrations(self, callback: Callable[[Any], None]) -> None:
        """Adds one that receives `{"url": ours, "servers": […]}`: the agents' servers to register with."""

    def on_push(self, callback: Callable[[str, str | None, str, str, bool], None]) -> None:
        """Adds a callback with `(agent, session, method, params, latest)`: a notification for one session of
        an agent or for all; `params` is JSON text, `latest` replaces unsent ones of the method."""

    def agent_event(self, event: str, data: dict[str, Any]) -> None:
        """Reports an event of a terminal agent's session (`opened`, `notified`, `left`)."""
