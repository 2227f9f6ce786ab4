"""A mounted server that is a child process: its life, and one message a line over its pipes.

The child gets little of our environment and a group of its own, which ends with it: its stdin is closed, then
TERM, then KILL. What it prints besides goes to the log, bounded. A message beyond the limit is not kept; who
waits for it is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from ..rate_limit import TokenBucket
from .mount import Mount

logger = logging.getLogger(__name__)

_UNIX = "HOME LOGNAME USER PATH SHELL TERM LANG LC_ALL LC_CTYPE TMPDIR TZ"
_WINDOWS = (
    "APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE SYSTEMDRIVE SYSTEMROOT TEMP"
    " USERNAME USERPROFILE"
)
INHERITED = (_WINDOWS if sys.platform == "win32" else _UNIX).split()
"""What every program needs to run at all; anything else a mount names itself."""
ESCAPED = 2
"""A message may be so many times as long as the result in it: escapes of JSON."""
ENVELOPE = 1024 * 1024
"""Bytes around a result."""
END_BY_ITSELF = 0.5
"""Seconds to end after stdin was closed."""
END_BY_TERM = 2.0
"""Seconds to end after TERM."""
POLL = 0.02
"""Seconds between two looks whether a group has ended."""
MAX_LINE = 2048
"""Bytes of a line of stderr."""
MAX_LINES = 50
"""Lines per second, of stderr and of output that is no message, that go to the log: the editor reads it."""
SHOWN = 80
"""Bytes of output that is no message."""
CHUNK = 64 * 1024
TOO_LARGE = -32005
_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})(?!\d|\s*,\s*"method")')
_LAST = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
"""Where the id of a message stands, and none that is part of a result."""


def environment(mount: Mount) -> dict[str, str]:
    """Of the child."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | mount.env


class Child:
    """One run of a server.

    Attributes:
        pid: of the process, and of its group.
        reason: why it is no more, once it is.
    """

    def __init__(self, mount: Mount, lost: Callable[[], None]) -> None:
        self._mount = mount
        self._lost = lost
        self.limit = mount.limit * ESCAPED + ENVELOPE
        self._process: asyncio.subprocess.Process | None = None
        self._last: deque[str] = deque(maxlen=5)
        self._logged = TokenBucket(MAX_LINES, MAX_LINES, asyncio.get_running_loop().time())
        self.pid: int | None = None
        self.reason = ""

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[tuple[Read, Write]]:
        """Starts it, and ends it with the context.

        Raises:
            OSError: there is no such program, or it cannot be run.
        """
        try:
            process = self._process = await asyncio.create_subprocess_exec(
                *self._mount.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment(self._mount),
                cwd=self._mount.cwd or None,
                start_new_session=sys.platform != "win32",
            )
        except FileNotFoundError:
            self.reason = self._missing()
            raise
        self.pid = process.pid
        assert process.stdin is not None  # noqa: S101 (it has pipes)
        assert process.stdout is not None  # noqa: S101
        tasks = [asyncio.create_task(self._listen(process))]
        try:
            yield Read(process.stdout, self), Write(process.stdin)
        finally:
            tasks.append(asyncio.create_task(_drain(process.stdout)))
            try:
                await self._end(process)
            finally:
                self.kill()
                self.pid = None  # the number may be another's from now on
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    def terminate(self) -> None:
        """Tells the group to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the group at once."""
        self._signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)

    def _signal(self, number: int) -> bool:
        """Is there anything of the group to be told?"""
        if self.pid is None or self._process is None:
            return False
        try:
            if sys.platform == "win32":
                self._process.send_signal(number)
            else:
                os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _missing(self) -> str:
        folder, program = self._mount.cwd, self._mount.command[0]
        if folder and not os.path.isdir(folder):
            return f"there is no folder {folder}"
        return f"there is no program {program}"

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        by_itself = process.returncode is not None
        if process.stdin is not None:
            process.stdin.close()
        if not await self._gone(END_BY_ITSELF) and self._signal(signal.SIGTERM):
            await self._gone(END_BY_TERM)
        self.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), END_BY_TERM)
        self.reason = self.reason or self._why(process.returncode if by_itself else None)

    async def _gone(self, within: float) -> bool:
        """Waits until nothing of the group is left; 0 is no signal, and only looks."""
        until = asyncio.get_running_loop().time() + within
        while (self._process is not None and self._process.returncode is None) or self._signal(0):
            if asyncio.get_running_loop().time() >= until:
                return False
            await asyncio.sleep(POLL)
        return True

    def _why(self, code: int | None) -> str:
        if code is None:
            how = "it closed its output"
        elif code < 0:
            how = f"it ended by signal {-code}"
        else:
            how = f"it ended with code {code}"
        return f"{how}: {self._last[-1]}" if self._last else how

    async def over(self) -> None:
        """Its output has ended, and so does the session."""
        process = self._process
        with contextlib.suppress(TimeoutError):
            if process is not None:
                code = await asyncio.wait_for(process.wait(), 0.2)
                self.reason = self.reason or self._why(code)
        self._lost()

    def message(self, line: bytes) -> SessionMessage | None:
        """What a line of its output says, if anything."""
        if isinstance(line, Overlong):
            self._log("a message of %d bytes was dropped", line.size)
            return line.answer(self.limit)
        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            self._log("a line of its output is no message: %r", line[:SHOWN].decode("utf-8", "replace"))
            return refusal(line, PARSE_ERROR, "its answer cannot be read: no message, or nested too deep")

    def _log(self, text: str, *args: Any) -> None:
        """Puts a line into the log, unless there are too many."""
        if not self._logged.take(asyncio.get_running_loop().time()):
            logger.info("mount %s: %s", self._mount.name, self._mount.clean(text % args))

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """Puts what it says into the log, without secrets, a bounded part of it."""
        assert process.stderr is not None  # noqa: S101 (it has pipes)
        lines = Lines(MAX_LINE, cut=True)
        while chunk := await process.stderr.read(CHUNK):
            for line in lines.feed(chunk):
                text = self._mount.clean(bytes(line).decode("utf-8", "replace").rstrip())
                if not text:
                    continue
                self._last.append(text[:300])
                self._log("%s", text)


