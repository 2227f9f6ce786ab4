"""The pump: relays lines of JSON-RPC to the bridge's endpoint, and what the bridge sends to the client.

The client's session outlives the editor. After a restart of the bridge it continues; with another editor it
is opened again with the client's own `initialize`. While no editor can be reached the client is served by
`offline.py`, and it is notified that its lists changed when an editor appears or goes away. A request is sent
once; if its answer breaks off, the client gets an error, since the tool may have run. Lists are asked for
again.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import offline
from .endpoint import OK, SESSION, VERSION, BrokenError, Endpoint, Missing, Reply, UnreachableError

LAST_EVENT = "Last-Event-ID"

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603

LOOK_SECONDS = 0.25
"""First pause before the stream is opened again or an editor is looked for again; doubled each time."""

MAX_LOOK_SECONDS = 10.0
"""Longest such pause. A request of the client ends it."""

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
UNKNOWN_SESSION = 404
UNCERTAIN = "whether the request was carried out is unknown"

CHANGED = ("tools", "resources", "prompts")
"""What may be different in another editor."""


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
    stream: Reply | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Of every request in it."""
        known = {SESSION: self.id, VERSION: self.version}
        return {name: value for name, value in known.items() if value is not None}

    def abort_stream(self) -> None:
        """Ends the stream that is read, if there is one."""
        stream = self.stream
        if stream is not None:
            stream.abort()


