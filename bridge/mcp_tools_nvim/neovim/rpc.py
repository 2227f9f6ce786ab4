"""One msgpack-RPC channel to Neovim, over a unix socket, a named pipe or TCP.

A request ends with its answer, at its deadline or when the channel closes, whichever comes first. Nothing is
sent on a closing channel. Bytes that are not msgpack-RPC close the channel.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import msgpack  # type: ignore[import-untyped]

from ..errors import EditorError, EditorGoneError, LuaError, NoAnswerError

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_MESSAGE = 256 * 1024 * 1024
"""Maximum bytes of a message: a result of 10 MiB grows at most sixfold as JSON text."""
MAX_ITEMS = 1 << 22
"""Maximum items of a list or map: valid messages have fewer, and invalid ones could allocate gigabytes."""
WRITE_HIGH = 1024 * 1024
"""Unsent bytes above which the channel is congested: about a hundred calls."""

RENEW_AFTER = 1024 * 1024
"""Bytes after which the parser is replaced, as soon as it has parsed all of them."""

_REQUEST, _RESPONSE, _NOTIFICATION = 0, 1, 2
_TCP = re.compile(r"^\[?([^/\\]*?)\]?:(\d+)$")


def _unpacker() -> Any:
    return msgpack.Unpacker(
        raw=False,
        unicode_errors="surrogateescape",
        strict_map_key=False,
        max_buffer_size=MAX_MESSAGE,
        max_array_len=MAX_ITEMS,
        max_map_len=MAX_ITEMS,
    )


def _as_is(value: Any) -> Any:
    return value


class Channel(asyncio.Protocol):
    """The channel, made by `connect`.

    Attributes:
        closed: done when the channel is closed; never fails.
        last_heard: when the last bytes came from Neovim, by the loop's clock.
        congested: Neovim does not read what was written.
        time: returns the time of the loop's clock, which all times here use.
    """

    def __init__(self, on_event: Callable[[str, list[Any]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        # Unlike `time.monotonic`, uvloop's clock on macOS continues while the machine sleeps.
        self.time = self._loop.time
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.last_heard = self.time()
        self.congested = False
        self._on_event = on_event
        self._ids = itertools.count(1)
        self._pending: dict[int, tuple[asyncio.Future[Any], Callable[[Any], Any], float, str]] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf
        self._drained: set[asyncio.Future[None]] = set()
        self._unwritten: list[bytes] = []
        self._fault = "Neovim has exited"
        # surrogateescape preserves bytes in buffers that are not UTF-8.
        self._pack = msgpack.Packer(unicode_errors="surrogateescape").pack
        # `_fed`: bytes that the parser got; `_whole`: those of complete messages.
        self._unpacker, self._fed, self._whole = _unpacker(), 0, 0

    def request(
        self, method: str, args: Sequence[Any], give_up: float, decode: Callable[[Any], T] = _as_is
    ) -> asyncio.Future[T]:
        """Sends a request.

        Args:
            method: name of an API function.
            args: arguments of the function.
            give_up: time at which the future fails with `NoAnswerError`.
            decode: converts the answer; its exception fails the future.
        """
        future: asyncio.Future[T] = self._loop.create_future()
        if self._transport.is_closing():
            future.set_exception(EditorGoneError(self._fault))
            return future
        request_id = next(self._ids)
        try:
            data = self._pack((_REQUEST, request_id, method, args))
        except (OverflowError, ValueError, TypeError) as fault:
            future.set_exception(EditorError(f"{method}: the arguments do not fit msgpack ({fault!r})"))
            return future
        alone = not self._pending
        self._pending[request_id] = (future, decode, give_up, method)
        # One timer for all deadlines, moved only if the new one is nearer, which is rare.
        if give_up < self._alarm_at:
            self._set_alarm(give_up)
        self._send(data, alone)
        return future

    def notify(self, method: str, args: Sequence[Any]) -> None:
        """Sends a notification; a closing channel drops it."""
        if not self._transport.is_closing():
            self._send(self._pack((_NOTIFICATION, method, args)), not self._pending)

    async def drain(self, until: float) -> bool:
        """Waits until Neovim reads again or the time is `until`; returns whether Neovim reads."""
        if not self.congested:
            return True
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._drained.add(waiter)
        try:
            await asyncio.wait([waiter], timeout=max(0.0, until - self.time()))
        finally:
            self._drained.discard(waiter)
        return not self.congested

    def close(self) -> None:
        """Sends all queued messages, then closes the channel."""
        self._flush()
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_HIGH)

    def data_received(self, data: bytes) -> None:
        """Parses the data and handles every complete message."""
        self.last_heard = self.time()
        try:
            self._unpacker.feed(data)
            self._fed += len(data)
            for message in self._unpacker:
                self._whole = self._unpacker.tell()  # after the loop it includes incomplete messages
                self._dispatch(message)
            if self._fed > RENEW_AFTER and self._whole == self._fed:
                # The buffer of a parser never shrinks.
                self._unpacker, self._fed, self._whole = _unpacker(), 0, 0
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            # TypeError: an invalid map key. The peer is not Neovim.
            self._fault = f"the peer does not speak msgpack-RPC ({type(error).__name__}: {error})"
            logger.error("channel closed: %s", self._fault)
            self._transport.abort()

    def pause_writing(self) -> None:
        """Marks the channel as congested."""
        self.congested = True

    def resume_writing(self) -> None:
        """Ends the waits of `drain`."""
        self.congested = False
        for waiter in self._drained:
            if not waiter.done():
                waiter.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fails all requests."""
        if self._alarm is not None:
            self._alarm.cancel()
        pending, self._pending = self._pending, {}
        self._unwritten.clear()
        for future, *_ in pending.values():
            if not future.done():
                future.set_exception(EditorGoneError(self._fault))
        self.resume_writing()
        if not self.closed.done():
            self.closed.set_result(None)

    def _send(self, data: bytes, alone: bool) -> None:
        """Writes at once if no request is pending, else with the other messages of this loop iteration.

        Under load, a system call for each message would take a seventh of the CPU time.
        """
        if alone and not self._unwritten:
            self._transport.write(data)
            return
        if not self._unwritten:
            self._loop.call_soon(self._flush)
        self._unwritten.append(data)

    def _flush(self) -> None:
        if self._unwritten:
            self._transport.write(b"".join(self._unwritten))
            self._unwritten.clear()

    def _dispatch(self, message: Any) -> None:
        if type(message) is list:
            kind, size = message[0] if message else None, len(message)
            if kind == _RESPONSE and size == 4 and type(message[1]) is int:
                self._answer(message[1], message[2], message[3])
                return
            if kind == _NOTIFICATION and size == 3 and type(message[1]) is str and type(message[2]) is list:
                try:
                    self._on_event(message[1], message[2])
                except Exception as fault:  # noqa: BLE001 - boundary: one bad event must not end the channel
                    logger.error("event %s: %r", message[1], fault)
                return
            if kind == _REQUEST and size == 4:
                refusal = [0, "the bridge answers no requests"]
                self._transport.write(self._pack((_RESPONSE, message[1], refusal, None)))
                return
        raise ValueError(f"not a message: {str(message)[:80]}")

    def _answer(self, request_id: int, error: Any, result: Any) -> None:
        entry = self._pending.pop(request_id, None)
        if entry is None or entry[0].done():
            return  # too late
        future, decode, _, method = entry
        if error is not None:
            text = error[1] if isinstance(error, list) and len(error) == 2 else error
            future.set_exception(LuaError(str(text)))
            return
        try:
            future.set_result(decode(result))
        except Exception as fault:  # noqa: BLE001 - boundary: one bad answer must not end the channel
            future.set_exception(EditorError(f"{method}: unexpected answer ({fault!r})"))

    def _set_alarm(self, at: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = at
        self._alarm = self._loop.call_at(at, self._expire)

    def _expire(self) -> None:
        self._alarm, self._alarm_at = None, math.inf
        now = self.time()
        nearest = math.inf
        for request_id, (future, _, give_up, method) in list(self._pending.items()):
            if future.done():
                del self._pending[request_id]
            elif give_up <= now:
                del self._pending[request_id]
                future.set_exception(NoAnswerError(f"{method}: no answer"))
            else:
                nearest = min(nearest, give_up)
        if nearest < math.inf:
            self._set_alarm(nearest)


async def connect(
    address: str,
    on_event: Callable[[str, list[Any]], None],
    timeout: float = 5.0,  # noqa: ASYNC109 - a deadline of the connection
) -> Channel:
    """Opens a channel to `address`: a path or `host:port`.

    Raises:
        OSError: nothing listens there.
        TimeoutError: not within `timeout` seconds.
    """
    loop = asyncio.get_running_loop()

    def make() -> Channel:
        return Channel(on_event)

    tcp = _TCP.match(address)
    async with asyncio.timeout(timeout):
        if tcp is not None:
            return (await loop.create_connection(make, tcp[1] or "127.0.0.1", int(tcp[2])))[1]
        return (await loop.create_unix_connection(make, address))[1]