class Read:
    """The messages of a child, as the SDK reads them: straight from the pipe, with no task in between."""

    def __init__(self, stream: asyncio.StreamReader, child: Child) -> None:
        self._stream = stream
        self._child = child
        self._lines = Lines(child.limit)
        self._waiting: deque[SessionMessage] = deque()

    async def receive(self) -> SessionMessage | Exception:
        """The next one.

        Raises:
            EndOfStream: there is none any more.
        """
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        """The pipe is closed with the process."""

    def __aiter__(self) -> Read:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while not self._waiting:
            chunk = await self._stream.read(CHUNK)
            if not chunk:
                await self._child.over()
                raise StopAsyncIteration
            for line in self._lines.feed(chunk):
                message = self._child.message(line)
                if message is not None:
                    self._waiting.append(message)
        return self._waiting.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class Write:
    """The way to a child, as the SDK writes to it."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    @property
    def unread(self) -> int:
        """Bytes that wait for the child."""
        size: int = self._stream.transport.get_write_buffer_size()
        return size

    async def send(self, item: SessionMessage, /) -> None:
        """Writes a message, and waits while the child does not read.

        Raises:
            BrokenResourceError: it never will.
        """
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._stream.write(data.encode() + b"\n")
            await self._stream.drain()
        except (OSError, RuntimeError):
            raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        """The pipe is closed with the process."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


async def _drain(stream: asyncio.StreamReader) -> None:
    """Lets a child that still writes come to its end."""
    while await stream.read(CHUNK):
        pass


def refusal(line: bytes, code: int, message: str) -> SessionMessage | None:
    """The error for whoever waits for a message that cannot be read, when its edges say which it is."""
    found = _FIRST.match(line) or _LAST.search(line[-Lines.EDGE :])
    if found is None:
        return None
    error = ErrorData(code=code, message=message)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))


class Overlong(bytes):
    """What is kept of a line that was too long: its beginning and its end."""

    size = 0

    def answer(self, limit: int) -> SessionMessage | None:
        """The error for whoever waits for this message, when it says so."""
        return refusal(self, TOO_LARGE, f"the answer has {self.size} bytes, the limit is {limit}")


class Lines:
    """Cuts bytes into lines, of which each has at most `limit`.

    Args:
        limit: bytes.
        cut: the beginning of a longer one is given, else an `Overlong`.
    """

    EDGE = 512

    def __init__(self, limit: int, *, cut: bool = False) -> None:
        self._limit = limit
        self._cut = cut
        self._parts: list[bytes] = []
        self._size = 0
        self._tail = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now."""
        *whole, rest = data.split(b"\n")
        lines = []
        for part in whole:
            self._add(part)
            lines.append(self._take())
        self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        was_whole = self._size <= self._limit
        self._size += len(part)
        if was_whole:
            self._parts.append(part)
            if self._size > self._limit:
                whole = b"".join(self._parts)
                self._parts = [whole[: self._limit if self._cut else self.EDGE]]
                self._tail = whole[-self.EDGE :]
        else:
            self._tail = (self._tail + part)[-self.EDGE :]

    def _take(self) -> bytes:
        line = b"".join(self._parts)
        if self._size > self._limit and not self._cut:
            line = Overlong(line + b"\n" + self._tail)
            line.size = self._size
        self._parts, self._size, self._tail = [], 0, b""
        return line
