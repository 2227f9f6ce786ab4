"""One session of an MCP client: its requests in flight, its streams, and questions to it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .. import jsonrpc
from ..values import Scope, View
from .streams import EventIds, Response, Streams

if TYPE_CHECKING:
    from ..calls.runner import Calls
    from ..mcp.dispatch import Dispatch, Push
    from ..mcp.kernel import Kernel


_CANCELLED = {
    "client": "Request cancelled",
    "disconnected": "Request cancelled: the client disconnected",
    "session_closed": "Request cancelled: the session was closed",
    "client_gone": "Request cancelled: the client has not reconnected in time",
    "shutdown": "Request cancelled: the server is shutting down",
}


class Exchange:
    """A request in flight. Created in the task that then awaits `run`.

    Attributes:
        connected: whether the connection of the request is still open.
        task: the task that it was created in.
        status: HTTP status of the answer in the stateless era; known after `run`.
    """

    def __init__(self, calls: Calls, connected: Callable[[], bool], request: jsonrpc.Request) -> None:
        task = asyncio.current_task(calls.loop)
        if task is None:
            raise RuntimeError("an exchange must be created in a task")
        self.request = request
        self.status = 200
        self.connected = connected
        self._calls = calls
        self.task = task
        self._reason: str | None = None

    def cancel(self, reason: str) -> None:
        """Cancels the request, which is then answered immediately. Later reasons are ignored."""
        if self._reason is None:
            self._reason = reason
            self._calls.set_cancel_reason(self.task, reason)
            self.task.cancel()

    def on_disconnect(self) -> None:
        """Handles a lost connection: cancels a call that waits for approval; a running one continues."""
        if self._calls.awaits_approval(self.task):
            self.cancel("disconnected")

    async def run(
        self,
        kernel: Kernel,
        dispatch: Dispatch,
        serve: Callable[[Dispatch, jsonrpc.Request], Awaitable[dict[str, Any]]],
    ) -> bytes:
        """Serves the request and returns the answer; raises only when the task is cancelled elsewhere."""
        id_ = self.request.id
        try:
            result = await serve(dispatch, self.request)
            encoded, dispatch.encoded = dispatch.encoded, None  # frees memory: the dispatch lives longer
            if encoded is not None:
                return jsonrpc.result_of_encoded(id_, *encoded)
            return jsonrpc.dumps(jsonrpc.result(id_, result))
        except asyncio.CancelledError:
            if self._reason is None:
                raise
            self.task.uncancel()
            answer = jsonrpc.error(id_, jsonrpc.REQUEST_CANCELLED, _CANCELLED.get(self._reason, self._reason))
        except Exception as failure:  # noqa: BLE001 - boundary: becomes the answer
            answer = kernel.error(id_, failure)
            self.status = kernel.status_of(answer)
        return jsonrpc.dumps(answer)


RECONNECT_SECONDS = 5.0
"""A client that lost its standalone stream is considered gone after this time without a new one."""

SILENCE_SECONDS = 60.0
"""The same for a client that never opened one; it may just be idle."""

BATCH_BYTES = 16 * 1024 * 1024
"""Maximum size of all answers of a batch: one of the maximum size and many small ones."""

Transport = Literal["http", "sse", "websocket"]

ENDS_WITH_STREAM: frozenset[Transport] = frozenset({"sse", "websocket"})
"""Transports whose sessions end with their connection."""

EARLY_CANCEL_SECONDS = 2.0
"""How long a cancel of an unknown id is kept: sent over another connection, it can precede its request."""

MAX_EARLY_CANCELS = 256

MAX_EARLY_ID = 200
"""Maximum length of an id that is kept."""

MAX_NOTICE = 64 * 1024
"""Maximum bytes of a notification outside MCP; longer ones are dropped."""

_MCP_NOTIFICATIONS = "notifications/"


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One connected client, for the dashboard.

    Attributes:
        key: the session in the calls that Neovim gets.
        holder: digest of the client's own token; empty = it uses the project's token.
    """

    name: str
    version: str
    transport: str
    key: str
    holder: str = ""


class Watcher(Protocol):
    """Follows the sessions of terminal agents; no method may wait."""

    def opened(self, session: Session) -> None:
        """The session is initialized and can receive notifications."""

    def notified(self, session: Session, method: str, params: Mapping[str, Any] | None) -> None:
        """The agent sent a notification outside MCP."""

    def left(self, session: Session) -> None:
        """The agent has disconnected."""


