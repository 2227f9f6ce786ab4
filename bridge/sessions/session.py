"""One client of the session era: what it is, what it has asked, and the streams towards it.

Receives: its checked messages. Sends: answers as JSON text, the rest over `standalone` or a request's stream.
Does not know about: HTTP methods and headers, how session ids are made, other sessions.
Longer than others, since all of it is about what belongs to one client.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .. import jsonrpc
from ..model import MAX_CLIENT_NAME, Scope, View
from ..protocol.exchange import Exchange
from .outbox import EventIds, Outbox

if TYPE_CHECKING:
    from ..calls.runner import Calls
    from ..protocol.dispatch import Push
    from ..protocol.kernel import Kernel

RECONNECT_SECONDS = 5.0
"""A client that had a stream of its own and has none has left, unless it comes back within that."""

SILENCE_SECONDS = 60.0
"""One that never had any may be idle for long; nobody can tell whether it is."""

KEPT_STREAMS = 16
"""Ended response streams that a client may still ask for after it lost its connection."""

KEPT_BYTES = 16 * 1024 * 1024
"""All of them together, but for the newest: room for one result of the largest size and its stream."""

BATCH_BYTES = 16 * 1024 * 1024
"""All answers of a batch together: one of the largest size, and many small ones."""

KEPT_SECONDS = 300.0
"""As long as the editor keeps a result that nobody fetched."""

Transport = Literal["http", "sse", "websocket"]

ENDS_WITH_STREAM: frozenset[Transport] = frozenset({"sse", "websocket"})
"""Transports whose sessions are their one connection."""

MAX_NOTICE = 64 * 1024
"""Bytes of a notification that MCP does not know; the editor is not told of a longer one."""

_MCP_NOTIFICATIONS = "notifications/"


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One connected client, as the dashboard shows it."""

    name: str
    version: str
    transport: str


class Response(Protocol):
    """Where the answer to a message goes, and what comes before it.

    Attributes:
        outbox: of the stream that it became; None while nothing was pushed.
    """

    outbox: Outbox | None

    def connected(self) -> bool:
        """Does the connection still stand?"""

    def push(self, data: bytes, *, droppable: bool = False) -> None:
        """Sends a message before the answer."""

    def hang_up(self) -> None:
        """Ends it before the answer; the client resumes for the rest."""


class Watcher(Protocol):
    """Hears of the agents of companions; every method returns at once."""

    def opened(self, session: Session) -> None:
        """It is initialized, and can be told things."""

    def notified(self, session: Session, method: str, params: Mapping[str, Any] | None) -> None:
        """It says something that MCP does not know."""

    def left(self, session: Session) -> None:
        """It was there, and is gone."""


