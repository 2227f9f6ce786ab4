"""The pump: lines of JSON-RPC on one side, the bridge's endpoint on the other.

Receives: lines of a client; what the bridge answers and streams. Sends: each to the other side.
Does not know about: tools; of the messages no more than who waits for an answer, and `initialize`.

The client's session outlives the editor: when the bridge is restarted it goes on with it, and when it is
another one it begins anew there with what the client said when it began. A request is sent once; one whose
answer breaks off is told that, since its tool may have run.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .endpoint import OK, BrokenError, Endpoint, UnreachableError

SESSION = "Mcp-Session-Id"
LAST_EVENT = "Last-Event-ID"
VERSION = "MCP-Protocol-Version"

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603

LOOK_SECONDS = 0.25
"""Between looks for a bridge while there is none, and before a stream is opened again."""

FORGOTTEN_SECONDS = 30.0
"""At most between tries to begin anew while nobody asks for anything."""

RESTART_SECONDS = 5.0
"""For a bridge that ends and starts again; it takes about one."""

GOODBYE_SECONDS = 2.0
"""At the end, for the session."""

OPEN_SECONDS = 30.0
"""For the answer to `initialize`: an editor that is busy, and a bridge that has yet to load."""

TELL_SECONDS = 10.0
"""For a notification to be taken; whoever sends it waits with all that comes after it."""

THREADS = 64
"""Requests at a time, each in a thread of its own; more than agents make. The next wait."""

TRIES = 3
UNKNOWN_SESSION, NO_STREAM = 404, 405
UNCERTAIN = "whether the request was carried out is unknown"

CHANGED = ("tools", "resources", "prompts")
"""What may be different in another editor."""


class Missing(NamedTuple):
    """There is no bridge to talk to.

    Attributes:
        text: why, and what to do.
        soon: an editor is there, and its bridge may be about to start.
    """

    text: str
    soon: bool = False


Find = Callable[[], Endpoint | Missing]
"""Finds the bridge, anew each time, and lets it prove who it is; it may wait for one."""


@dataclass
class Session:
    """What one bridge knows the client by.

    Attributes:
        version: of the protocol, as negotiated; None = not known to be any.
    """

    endpoint: Endpoint
    id: str | None
    version: str | None
    stream: Any = None
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def headers(self) -> dict[str, str]:
        """Of every request in it."""
        known = {SESSION: self.id, VERSION: self.version}
        return {name: value for name, value in known.items() if value is not None}


class Pump:
    """See the head of this file.

    Args:
        find: the bridge.
        write: takes a line for the client, without its end; from any thread, one at a time.
    """

    def __init__(self, find: Find, write: Callable[[bytes], None]) -> None:
        self._find = find
        self._write = write
        self._writing = threading.Lock()
        self._opening = threading.Lock()
        self._session: Session | None = None
        self._begun: bytes | None = None
        self._jobs: queue.SimpleQueue[tuple[Callable[[], None], list[Any]]] = queue.SimpleQueue()
        self._state = threading.Condition()
        self._threads = 0
        self._busy = 0
        self.ended = False

    def take(self, line: bytes) -> None:
        """One line of the client."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, PARSE_ERROR, "Parse error: a line must be one JSON-RPC message")
            return
        asked = _ids(message)
        if isinstance(message, dict) and message.get("method") == "initialize" and asked:
            self._begun = line
            self._in_thread(lambda: self._initialize(line, message["id"]), asked)
        elif asked:
            self._in_thread(lambda: self._ask(line, asked), asked)
        else:
            self._tell(line)

    def finish(self, goes_on: Callable[[], bool]) -> None:
        """Waits for what is in flight, while it `goes_on`."""
        with self._state:
            while self._busy and goes_on():
                self._state.wait(LOOK_SECONDS)

    def close(self) -> None:
        """The client is gone: so is its session, with what is in flight."""
        self.ended = True
        session, self._session = self._session, None
        if session is not None:
            session.over.set()
            if session.id is not None:
                session.endpoint.delete(session.headers, GOODBYE_SECONDS)

    # Messages

    def _initialize(self, line: bytes, id_: Any) -> None:
        with self._opening:
            found = self._found()
            answer = found if isinstance(found, Missing) else self._open(found, line)
        if isinstance(answer, Missing):
            self._fail(id_, INTERNAL_ERROR, answer.text)
        else:
            self._put(answer)

    def _open(self, endpoint: Endpoint, line: bytes) -> bytes | Missing:
        """Begins a session; its answer to `initialize`."""
        try:
            with endpoint.post(line, seconds=OPEN_SECONDS) as reply:
                messages = list(reply.messages())
                id_ = reply.header(SESSION)
        except OSError as error:
            return Missing(f"The editor cannot be reached: {error}")
        answer, asked = None, _key(json.loads(line)["id"])
        for message in messages:
            if asked in _answered(message):
                answer = message
            elif reply.status < 400:
                self._put(message)
        if answer is None:
            return Missing(f"The editor's bridge refused to begin: HTTP {reply.status}")
        try:
            version = json.loads(answer)["result"]["protocolVersion"]
        except (TypeError, KeyError):
            return answer  # it refuses; the client is told how
        before, self._session = self._session, Session(endpoint, id_, version)
        if before is not None:
            before.over.set()
            if before.stream is not None:
                before.stream.abort()
        threading.Thread(target=self._listen, args=(self._session,), daemon=True).start()
        return answer

    def _ask(self, line: bytes, asked: list[Any]) -> None:
        """Requests: each is answered once, whatever happens."""
        session, known = self._session, True
        for _ in range(TRIES):
            if session is None or not known:
                found = self._again(session, known=known)
                if isinstance(found, Missing):
                    return self._fail_all(asked, found.text)
                session = found
            try:
                with session.endpoint.post(line, session.headers) as reply:
                    if reply.status != UNKNOWN_SESSION:
                        return self._answer(session, reply, asked)
                    reply.text()
                    known = False
            except UnreachableError:
                found = self._again(session)
                if isinstance(found, Missing):
                    return self._fail_all(asked, found.text)
                session = found
            except BrokenError:
                return self._fail_all(asked, f"The connection to the editor broke; {UNCERTAIN}")
        return self._fail_all(asked, "The editor's bridge cannot be kept; see :McpTools log")

    def _answer(self, session: Session, reply: Any, asked: list[Any]) -> None:
        """Hands on what an answer holds; takes a stream up again that ends before the answer."""
        open_, status = set(map(_key, asked)), reply.status
        self._hand_on(reply, open_, status)
        last = reply.last_event
        while open_ and last is not None and not self.ended:
            resumed = self._resume(session, last)
            if resumed is None:
                break
            with resumed:
                self._hand_on(resumed, open_, status)
            last = resumed.last_event or last
        if not open_:
            return
        left = [id_ for id_ in asked if _key(id_) in open_]
        if status >= 400:
            text = f"The editor's bridge refused the request: HTTP {status}"
        else:
            text = f"The editor's bridge ended before it answered; {UNCERTAIN}"
        self._fail_all(left, text)

    def _hand_on(self, reply: Any, open_: set[str], status: int) -> None:
        """Until it ends; what is answered is no longer `open_`."""
        try:
            for message in reply.messages():
                answered = _answered(message)
                if status < 400 or answered & open_:  # else it is told by who asked
                    self._put(message)
                open_ -= answered
        except BrokenError:
            pass

    def _resume(self, session: Session, last: str) -> Any:
        deadline = time.monotonic() + RESTART_SECONDS
        while time.monotonic() < deadline and not self.ended:
            try:
                reply = session.endpoint.get({**session.headers, LAST_EVENT: last})
            except OSError:
                time.sleep(LOOK_SECONDS)
                continue
            if reply.status == OK:
                return reply
            reply.__exit__(OSError, None, None)
            return None
        return None

    def _tell(self, line: bytes) -> None:
        """Notifications, and answers of the client: nobody waits for what comes of them."""
        session = self._session
        if session is None:
            return
        try:
            with session.endpoint.post(line, session.headers, TELL_SECONDS) as reply:
                reply.text()
        except OSError:
            pass  # with the bridge went whoever wanted to know

    # Sessions

    def _again(self, gone: Session | None, *, known: bool = True) -> Session | Missing:
        """A session in place of one that could not be reached, or that is not `known` there any more.

        Whoever comes first opens it; the others take that.
        """
        with self._opening:
            now = self._session
            if now is not None and now is not gone:
                return now
            if self._begun is None:
                return Missing("Send initialize first")
            found = self._found()
            if isinstance(found, Missing):
                return found
            if now is not None and known and found == now.endpoint:
                return now  # restarted, it knows the session
            answer = self._open(found, self._begun)
            opened = self._session
            if isinstance(answer, Missing):
                return answer
            if opened is None or opened is now:
                return Missing("The editor refuses what this client began with; start the client anew")
            self._tell(_notification("notifications/initialized"))
            for kind in CHANGED:
                self._put(_notification(f"notifications/{kind}/list_changed"))
            return opened

    def _found(self) -> Endpoint | Missing:
        """The bridge, also one that is just being started."""
        deadline = time.monotonic() + RESTART_SECONDS
        while True:
            found = self._find()
            if not isinstance(found, Missing) or not found.soon or self.ended:
                return found
            if time.monotonic() > deadline:
                return found
            time.sleep(LOOK_SECONDS)

    def _listen(self, session: Session) -> None:
        """Hands on what belongs to no request, as long as the session is the present one."""
        last: str | None = None
        known, pause = False, LOOK_SECONDS
        while not (session.over.is_set() or self.ended):
            status = 0
            try:
                more = {} if last is None else {LAST_EVENT: last}
                with session.endpoint.get({**session.headers, **more}) as reply:
                    session.stream, status = reply, reply.status
                    if status == OK:
                        known, pause = True, LOOK_SECONDS
                        for message in reply.messages():
                            self._put(message)
                            last = reply.last_event
            except OSError:
                pass
            finally:
                session.stream = None
            if status == NO_STREAM or (status == UNKNOWN_SESSION and not known):
                return
            if status == UNKNOWN_SESSION:
                self._again(session, known=False)  # then this one is over
                pause = min(2 * pause, FORGOTTEN_SECONDS)
            session.over.wait(pause)

    # Threads and lines

    def _in_thread(self, job: Callable[[], None], asked: list[Any]) -> None:
        with self._state:
            self._busy += 1
            if self._busy > self._threads and self._threads < THREADS:
                self._threads += 1
                threading.Thread(target=self._work, daemon=True).start()
        self._jobs.put((job, asked))

    def _work(self) -> None:
        while True:
            job, asked = self._jobs.get()
            try:
                job()
            except Exception:  # noqa: BLE001 - boundary: it is told, and the thread serves the next
                traceback.print_exc()
                self._fail_all(asked, f"mcp-tools has failed, see what it prints; {UNCERTAIN}")
            finally:
                del job, asked
                with self._state:
                    self._busy -= 1
                    self._state.notify_all()

    def _fail_all(self, asked: list[Any], text: str) -> None:
        for id_ in asked:
            self._fail(id_, INTERNAL_ERROR, text)

    def _fail(self, id_: Any, code: int, text: str) -> None:
        self._put(
            json.dumps({"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": text}}).encode()
        )

    def _put(self, line: bytes) -> None:
        with self._writing:
            self._write(line)


def _ids(message: Any) -> list[Any]:
    """The ids that somebody waits for: of a request, or of those of a batch."""
    each = message if isinstance(message, list) else [message]
    return [one["id"] for one in each if isinstance(one, dict) and "method" in one and "id" in one]


def _key(id_: Any) -> str:
    return json.dumps(id_)


def _answered(line: bytes) -> set[str]:
    try:
        message = json.loads(line)
    except ValueError:
        return set()
    each = message if isinstance(message, list) else [message]
    return {_key(one["id"]) for one in each if isinstance(one, dict) and "id" in one and "method" not in one}


def _notification(method: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method}).encode()