class Questions:
    """Requests to one client that it has not answered."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[jsonrpc.Answer]] = {}

    async def ask(
        self, push: Push, method: str, params: Mapping[str, Any] | None, seconds: float | None
    ) -> jsonrpc.Answer:
        """Sends the client a request over a stream's `push` and waits for its answer.

        Raises:
            TimeoutError: the client did not answer within `seconds`.
        """
        id_ = next(self._ids)
        asked: asyncio.Future[jsonrpc.Answer] = asyncio.get_running_loop().create_future()
        self._waiting[str(id_)] = asked
        push(jsonrpc.dumps(jsonrpc.request(id_, method, params)))
        try:
            async with asyncio.timeout(seconds):
                return await asked
        except (asyncio.CancelledError, TimeoutError):
            push(jsonrpc.dumps(jsonrpc.notification("notifications/cancelled", {"requestId": id_})))
            raise
        finally:
            del self._waiting[str(id_)]

    def answered(self, message: jsonrpc.Answer) -> None:
        """Takes an answer of the client. Late and unknown ones are ignored."""
        asked = self._waiting.get(str(message.id))  # some clients return a number as a string
        if asked is not None and not asked.done():
            asked.set_result(message)

    @property
    def are_open(self) -> bool:
        """Whether any request is unanswered."""
        return bool(self._waiting)

    def on_too_large(self, limit: int) -> None:
        """Handles a refused body of more than `limit` bytes: fails the question that it answered."""
        if len(self._waiting) != 1:
            return  # it is unknown which one it answered; each has a deadline
        id_, asked = next(iter(self._waiting.items()))
        if not asked.done():
            text = f"the client's answer is larger than {limit} bytes"
            asked.set_result(jsonrpc.Answer(id_, error={"code": jsonrpc.TOO_LARGE, "message": text}))

    def cancel(self) -> None:
        """Cancels whatever waits for an answer."""
        for asked in self._waiting.values():
            asked.cancel()


class Session:
    """One session of an MCP client.

    Args:
        kernel: serves the requests.
        calls: gets the reason when a request is cancelled.
        key: the session's id for tools; clients get another id when their session is saved.
        transport: how the client is connected.
        ids: makes event ids; None = streams cannot be resumed.
        scope: which tools the client requests.
        watcher: follows the session of a terminal agent.
        holder: digest of the client's own token; None = it uses the project's token.

    Attributes:
        agent: name of the terminal agent whose endpoint the client uses; None for other clients.
    """

    def __init__(
        self,
        kernel: Kernel,
        calls: Calls,
        key: str,
        transport: Transport,
        ids: EventIds | None,
        scope: Scope | None = None,
        watcher: Watcher | None = None,
        holder: str | None = None,
    ) -> None:
        self.key = key
        self.scope = scope
        self.holder = holder
        self.agent = None if scope is None else scope.agent
        self._watcher = watcher
        self._announced = False
        self.transport: Transport = transport
        self.id = key  # replaced when the session is saved (streamable HTTP only)
        self.created: float | None = None  # set when it is saved
        self.info: SessionInfo | None = None
        self.closed = False
        self.last_heard = time.monotonic()
        self.streams = Streams(ids)
        self.standalone = self.streams.standalone
        self.questions = Questions()
        self.peer = kernel.connect(
            key, self.standalone.push, partial(self.questions.ask, self.standalone.push), self.agent
        )
        self._kernel = kernel
        self._calls = calls
        self._in_flight: dict[jsonrpc.RequestId, Exchange] = {}
        self._about_to_run: set[jsonrpc.RequestId] = set()
        self._early_cancels: dict[jsonrpc.RequestId, float] = {}  # when each arrived
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def calls(self) -> int:
        """Number of requests in flight."""
        return len(self._in_flight)

    @property
    def view(self) -> View:
        """What determines the client's list of tools."""
        return View("" if self.info is None else self.info.name, self.scope)

    @property
    def connected(self) -> bool:
        """Whether any connection of the client is known to be open."""
        return self.streams.alive or any(exchange.connected() for exchange in self._in_flight.values())

    def is_present(self, now: float) -> bool:
        """Whether the client is connected, or likely to reconnect; `now` in monotonic seconds."""
        silence = RECONNECT_SECONDS if self.standalone.was_read else SILENCE_SECONDS
        return self.connected or now - self.last_heard < silence

    @property
    def disposable(self) -> bool:
        """Whether the session may be dropped to make room."""
        return not self._in_flight and not self.streams.any_open and not self.connected

    def tasks(self) -> set[asyncio.Task[Any]]:
        """Returns the tasks of the requests in flight."""
        return {exchange.task for exchange in self._in_flight.values()}

    def is_duplicate(self, request: jsonrpc.Request) -> bool:
        """Whether the id is that of a request in flight."""
        return request.id in self._in_flight or request.id in self._about_to_run

    async def answer(
        self, connected: Callable[[], bool], request: jsonrpc.Request, response: Response | None = None
    ) -> bytes:
        """Serves a request in the caller's task.

        Args:
            connected: whether the connection of the request is still open.
            request: the request.
            response: sends messages that precede the answer; None = the standalone stream does.
        """
        self.last_heard = time.monotonic()
        self._about_to_run.discard(request.id)
        cancelled = self._early_cancels.pop(request.id, None)
        if cancelled is not None and self.last_heard - cancelled < EARLY_CANCEL_SECONDS:
            return jsonrpc.dumps(jsonrpc.error(request.id, jsonrpc.REQUEST_CANCELLED, _CANCELLED["client"]))
        exchange = self._in_flight[request.id] = Exchange(self._calls, connected, request)
        try:
            push = self.standalone.push if response is None else response.push
            hang_up = None if response is None else response.hang_up
            ask = partial(self.questions.ask, push)
            dispatch = self._kernel.dispatch(request.id, request.params, push, ask, hang_up, scope=self.scope)
            return await exchange.run(self._kernel, dispatch, self.peer.request)
        finally:
            del self._in_flight[request.id]
            self.last_heard = time.monotonic()

    async def answer_batch(self, requests: list[jsonrpc.Request], response: Response) -> bytes:
        """Serves the requests of a batch concurrently."""
        self._about_to_run.update(request.id for request in requests)
        total = 0

        async def bounded(request: jsonrpc.Request) -> bytes:
            nonlocal total
            answer = await self.answer(response.connected, request, response)
            if total + len(answer) > BATCH_BYTES:
                text = f"The answers of this batch are larger than {BATCH_BYTES} bytes; split the batch"
                return jsonrpc.dumps(jsonrpc.error(request.id, jsonrpc.TOO_LARGE, text))
            total += len(answer)
            return answer

        answers = await asyncio.gather(*(bounded(request) for request in requests))
        return b"[" + b",".join(answers) + b"]"

    def on_disconnect(self, response: Response, requests: Iterable[jsonrpc.Request]) -> None:
        """Handles a closed connection: a response that has not become a stream cannot be resumed."""
        if response.outbox is None:
            for request in requests:
                if (exchange := self._in_flight.get(request.id)) is not None:
                    exchange.on_disconnect()

    def answer_later(
        self, connected: Callable[[], bool], request: jsonrpc.Request, done: Callable[[Session], None]
    ) -> None:
        """Serves a request in its own task; answers over the standalone stream, then calls `done`."""
        self._about_to_run.add(request.id)
        task = asyncio.get_running_loop().create_task(self._answer_later(connected, request, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def receive(self, message: jsonrpc.Notification | jsonrpc.Answer) -> None:
        """Handles a notification or an answer. Late cancellations and answers are ignored."""
        self.last_heard = time.monotonic()
        if isinstance(message, jsonrpc.Answer):
            self.questions.answered(message)
            return
        if message.method == "notifications/cancelled":
            id_ = (message.params or {}).get("requestId")
            # True equals 1, but is not a valid id.
            if isinstance(id_, int | str) and not isinstance(id_, bool):
                self._cancel(id_)
        if self.agent is not None and not message.method.startswith(_MCP_NOTIFICATIONS):
            if self._watcher is not None:
                self._watcher.notified(self, message.method, message.params)
            return
        await self.peer.notified(message)
        self.notify_watcher()

    def _cancel(self, id_: jsonrpc.RequestId) -> None:
        """Cancels the request, or remembers to do so when it arrives."""
        if (exchange := self._in_flight.get(id_)) is None:
            if isinstance(id_, str) and len(id_) > MAX_EARLY_ID:
                return
            if len(self._early_cancels) == MAX_EARLY_CANCELS:
                del self._early_cancels[next(iter(self._early_cancels))]
            self._early_cancels[id_] = time.monotonic()
        elif exchange.request.method != "initialize":
            exchange.cancel("client")

    def notify_watcher(self) -> None:
        """Notifies the watcher when an agent becomes reachable, and when it has left."""
        if self._watcher is None or self.agent is None:
            return
        if not self._announced and not self.closed and self.peer.initialized and self.standalone.alive:
            self._announced = True
            self._watcher.opened(self)
        elif self._announced and (self.closed or not self.is_present(time.monotonic())):
            self._announced = False
            self._watcher.left(self)

    def notify(self, method: str) -> None:
        """Sends a notification without parameters, unless the same one is still unsent."""
        if self.peer.initialized:
            self.standalone.push(jsonrpc.dumps(jsonrpc.notification(method)), key=method)

    def notify_with(self, method: str, params: bytes, *, latest: bool) -> None:
        """Sends a notification; `params` is JSON text, `latest` replaces unsent ones of the method."""
        if self.peer.initialized:
            head = jsonrpc.dumps({"jsonrpc": "2.0", "method": method})
            data = head[:-1] + b',"params":' + params + b"}"
            self.standalone.push(data, key=method if latest else None, latest=latest)

    def cancel_all(self, reason: str) -> None:
        """Cancels the requests in flight; each is answered with an error."""
        for exchange in list(self._in_flight.values()):
            exchange.cancel(reason)

    async def close(self, reason: str = "session_closed") -> None:
        """Ends the session's requests, streams and questions."""
        if self.closed:
            return
        self.closed = True
        self.notify_watcher()
        self.cancel_all(reason)
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=1.0)
        self.standalone.end()
        self.questions.cancel()
        await self.peer.close()

    async def _answer_later(
        self, connected: Callable[[], bool], request: jsonrpc.Request, done: Callable[[Session], None]
    ) -> None:
        self.standalone.push(await self.answer(connected, request))
        done(self)