class Session:
    """See the head of this file.

    Args:
        kernel: serves its requests.
        calls: told why a request was cancelled.
        key: names the session to tools; not the id that the client sends.
        transport: streamable HTTP, whose streams are resumable; or the one connection that it is.
        ids: of events.
        scope: what it asked to be shown of the tools when it began.
        watcher: of a companion's session.
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
    ) -> None:
        self.key = key
        self.scope = scope
        self._watcher = watcher
        self._told = False
        self.transport: Transport = transport
        self.id = key  # until it is sealed
        self.sealed_at: int | None = None
        self.info: SessionInfo | None = None
        self.closed = False
        self.last_heard = time.monotonic()
        self.standalone = Outbox(ids)
        self.peer = kernel.connect(
            key, self.standalone.push, partial(self._ask, self.standalone.push), self.companion
        )
        self._kernel = kernel
        self._calls = calls
        self._ids = ids
        self._in_flight: dict[jsonrpc.RequestId, Exchange] = {}
        self._about_to_run: set[jsonrpc.RequestId] = set()
        self._streams: deque[tuple[float, Outbox]] = deque(maxlen=KEPT_STREAMS)
        self._open: set[Response] = set()
        self._asked: dict[str, asyncio.Future[jsonrpc.Answer]] = {}
        self._ask_ids = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def companion(self) -> str | None:
        """To whose endpoint it came; None for every other client."""
        return None if self.scope is None else self.scope.companion

    @property
    def calls(self) -> int:
        """Requests in flight."""
        return len(self._in_flight)

    @property
    def view(self) -> View:
        """By what its list of tools may differ from that of others."""
        return View("" if self.info is None else self.info.name[:MAX_CLIENT_NAME], self.scope)

    @property
    def connected(self) -> bool:
        """Whether any connection of the client is known to stand."""
        return (
            self.standalone.alive
            or any(exchange.connected() for exchange in self._in_flight.values())
            or any(stream.alive for stream in self._open_streams())
        )

    def is_there(self, now: float) -> bool:
        """Whether its client is taken to be there; `now` in monotonic seconds."""
        silence = RECONNECT_SECONDS if self.standalone.was_read else SILENCE_SECONDS
        return self.connected or now - self.last_heard < silence

    @property
    def disposable(self) -> bool:
        """Whether it may give way to another session."""
        return not self._in_flight and not self._open and not self.connected

    def tasks(self) -> set[asyncio.Task[Any]]:
        """The tasks of the requests in flight."""
        return {exchange.task for exchange in self._in_flight.values()}

    # What the client sends

    def is_duplicate(self, request: jsonrpc.Request) -> bool:
        """Whether the id is that of a request in flight."""
        return request.id in self._in_flight or request.id in self._about_to_run

    async def answer(
        self, connected: Callable[[], bool], request: jsonrpc.Request, response: Response | None = None
    ) -> bytes:
        """Serves a request in the caller's task.

        Args:
            connected: does the connection that it came by still stand?
            request: what to serve.
            response: takes what is sent before the answer; without it that goes over the standalone stream.
        """
        self.last_heard = time.monotonic()
        self._about_to_run.discard(request.id)
        exchange = self._in_flight[request.id] = Exchange(self._calls, connected, request)
        try:
            push = self.standalone.push if response is None else response.push
            hang_up = None if response is None else response.hang_up
            ask = partial(self._ask, push)
            dispatch = self._kernel.dispatch(
                request.id, request.params, push, ask, hang_up, within=self.scope
            )
            return await exchange.run(self._kernel, dispatch, lambda d: self.peer.request(d, request))
        finally:
            del self._in_flight[request.id]
            self.last_heard = time.monotonic()

    async def answer_batch(self, requests: list[jsonrpc.Request], response: Response) -> bytes:
        """Serves the requests of a batch, side by side."""
        self._about_to_run.update(request.id for request in requests)
        total = 0

        async def bounded(request: jsonrpc.Request) -> bytes:
            nonlocal total
            answer = await self.answer(response.connected, request, response)
            if total + len(answer) > BATCH_BYTES:
                text = f"The answers of this batch have more than {BATCH_BYTES} bytes; send it in parts"
                return jsonrpc.dumps(jsonrpc.error(request.id, jsonrpc.TOO_LARGE, text))
            total += len(answer)
            return answer

        answers = await asyncio.gather(*(bounded(request) for request in requests))
        return b"[" + b",".join(answers) + b"]"

    def responding(self, response: Response) -> None:
        """A response is being made and written."""
        self._open.add(response)

    def responded(self, response: Response) -> None:
        """It is made, or never will be; what it streamed can be asked for from now on."""
        self._open.discard(response)
        if response.outbox is not None:
            self._keep(response.outbox)

    def lose(self, response: Response, requests: Iterable[jsonrpc.Request]) -> None:
        """The connection of a response is gone. One that has not become a stream cannot be resumed."""
        if response.outbox is None:
            for request in requests:
                if (exchange := self._in_flight.get(request.id)) is not None:
                    exchange.lose()

    def answer_later(
        self, connected: Callable[[], bool], request: jsonrpc.Request, done: Callable[[Session], None]
    ) -> None:
        """Serves a request in a task of its own; answers over the standalone stream, then tells `done`."""
        self._about_to_run.add(request.id)
        task = asyncio.get_running_loop().create_task(self._answer_later(connected, request, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def receive(self, message: jsonrpc.Notification | jsonrpc.Answer) -> None:
        """Takes what needs no answer. Cancels and answers that come too late are normal and ignored."""
        self.last_heard = time.monotonic()
        if isinstance(message, jsonrpc.Answer):
            asked = self._asked.get(str(message.id))  # some clients answer a number's id with its text
            if asked is not None and not asked.done():
                asked.set_result(message)
            return
        if message.method == "notifications/cancelled":
            id_ = (message.params or {}).get("requestId")
            exchange = self._in_flight.get(id_) if isinstance(id_, int | str) else None
            if exchange is not None and exchange.request.method != "initialize":
                exchange.cancel("client")
        if self.companion is not None and not message.method.startswith(_MCP_NOTIFICATIONS):
            if self._watcher is not None:
                self._watcher.notified(self, message.method, message.params)
            return
        await self.peer.notified(message)
        self.look()

    def look(self) -> None:
        """Tells the watcher once it is initialized and its stream stands, and once it is gone for good."""
        if self._watcher is None or self.companion is None:
            return
        if not self._told and not self.closed and self.peer.initialized and self.standalone.alive:
            self._told = True
            self._watcher.opened(self)
        elif self._told and (self.closed or not self.is_there(time.monotonic())):
            self._told = False
            self._watcher.left(self)

    # What is sent to the client

    def notify(self, method: str) -> None:
        """A notification without parameters; while it still waits to be read, a second one is superfluous."""
        if self.peer.initialized:
            self.standalone.push(jsonrpc.dumps(jsonrpc.notification(method)), key=method)

    def tell(self, method: str, params: bytes, *, latest: bool) -> None:
        """A notification with parameters as JSON text; `latest`: in place of those that wait to be read."""
        if self.peer.initialized:
            head = jsonrpc.dumps({"jsonrpc": "2.0", "method": method})
            data = head[:-1] + b',"params":' + params + b"}"
            self.standalone.push(data, key=method if latest else None, latest=latest)

    async def _ask(
        self, push: Push, method: str, params: Mapping[str, Any] | None, seconds: float | None
    ) -> jsonrpc.Answer:
        """Asks the client over a stream's `push`; waits at most `seconds`.

        Raises:
            TimeoutError: the client did not answer in time.
        """
        id_ = next(self._ask_ids)
        asked: asyncio.Future[jsonrpc.Answer] = asyncio.get_running_loop().create_future()
        self._asked[str(id_)] = asked
        push(jsonrpc.dumps(jsonrpc.request(id_, method, params)))
        try:
            async with asyncio.timeout(seconds):
                return await asked
        except (asyncio.CancelledError, TimeoutError):
            push(jsonrpc.dumps(jsonrpc.notification("notifications/cancelled", {"requestId": id_})))
            raise
        finally:
            del self._asked[str(id_)]

    @property
    def asked(self) -> bool:
        """Whether the client was asked for something that it has not answered."""
        return bool(self._asked)

    def lose_answer(self, limit: int) -> None:
        """The client sent more than `limit` bytes. When one answer is waited for, that was it, unread."""
        if len(self._asked) != 1:
            return  # which one it was is unknown; they have a deadline
        id_, asked = next(iter(self._asked.items()))
        if not asked.done():
            text = f"its answer is larger than {limit} bytes"
            asked.set_result(jsonrpc.Answer(id_, error={"code": jsonrpc.TOO_LARGE, "message": text}))

    def resumable(self, number: int) -> Outbox | None:
        """The stream that an event was sent on, if it still can be taken up after it."""
        ended = (stream for _, stream in self._streams)
        for stream in (self.standalone, *self._open_streams(), *ended):
            if stream.knows(number):
                return stream
        return None

    @property
    def kept_bytes(self) -> int:
        """What ended streams hold for a client that may ask for them."""
        return sum(stream.size for _, stream in self._streams)

    @property
    def held_bytes(self) -> int:
        """What all its streams hold, ended or not."""
        open_ = self.standalone.size + sum(stream.size for stream in self._open_streams())
        return open_ + self.kept_bytes

    @property
    def kept_since(self) -> float:
        """When the oldest of them ended, in monotonic seconds."""
        return self._streams[0][0] if self._streams else math.inf

    def forget_oldest(self) -> None:
        """Lets go of the oldest of them."""
        self._streams.popleft()

    # Its end

    def tidy(self, now: float) -> None:
        """Lets go of dead connections and of streams that nobody fetched; `now` in monotonic seconds."""
        self.standalone.release()
        for stream in self._open_streams():
            stream.release()
        while self._streams and now - self._streams[0][0] > KEPT_SECONDS:
            self._streams.popleft()

    def cancel_all(self, reason: str) -> None:
        """Cancels the requests in flight; they are answered."""
        for exchange in list(self._in_flight.values()):
            exchange.cancel(reason)

    def let_go(self) -> None:
        """Lets go of all who read; what they wait for is not answered."""
        self.standalone.hang_up()
        for response in self._open:
            response.hang_up()

    async def close(self, reason: str = "session_closed") -> None:
        """Ends everything that belongs to the session."""
        if self.closed:
            return
        self.closed = True
        self.look()
        self.cancel_all(reason)
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=1.0)
        self.standalone.end()
        for asked in self._asked.values():
            asked.cancel()
        await self.peer.close()

    def _open_streams(self) -> list[Outbox]:
        return [response.outbox for response in self._open if response.outbox is not None]

    def _keep(self, stream: Outbox) -> None:
        self._streams.append((time.monotonic(), stream))
        while len(self._streams) > 1 and self.kept_bytes > KEPT_BYTES:
            self._streams.popleft()

    async def _answer_later(
        self, connected: Callable[[], bool], request: jsonrpc.Request, done: Callable[[Session], None]
    ) -> None:
        self.standalone.push(await self.answer(connected, request))
        done(self)
