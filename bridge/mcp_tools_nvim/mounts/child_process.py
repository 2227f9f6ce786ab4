"""A mounted server that is a child process, with one JSON-RPC message per line over its pipes.

The child gets a minimal environment and its own process group. To end it, its stdin is closed, then the group
gets TERM, then KILL. Other output is logged, up to a limit. A message above the size limit is dropped, and
its request gets an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from ..jsonrpc import TOO_LARGE
from ..rate_limit import TokenBucket
from .mount import Mount

logger = logging.getLogger(__name__)

INHERITED = ["HOME", "LOGNAME", "USER", "PATH", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"]
"""Environment variables that every process needs; the mount's configuration adds others."""
ESCAPED = 2
"""Maximum growth of a result by JSON escapes."""
ENVELOPE = 1024 * 1024
"""Maximum bytes of a message around a result."""
STDIN_GRACE = 0.5
"""Seconds to end after stdin was closed."""
TERM_GRACE = 2.0
"""Seconds to end after TERM."""
POLL = 0.02
"""Seconds between checks whether the group has ended."""
MAX_LINE = 2048
"""Maximum bytes of a line of stderr."""
MAX_LINES = 50
"""Maximum lines of output per second that are logged: Neovim reads the log."""
MAX_SHOWN_OUTPUT = 80
"""Maximum bytes of an invalid message in the log."""
CHUNK = 64 * 1024
_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})(?!\d|\s*,\s*"method")')
_LAST = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
"""Match the id at the start or end of a message, never one inside a result."""