class Pump:
    """Relays the messages of one client.

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
        self._missing: Missing | None = None  # why no editor could be reached when last looked for
        self._missed_at = 0.0
        self._first_line: bytes | None = None
        self._follower: threading.Thread | None = None
        self._wake = threading.Event()
        self._unsent: dict[str, threading.Event] = {}  # by request id, until the request was sent
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
            self._first_line = line
            self._in_thread(lambda: self._initialize(line, message), asked)
        elif asked:
            sent = threading.Event()
            self._unsent |= {_key(id_): sent for id_ in asked}
            self._in_thread(lambda: self._ask(line, message, asked, sent), asked)
        elif (unsent := self._unsent.get(_cancelled(message))) is not None:
            # The request is sent by another thread, and the bridge ignores a cancel that comes before it.
            threading.Thread(target=self._notify, args=(line, unsent), daemon=True).start()
        else:
            self._notify(line)

    def finish(self, goes_on: Callable[[], bool]) -> None:
        """Waits for what is in flight, while it `goes_on`."""
        with self._state:
            while self._busy and goes_on():
                self._state.wait(LOOK_SECONDS)

    def close(self) -> None:
        """The client is gone: so is its session, with what is in flight."""
        self.ended = True
        self._wake.set()
        session, self._session = self._session, None
        if session is not None and session.id is not None:
            session.endpoint.delete(session.headers, GOODBYE_SECONDS)

    # Messages

    def _initialize(self, line: bytes, message: dict[str, Any]) -> None:
        with self._opening:
            found = self._find_starting()
            answer = found if isinstance(found, Missing) else self._open(found, line)
            if isinstance(answer, Missing):
                self._missing, self._missed_at = answer, time.monotonic()
                self._replace(None)
                answer = _response(message["id"], offline.initialize(message.get("params")))
            self._write_line(answer)
            if self._follower is None:
                self._follower = threading.Thread(target=self._follow_stream, daemon=True)
                self._follower.start()

    def _replace(self, session: Session | None) -> None:
        before, self._session = self._session, session
        if before is not None:
            before.abort_stream()
        if session is not None:
            self._wake.set()

    def _open(self, endpoint: Endpoint, line: bytes) -> bytes | Missing:
        """Opens a session; returns the answer to `initialize`."""
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
                self._write_line(message)
        if answer is None:
            return Missing(f"The editor's bridge refused to begin: HTTP {reply.status}{_detail(messages)}")
        try:
            version = json.loads(answer)["result"]["protocolVersion"]
        except (TypeError, KeyError):
            return answer  # it refuses; the client is told how
        self._missing = None
        self._replace(Session(endpoint, id_, version))
        return answer

    def _ask(self, line: bytes, message: Any, asked: list[Any], sent: threading.Event) -> None:
        """Answers each of the requests in a line once, whatever happens."""
        self._wake.set()
        try:
            if self._first_line is None:
                self._fail_all(asked, "Send initialize first")
            elif offline.is_status_call(message):
                self._write_line(_response(message["id"], offline.status(self._reason())))
            else:
                self._relay(line, message, asked, sent)
        finally:
            for id_ in asked:
                self._unsent.pop(_key(id_), None)
            sent.set()

    def _reason(self) -> str | None:
        """Why no editor can be reached now; None = one can."""
        session = self._session
        if session is not None and self._missing is None and session.endpoint.is_ours():
            return None
        found = self._reopen(session, wait=False)
        return found.text if isinstance(found, Missing) else None

    def _relay(self, line: bytes, message: Any, asked: list[Any], sent: threading.Event) -> None:
        session, known = self._session, True
        for _ in range(TRIES):
            if session is None or not known:
                found = self._reopen(session, known=known, wait=self._missing is None)
                if isinstance(found, Missing):
                    return self._answer_offline(message, found)
                session = found
            try:
                with session.endpoint.post(line, session.headers, sent=sent.set) as reply:
                    if reply.status != UNKNOWN_SESSION:
                        return self._answer(session, reply, asked)
                    reply.text()
                    known = False
            except (UnreachableError, BrokenError) as fault:
                if isinstance(fault, BrokenError) and not _is_repeatable(message):
                    return self._fail_all(asked, f"The connection to the editor broke; {UNCERTAIN}")
                found = self._reopen(session, wait=self._missing is None)
                if isinstance(found, Missing):
                    return self._answer_offline(message, found)
                session = found
        return self._fail_all(asked, "The editor's bridge cannot be kept; see :McpTools log")

    def _answer_offline(self, message: Any, missing: Missing) -> None:
        for one in message if isinstance(message, list) else [message]:
            if _ids(one):
                result = offline.result(one["method"])
                if result is None:
                    self._fail(one["id"], INTERNAL_ERROR, missing.text)
                else:
                    self._write_line(_response(one["id"], result))

    def _answer(self, session: Session, reply: Reply, asked: list[Any]) -> None:
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

    def _hand_on(self, reply: Reply, open_: set[str], status: int) -> None:
        """Until it ends; what is answered is no longer `open_`."""
        try:
            for message in reply.messages():
                answered = _answered(message)
                if status < 400 or answered & open_:  # else it is told by who asked
                    self._write_line(message)
                open_ -= answered
        except BrokenError:
            pass

    def _resume(self, session: Session, last: str) -> Reply | None:
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

    def _notify(self, line: bytes, after: threading.Event | None = None) -> None:
        """Sends a notification or an answer of the client; nobody waits for what comes of it.

        Args:
            line: the message.
            after: is awaited first.
        """
        if after is not None:
            after.wait(TELL_SECONDS)
        session = self._session
        if session is None:
            return
        try:
            with session.endpoint.post(line, session.headers, TELL_SECONDS) as reply:
                reply.text()
        except OSError:
            pass  # with the bridge went whoever wanted to know

    # Sessions

    def _reopen(self, gone: Session | None, *, known: bool = True, wait: bool = True) -> Session | Missing:
        """Returns a session in place of one that could not be reached; the first caller opens it for all.

        Args:
            gone: the session that could not be reached.
            known: whether the bridge may still know that session.
            wait: for an editor whose bridge may be about to start.
        """
        asked_at = time.monotonic()
        with self._opening:
            if self._missing is not None and self._missed_at > asked_at:
                return self._missing  # another thread has looked meanwhile
            before, was_missing = self._session, self._missing is not None
            if before is not None and before is not gone and not was_missing:
                return before
            now = self._look(before, known=known, wait=wait)
            is_missing = isinstance(now, Missing)
            self._missing = now if isinstance(now, Missing) else None
            self._missed_at = time.monotonic()
            if is_missing and before is not None:
                before.abort_stream()
            if is_missing != was_missing or (now is not before and not is_missing):
                for kind in CHANGED:
                    self._write_line(_notification(f"notifications/{kind}/list_changed"))
            return now

    def _look(self, before: Session | None, *, known: bool, wait: bool) -> Session | Missing:
        found = self._find_starting() if wait else self._find()
        if isinstance(found, Missing) or self._first_line is None:
            return found if isinstance(found, Missing) else Missing("Send initialize first")
        if before is not None and known and found == before.endpoint:
            return before  # a restarted bridge knows the session
        answer = self._open(found, self._first_line)
        if isinstance(answer, Missing):
            return answer
        opened = self._session
        if opened is None or opened is before:
            return Missing("The editor refuses what this client began with; start the client anew")
        self._notify(_notification("notifications/initialized"))
        return opened

    def _find_starting(self) -> Endpoint | Missing:
        """The bridge, also one that is just being started."""
        deadline = time.monotonic() + RESTART_SECONDS
        while True:
            found = self._find()
            if not isinstance(found, Missing) or not found.soon or self.ended:
                return found
            if time.monotonic() > deadline:
                return found
            time.sleep(LOOK_SECONDS)

    def _follow_stream(self) -> None:
        """Reads the session's stream; while there is none, looks for an editor, less and less often."""
        session: Session | None = None
        last: str | None = None
        pause, silent_since = LOOK_SECONDS, time.monotonic()
        while not self.ended:
            if self._wake.wait(pause):
                self._wake.clear()
                pause = LOOK_SECONDS
            if session is not self._session:
                session, last = self._session, None
            try:
                status = 0
                if session is not None and self._missing is None:
                    status, last = self._listen(session, last)
                if status == OK:
                    pause, silent_since = LOOK_SECONDS, time.monotonic()
                    continue
                pause = min(2 * pause, MAX_LOOK_SECONDS)
                if status == UNKNOWN_SESSION:
                    self._reopen(session, known=False, wait=False)
                elif status == 0 and (self._missing or self._is_gone(silent_since)):
                    self._reopen(session, wait=False)
            except Exception:  # noqa: BLE001 - boundary: it is logged, and tried again
                traceback.print_exc()

    def _listen(self, session: Session, last: str | None) -> tuple[int, str | None]:
        """Relays the messages that belong to no request, until the stream ends.

        Returns:
            The HTTP status, 0 if there was no answer; the id of the last event.
        """
        status = 0
        try:
            more = {} if last is None else {LAST_EVENT: last}
            with session.endpoint.get({**session.headers, **more}) as reply:
                session.stream, status = reply, reply.status
                if status == OK and session is self._session:
                    for message in reply.messages():
                        self._write_line(message)
                        last = reply.last_event or last
        except OSError:
            pass
        finally:
            session.stream = None
        return status, last

    def _is_gone(self, silent_since: float) -> bool:
        """Whether the editor does not come back: its bridge may be restarting, also beside another editor."""
        if time.monotonic() - silent_since > RESTART_SECONDS:
            return True
        found = self._find()
        return isinstance(found, Missing) and not found.soon

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
        self._write_line(
            json.dumps({"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": text}}).encode()
        )

    def _write_line(self, line: bytes) -> None:
        with self._writing:
            self._write(line)


def _is_repeatable(message: Any) -> bool:
    """Returns whether a request changes nothing: an editor that ends may break the answer to a list."""
    return isinstance(message, dict) and offline.result(message.get("method")) is not None


def _ids(message: Any) -> list[Any]:
    """The ids that somebody waits for: of a request, or of those of a batch."""
    each = message if isinstance(message, list) else [message]
    return [one["id"] for one in each if isinstance(one, dict) and "method" in one and "id" in one]


def _cancelled(message: Any) -> str:
    """The key of the request that a message cancels; empty for any other message."""
    if not isinstance(message, dict) or message.get("method") != "notifications/cancelled":
        return ""
    params = message.get("params")
    return _key(params["requestId"]) if isinstance(params, dict) and "requestId" in params else ""


def _response(id_: Any, result: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode()


def _detail(messages: list[bytes]) -> str:
    """The message of an error that was answered, to end a sentence with."""
    for line in messages:
        try:
            return f": {json.loads(line)['error']['message']}"
        except (ValueError, TypeError, KeyError):
            continue
    return ""


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
