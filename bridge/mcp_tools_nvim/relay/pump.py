"""The pump: relays lines of JSON-RPC from the client to the bridge, and its messages back.

The client's session outlives Neovim. After a restart of the bridge it continues; with another Neovim it is
opened again with the client's `initialize`. While no Neovim can be reached, `offline.py` serves the client,
which is notified of changed lists when one appears or exits. A request is sent once; if its answer breaks
off, the client gets an error, since the tool may have run. Only lists are requested again.

A client of the stateless era sends no `initialize`: the relay does it. The session is then only the client's
identity; its requests and their cancellation are those of `stateless.py`.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from . import offline, stateless
from .bridge_client import (
    OK,
    SESSION,
    BridgeClient,
    BrokenError,
    Flight,
    HttpReply,
    Missing,
    RelaySession,
    UnreachableError,
)

LAST_EVENT = "Last-Event-ID"

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603

RETRY_SECONDS = 0.25
"""First pause before the stream is opened or Neovim is searched again; doubled each time."""

MAX_RETRY_SECONDS = 10.0
"""Longest such pause. A request of the client ends it."""

RESTART_SECONDS = 5.0
"""Maximum time for a restart of the bridge, which takes about a second."""

SESSION_END_SECONDS = 2.0
"""Timeout of ending the session at exit."""

OPEN_SECONDS = 30.0
"""Timeout of `initialize`: Neovim may be busy, and the bridge may have to import the SDK."""

NOTIFY_SECONDS = 10.0
"""Timeout of a notification, for which later messages of the client wait."""

THREADS = 64
"""Maximum concurrent requests, each in its own thread; more are queued."""

MAX_ATTEMPTS = 3
UNKNOWN_SESSION, GONE, ENDING = 404, 410, 503
MAY_HAVE_RUN = "whether the request was carried out is unknown"

CHANGED = ("tools", "resources", "prompts")
"""Lists that differ between Neovims."""


FindBridge = Callable[[], BridgeClient | Missing]
"""Finds the bridge and verifies its proof of the token; may wait for one."""


class Pump:
    """Relays the messages of one client.

    Args:
        find: finds the bridge.
        write: writes a line to the client, without the line end; called from any thread, never concurrently.
        repeats: no request changes anything, so one whose answer breaks off is sent again.
    """

    def __init__(self, find: FindBridge, write: Callable[[bytes], None], *, repeats: bool = False) -> None:
        self.repeats = repeats
        self._find = find
        self._write = write
        self._writing = threading.Lock()
        self._opening = threading.Lock()
        self._session: RelaySession | None = None
        self._missing: Missing | None = None  # why no editor could be reached when last looked for
        self._missed_at = 0.0
        self._first_line: bytes | None = None
        self._is_stateless = False
        self._follower: threading.Thread | None = None
        self._wake = threading.Event()
        self._flights: dict[str, Flight] = {}  # requests that are not answered, by id
        self._jobs: queue.SimpleQueue[tuple[Callable[[], None], list[Any]]] = queue.SimpleQueue()
        self._state = threading.Condition()
        self._threads = 0
        self._busy = 0
        self.ended = False

    def on_line(self, line: bytes) -> None:
        """Handles a line from the client."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, PARSE_ERROR, "Parse error: a line must be one JSON-RPC message")
            return
        ids = _ids(message)
        if isinstance(message, dict) and message.get("method") == "initialize" and ids:
            self._first_line = line
            self._in_thread(lambda: self._initialize(line, message), ids)
        elif ids:
            if self._first_line is None and stateless.is_opening(message):
                self._first_line, self._is_stateless = stateless.opening(message), True
                self._start_following()
            self._on_requests(line, message, ids)
        elif self._is_stateless:
            # No other notification exists, and the bridge knows no request by its id.
            if (flight := self._flights.get(_cancelled(message))) is not None:
                flight.cancel()
        elif (flight := self._flights.get(_cancelled(message))) is not None:
            # Another thread sends the request, and the bridge ignores a cancel that comes before it.
            threading.Thread(target=self._notify, args=(line, flight.sent), daemon=True).start()
        else:
            self._notify(line)

    def _on_requests(self, line: bytes, message: Any, ids: list[Any]) -> None:
        flight = stateless.flight_of(message) if self._is_stateless else Flight()
        self._flights |= {_key(id_): flight for id_ in ids}
        if isinstance(flight, stateless.Subscription):
            threading.Thread(target=self._subscribe, args=(line, flight, _key(ids[0])), daemon=True).start()
        else:
            self._in_thread(lambda: self._serve_requests(line, message, ids, flight), ids)

    def finish(self, goes_on: Callable[[], bool]) -> None:
        """Waits for the requests in flight, while `goes_on` returns True."""
        with self._state:
            while self._busy and goes_on():
                self._state.wait(RETRY_SECONDS)

    def close(self) -> None:
        """Ends the session and its requests when the client has exited."""
        self.ended = True
        self._wake.set()
        session, self._session = self._session, None
        if session is not None:
            if session.id is not None:
                session.bridge.delete(session.headers, SESSION_END_SECONDS)
            session.bridge.close()

    def _initialize(self, line: bytes, message: dict[str, Any]) -> None:
        with self._opening:
            self._is_stateless = False  # a client whose probe took too long opens a session
            found = self._find_starting()
            answer = found if isinstance(found, Missing) else self._open(found, line)
            if isinstance(answer, Missing):
                self._missing, self._missed_at = answer, time.monotonic()
                self._replace(None)
                answer = _response(message["id"], offline.initialize(message.get("params")))
            self._write_line(answer)
            self._start_following()

    def _start_following(self) -> None:
        if self._follower is None:
            self._follower = threading.Thread(target=self._follow_stream, daemon=True)
            self._follower.start()

    def _replace(self, session: RelaySession | None) -> None:
        before, self._session = self._session, session
        if before is not None:
            before.abort_stream()
        if session is not None:
            self._wake.set()

    def _open(self, bridge: BridgeClient, line: bytes) -> bytes | Missing:
        """Opens a session; returns the answer to `initialize`."""
        try:
            with bridge.post(line, seconds=OPEN_SECONDS) as reply:
                messages = list(reply.messages())
                id_ = reply.header(SESSION)
        except OSError as error:
            return Missing(f"The editor cannot be reached: {error}")
        answer, key = None, _key(json.loads(line)["id"])
        for message in messages:
            if key in _answered(message):
                answer = message
            elif reply.status < 400:
                self._write_line(message)
        if answer is None:
            return Missing(
                f"The editor's bridge refused to start a session: HTTP {reply.status}{_detail(messages)}"
            )
        try:
            version = json.loads(answer)["result"]["protocolVersion"]
        except (TypeError, KeyError):
            return answer  # the bridge's refusal
        self._missing = None
        self._replace(RelaySession(bridge, id_, version))
        return answer

    def _serve_requests(self, line: bytes, message: Any, ids: list[Any], flight: Flight) -> None:
        """Answers each of the requests in a line once, whatever happens."""
        self._wake.set()
        try:
            if self._first_line is None:
                self._fail_all(ids, "Send initialize first")
            elif offline.is_status_call(message):
                self._respond(message, offline.status(self._reason()))
            else:
                self._relay(line, message, ids, flight)
        finally:
            for id_ in ids:
                self._flights.pop(_key(id_), None)
            flight.sent.set()

    def _subscribe(self, line: bytes, flight: stateless.Subscription, key: str) -> None:
        """Serves `subscriptions/listen`. Requests a stream that has ended again."""
        pause = RETRY_SECONDS
        while not (self.ended or flight.cancelled):
            session = self._session
            if session is None and self._missing is None:
                found = self._reopen(None)  # the client's first request
                session = None if isinstance(found, Missing) else found
            if self._missing is not None:
                self._write_lines(flight.on_missing())
            elif session is not None and self._relay_subscription(session, line, flight):
                pause = RETRY_SECONDS
            flight.wake.wait(pause)
            flight.wake.clear()
            pause = min(2 * pause, MAX_RETRY_SECONDS)
        self._flights.pop(key, None)

    def _relay_subscription(self, session: RelaySession, line: bytes, flight: stateless.Subscription) -> bool:
        """Relays a stream to its end; returns whether the bridge served it."""
        was_served = False
        try:
            with self._post(session, line, flight) as reply:
                for message in reply.messages() if reply.status != GONE else ():
                    if not flight.cancelled:
                        self._write_lines(flight.on_line(message))
                        was_served = was_served or flight.connected
        except OSError:
            pass
        return was_served

    def _reason(self) -> str | None:
        """Returns why Neovim cannot be reached now; None if it can."""
        session = self._session
        if session is not None and self._missing is None and session.bridge.is_ours():
            return None
        found = self._reopen(session, wait=False)
        return found.text if isinstance(found, Missing) else None

    def _relay(self, line: bytes, message: Any, ids: list[Any], flight: Flight) -> None:
        session, known = self._session, True
        gone = UNKNOWN_SESSION if flight.headers is None else GONE
        for _ in range(MAX_ATTEMPTS):
            if flight.cancelled:
                return None
            if session is None or not known:
                found = self._reopen(session, known=known, wait=self._missing is None)
                if isinstance(found, Missing):
                    return self._answer_offline(message, found)
                session = found
            try:
                with self._post(session, line, flight) as reply:
                    if reply.status != gone:
                        return self._answer(session, reply, ids, flight)
                    reply.text()
                    known = False
            except (UnreachableError, BrokenError) as fault:
                if isinstance(fault, BrokenError) and not (self.repeats or _is_repeatable(message)):
                    return self._fail_all(ids, f"The connection to the editor broke; {MAY_HAVE_RUN}")
                found = self._reopen(session, wait=self._missing is None)
                if isinstance(found, Missing):
                    return self._answer_offline(message, found)
                session = found
        return self._fail_all(ids, "The editor's bridge does not keep the session; see :McpTools log")

    def _post(self, session: RelaySession, line: bytes, flight: Flight) -> HttpReply:
        """Sends a request, again while the bridge refuses it because it is ending; raises like `post`."""
        deadline = time.monotonic() + RESTART_SECONDS
        while True:
            reply = session.bridge.post(line, session.headers_of(flight), flight=flight)
            if reply.status != ENDING or time.monotonic() > deadline or self.ended or flight.cancelled:
                return reply
            with reply:
                reply.text()
            time.sleep(RETRY_SECONDS)

    def _answer_offline(self, message: Any, missing: Missing) -> None:
        for one in message if isinstance(message, list) else [message]:
            if _ids(one):
                result = offline.offline_result(one["method"])
                if result is None:
                    self._fail(one["id"], INTERNAL_ERROR, missing.text)
                else:
                    self._respond(one, result)

    def _respond(self, request: dict[str, Any], result: dict[str, Any]) -> None:
        """Answers a request without the bridge."""
        if self._is_stateless:
            result = {**result, "resultType": "complete"}
            if offline.offline_result(request["method"]) is not None:
                result |= {"ttlMs": 0, "cacheScope": "private"}
        self._write_line(_response(request["id"], result))

    def _answer(self, session: RelaySession, reply: HttpReply, ids: list[Any], flight: Flight) -> None:
        """Relays an answer; resumes its stream if it breaks off."""
        open_, status = set(map(_key, ids)), reply.status
        self._relay_messages(reply, open_, status, flight)
        last = reply.last_event
        while open_ and last is not None and not self.ended:
            resumed = self._resume(session, last)
            if resumed is None:
                break
            with resumed:
                self._relay_messages(resumed, open_, status, flight)
            last = resumed.last_event or last
        if not open_:
            return
        left = [id_ for id_ in ids if _key(id_) in open_]
        if status >= 400:
            text = f"The editor's bridge refused the request: HTTP {status}"
        else:
            text = f"The editor's bridge ended before it answered; {MAY_HAVE_RUN}"
        self._fail_all(left, text)

    def _relay_messages(self, reply: HttpReply, open_: set[str], status: int, flight: Flight) -> None:
        """Relays messages until the answer ends; removes answered requests from `open_`."""
        try:
            for message in reply.messages():
                answered = _answered(message)
                if flight.cancelled:
                    return
                if status < 400 or answered & open_:  # else the caller reports the error
                    self._write_line(message)
                open_ -= answered
        except BrokenError:
            pass

    def _resume(self, session: RelaySession, last: str) -> HttpReply | None:
        deadline = time.monotonic() + RESTART_SECONDS
        while time.monotonic() < deadline and not self.ended:
            try:
                reply = session.bridge.get({**session.headers, LAST_EVENT: last})
            except OSError:
                time.sleep(RETRY_SECONDS)
                continue
            if reply.status == OK:
                return reply
            reply.__exit__(OSError, None, None)
            return None
        return None

    def _notify(self, line: bytes, after: threading.Event | None = None) -> None:
        """Sends a notification or an answer of the client; ignores errors.

        Args:
            line: the message.
            after: event to wait for first.
        """
        if after is not None:
            after.wait(NOTIFY_SECONDS)
        session = self._session
        if session is None:
            return
        try:
            with session.bridge.post(line, session.headers, NOTIFY_SECONDS) as reply:
                reply.text()
        except OSError:
            pass  # its receiver has ended with the bridge

    def _reopen(
        self, gone: RelaySession | None, *, known: bool = True, wait: bool = True
    ) -> RelaySession | Missing:
        """Returns a session in place of an unreachable one; the first caller opens it for all threads.

        Args:
            gone: the unreachable session.
            known: whether the bridge may still know that session.
            wait: wait for a bridge that may be about to start.
        """
        asked_at = time.monotonic()
        with self._opening:
            if self._missing is not None and self._missed_at > asked_at:
                return self._missing  # another thread has searched meanwhile
            before, was_missing = self._session, self._missing is not None
            if before is not None and before is not gone and not was_missing:
                return before
            now = self._find_session(before, known=known, wait=wait)
            is_missing = isinstance(now, Missing)
            self._missing = now if isinstance(now, Missing) else None
            self._missed_at = time.monotonic()
            if is_missing and before is not None:
                before.abort_stream()
            if is_missing != was_missing or (now is not before and not is_missing):
                for kind in () if self._is_stateless else CHANGED:
                    self._write_line(_notification(f"notifications/{kind}/list_changed"))
                for flight in list(self._flights.values()):
                    if isinstance(flight, stateless.Subscription):
                        flight.wake.set()
            return now

    def _find_session(
        self, before: RelaySession | None, *, known: bool, wait: bool
    ) -> RelaySession | Missing:
        found = self._find_starting() if wait else self._find()
        if isinstance(found, Missing) or self._first_line is None:
            return found if isinstance(found, Missing) else Missing("Send initialize first")
        if before is not None and known and found == before.bridge:
            return before  # a restarted bridge knows the session
        answer = self._open(found, self._first_line)
        if isinstance(answer, Missing):
            return answer
        opened = self._session
        if opened is None or opened is before:
            return Missing("The editor refuses the client's initialize; restart the client")
        self._notify(_notification("notifications/initialized"))
        return opened

    def _find_starting(self) -> BridgeClient | Missing:
        """Finds the bridge, waiting for one that is about to start."""
        deadline = time.monotonic() + RESTART_SECONDS
        while True:
            found = self._find()
            if not isinstance(found, Missing) or not found.may_start or self.ended:
                return found
            if time.monotonic() > deadline:
                return found
            time.sleep(RETRY_SECONDS)

    def _follow_stream(self) -> None:
        """Reads the session's stream; while there is none, searches for Neovim at growing intervals."""
        session: RelaySession | None = None
        last: str | None = None
        pause, silent_since = RETRY_SECONDS, time.monotonic()
        while not self.ended:
            if self._wake.wait(pause):
                self._wake.clear()
                pause = RETRY_SECONDS
            if session is not self._session:
                session, last = self._session, None
            try:
                status = 0
                if session is not None and self._missing is None:
                    status, last = self._listen(session, last)
                if status == OK:
                    pause, silent_since = RETRY_SECONDS, time.monotonic()
                    continue
                pause = min(2 * pause, MAX_RETRY_SECONDS)
                if status == UNKNOWN_SESSION:
                    self._reopen(session, known=False, wait=False)
                elif status == 0 and (self._missing or self._is_gone(silent_since)):
                    self._reopen(session, wait=False)
            except Exception:  # noqa: BLE001 - boundary: logged and retried
                traceback.print_exc()

    def _listen(self, session: RelaySession, last: str | None) -> tuple[int, str | None]:
        """Relays messages of the standalone stream until it ends.

        Returns:
            The HTTP status, 0 without an answer; the id of the last event.
        """
        status = 0
        try:
            more = {} if last is None else {LAST_EVENT: last}
            with session.bridge.get({**session.headers, **more}) as reply:
                session.stream, status = reply, reply.status
                if status == OK and session is self._session:
                    for message in reply.messages():
                        if not self._is_stateless:
                            self._write_line(message)
                        last = reply.last_event or last
        except OSError:
            pass
        finally:
            session.stream = None
        return status, last

    def _is_gone(self, silent_since: float) -> bool:
        """Whether the bridge has ended and is not restarting."""
        if time.monotonic() - silent_since > RESTART_SECONDS:
            return True
        found = self._find()
        return isinstance(found, Missing) and not found.may_start

    def _in_thread(self, job: Callable[[], None], ids: list[Any]) -> None:
        with self._state:
            self._busy += 1
            if self._busy > self._threads and self._threads < THREADS:
                self._threads += 1
                threading.Thread(target=self._work, daemon=True).start()
        self._jobs.put((job, ids))

    def _work(self) -> None:
        while True:
            job, ids = self._jobs.get()
            try:
                job()
            except Exception:  # noqa: BLE001 - boundary: answered with an error; the thread continues
                traceback.print_exc()
                self._fail_all(ids, f"mcp-tools has failed, see its stderr; {MAY_HAVE_RUN}")
            finally:
                del job, ids
                with self._state:
                    self._busy -= 1
                    self._state.notify_all()

    def _fail_all(self, ids: list[Any], text: str) -> None:
        for id_ in ids:
            flight = self._flights.get(_key(id_))
            if flight is None or not flight.cancelled:
                self._fail(id_, INTERNAL_ERROR, text)

    def _fail(self, id_: Any, code: int, text: str) -> None:
        self._write_line(
            json.dumps({"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": text}}).encode()
        )

    def _write_lines(self, lines: list[bytes]) -> None:
        for line in lines:
            self._write_line(line)

    def _write_line(self, line: bytes) -> None:
        with self._writing:
            self._write(line)


def _is_repeatable(message: Any) -> bool:
    """Returns whether a request can be sent again, because it changes nothing."""
    return isinstance(message, dict) and offline.offline_result(message.get("method")) is not None


def _ids(message: Any) -> list[Any]:
    """Returns the ids of the requests in a message or batch."""
    each = message if isinstance(message, list) else [message]
    return [one["id"] for one in each if isinstance(one, dict) and "method" in one and "id" in one]


def _cancelled(message: Any) -> str:
    """Returns the key of the request that a message cancels; empty for any other message."""
    if not isinstance(message, dict) or message.get("method") != "notifications/cancelled":
        return ""
    params = message.get("params")
    return _key(params["requestId"]) if isinstance(params, dict) and "requestId" in params else ""


def _response(id_: Any, result: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode()


def _detail(messages: list[bytes]) -> str:
    """Returns the message of an error answer as the end of a sentence; empty without one."""
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