def environment(mount: Mount) -> dict[str, str]:
    """Returns the environment of the child."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | mount.env


class Child:
    """One run of a server.

    Attributes:
        pid: id of the process and of its group.
        reason: why it has ended, once it has.
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
        """Starts the process, and ends it with the context.

        Raises:
            OSError: the executable does not exist or cannot be run.
        """
        try:
            process = self._process = await asyncio.create_subprocess_exec(
                *self._mount.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment(self._mount),
                cwd=self._mount.cwd or None,
                start_new_session=True,
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
                self.pid = None  # the system may reuse the id from now on
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    def terminate(self) -> None:
        """Sends TERM to the group."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the group."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> bool:
        """Sends a signal to the group; False when no process is left."""
        if self.pid is None:
            return False
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _missing(self) -> str:
        directory, executable = self._mount.cwd, self._mount.command[0]
        if directory and not os.path.isdir(directory):
            return f"no such directory: {directory}"
        return f"command not found: {executable}"

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        has_exited = process.returncode is not None
        if process.stdin is not None:
            process.stdin.close()
        if not await self._wait_for_end(STDIN_GRACE) and self._signal(signal.SIGTERM):
            await self._wait_for_end(TERM_GRACE)
        self.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), TERM_GRACE)
        self.reason = self.reason or self._reason(process.returncode if has_exited else None)

    async def _wait_for_end(self, within: float) -> bool:
        """Waits until no process of the group is left. Signal 0 only checks."""
        until = asyncio.get_running_loop().time() + within
        while (self._process is not None and self._process.returncode is None) or self._signal(0):
            if asyncio.get_running_loop().time() >= until:
                return False
            await asyncio.sleep(POLL)
        return True

    def _reason(self, code: int | None) -> str:
        if code is None:
            how = "the process closed its output"
        elif code < 0:
            how = f"the process was killed by signal {-code}"
        else:
            how = f"the process exited with code {code}"
        return f"{how}: {self._last[-1]}" if self._last else how

    async def on_end(self) -> None:
        """Ends the session after the end of the output."""
        process = self._process
        with contextlib.suppress(TimeoutError):
            if process is not None:
                code = await asyncio.wait_for(process.wait(), 0.2)
                self.reason = self.reason or self._reason(code)
        self._lost()

    def message(self, line: bytes) -> SessionMessage | None:
        """Returns the message in a line of output; None for an empty or invalid one without a known id."""
        if isinstance(line, LongLine):
            self._log("dropped a message of %d bytes", line.size)
            return line.answer(self.limit)
        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            self._log("invalid message: %r", line[:MAX_SHOWN_OUTPUT].decode("utf-8", "replace"))
            return error_response(line, PARSE_ERROR, "the answer is not a valid message, or nested too deep")

    def _log(self, text: str, *args: Any) -> None:
        """Logs a line, up to MAX_LINES per second."""
        if not self._logged.take(asyncio.get_running_loop().time()):
            logger.info("mount %s: %s", self._mount.name, self._mount.clean(text % args))

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """Logs stderr, without secrets."""
        assert process.stderr is not None  # noqa: S101 (it has pipes)
        lines = LineSplitter(MAX_LINE, cut=True)
        while chunk := await process.stderr.read(CHUNK):
            for line in lines.feed(chunk):
                text = self._mount.clean(bytes(line).decode("utf-8", "replace").rstrip())
                if not text:
                    continue
                self._last.append(text[:300])
                self._log("%s", text)


class _Pipe:
    """A stream of the SDK; the pipe is closed with the process."""

    async def aclose(self) -> None:
        """Does nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class Read(_Pipe):
    """The SDK's read stream, directly on the pipe of a child."""

    def __init__(self, stream: asyncio.StreamReader, child: Child) -> None:
        self._stream = stream
        self._child = child
        self._lines = LineSplitter(child.limit)
        self._waiting: deque[SessionMessage] = deque()

    async def receive(self) -> SessionMessage | Exception:
        """Returns the next message.

        Raises:
            EndOfStream: the output has ended.
        """
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> Read:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while not self._waiting:
            chunk = await self._stream.read(CHUNK)
            if not chunk:
                await self._child.on_end()
                raise StopAsyncIteration
            for line in self._lines.feed(chunk):
                message = self._child.message(line)
                if message is not None:
                    self._waiting.append(message)
        return self._waiting.popleft()


class Write(_Pipe):
    """The SDK's write stream, directly on the pipe of a child."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    @property
    def unread(self) -> int:
        """Bytes that the child has not read."""
        size: int = self._stream.transport.get_write_buffer_size()
        return size

    async def send(self, item: SessionMessage, /) -> None:
        """Writes a message, and waits while the child does not read.

        Raises:
            BrokenResourceError: the pipe is closed.
        """
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._stream.write(data.encode() + b"\n")
            await self._stream.drain()
        except (OSError, RuntimeError):
            raise anyio.BrokenResourceError from None


async def _drain(stream: asyncio.StreamReader) -> None:
    """Reads and drops output, so that a child that still writes can end."""
    while await stream.read(CHUNK):
        pass


def error_response(line: bytes, code: int, message: str) -> SessionMessage | None:
    """Returns an error in place of an unreadable answer; None when its request id is not at its edges."""
    found = _FIRST.match(line) or _LAST.search(line[-LineSplitter.EDGE_BYTES :])
    if found is None:
        return None
    error = ErrorData(code=code, message=message)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))


class LongLine(bytes):
    """The start and the end of a line that was too long."""

    size = 0

    def answer(self, limit: int) -> SessionMessage | None:
        """Returns an error in place of the answer; None when its request id is unknown."""
        return error_response(self, TOO_LARGE, f"the answer has {self.size} bytes, the limit is {limit}")


class LineSplitter:
    """Splits bytes into lines of at most `limit` bytes.

    Args:
        limit: maximum bytes of a line.
        cut: truncate a longer line; otherwise return a `LongLine` for it.
    """

    EDGE_BYTES = 512

    def __init__(self, limit: int, *, cut: bool = False) -> None:
        self._limit = limit
        self._cut = cut
        self._parts: list[bytes] = []
        self._size = 0
        self._tail = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Adds bytes and returns the lines that are complete now."""
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
                self._parts = [whole[: self._limit if self._cut else self.EDGE_BYTES]]
                self._tail = whole[-self.EDGE_BYTES :]
        else:
            self._tail = (self._tail + part)[-self.EDGE_BYTES :]

    def _take(self) -> bytes:
        line = b"".join(self._parts)
        if self._size > self._limit and not self._cut:
            line = LongLine(line + b"\n" + self._tail)
            line.size = self._size
        self._parts, self._size, self._tail = [], 0, b""
        return line
