"""A server that is a child of ours: its process, and messages by lines over its pipes.

Receives: a mount with a command. Sends: the two streams that a session of the SDK takes; why it ended.
Does not know about: what messages say.

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

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter

from .spec import Mount

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
TOO_LARGE = -32005
END_BY_ITSELF = 0.5
"""Seconds to end after stdin was closed."""
END_BY_TERM = 2.0
"""Seconds to end after TERM."""
POLL = 0.02
"""Seconds between two looks whether a group has ended."""
MAX_LINE = 2048
"""Bytes of a line of stderr."""
MAX_LINES = 50
"""Lines of stderr per second that go to the log."""
CHUNK = 64 * 1024
_ID = re.compile(rb'"id"\s*:\s*(\d+)')

Read = MemoryObjectReceiveStream[SessionMessage | Exception]
Write = MemoryObjectSendStream[SessionMessage]


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
        self._limit = mount.limit * ESCAPED + ENVELOPE
        self._process: asyncio.subprocess.Process | None = None
        self._last: deque[str] = deque(maxlen=5)
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
        inward, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, outward = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._read(process, inward)),
            asyncio.create_task(self._write(process, outward)),
            asyncio.create_task(self._listen(process)),
        ]
        try:
            yield read, write
        finally:
            tasks[0].cancel()
            tasks[1].cancel()
            try:
                await self._end(process)
            finally:
                self.kill()
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                for stream in (inward, read, write, outward):
                    stream.close()

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

    async def _read(
        self, process: asyncio.subprocess.Process, to: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        """Deals out the messages; at the end of them the session ends, and so does the process."""
        assert process.stdout is not None  # noqa: S101 (it has pipes)
        lines = Lines(self._limit)
        try:
            while chunk := await process.stdout.read(CHUNK):
                for line in lines.feed(chunk):
                    if isinstance(line, Overlong):
                        message = line.answer(self._limit)
                        logger.warning(
                            "mount %s: a message of %d bytes was dropped", self._mount.name, line.size
                        )
                    else:
                        message = self._parse(line)
                    if message is not None:
                        await to.send(message)
            with contextlib.suppress(TimeoutError):
                code = await asyncio.wait_for(process.wait(), 0.2)
                self.reason = self.reason or self._why(code)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            pass  # the session is gone, or the pipe
        finally:
            to.close()
            self._lost()

    def _parse(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            shown = self._mount.clean(line[:80].decode("utf-8", "replace"))
            logger.info("mount %s: a line of its output is no message: %r", self._mount.name, shown)
            return None

    async def _write(
        self, process: asyncio.subprocess.Process, source: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        assert process.stdin is not None  # noqa: S101 (it has pipes)
        try:
            async for message in source:
                data = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(data.encode() + b"\n")
                await process.stdin.drain()
        except (OSError, anyio.ClosedResourceError):
            pass  # it reads no more; the end of its output tells the rest
        finally:
            source.close()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """Puts what it says into the log, without secrets, a bounded part of it."""
        assert process.stderr is not None  # noqa: S101 (it has pipes)
        lines, second, count = Lines(MAX_LINE, cut=True), 0.0, 0
        while chunk := await process.stderr.read(CHUNK):
            for line in lines.feed(chunk):
                text = self._mount.clean(bytes(line).decode("utf-8", "replace").rstrip())
                if not text:
                    continue
                self._last.append(text[:300])
                now = asyncio.get_running_loop().time()
                if now - second >= 1:
                    second, count = now, 0
                count += 1
                if count <= MAX_LINES:
                    logger.info("mount %s: %s", self._mount.name, text)


class Overlong(bytes):
    """What is kept of a line that was too long: its beginning and its end."""

    size = 0

    def answer(self, limit: int) -> SessionMessage | None:
        """The error for whoever waits for this message, when it says so."""
        found = _ID.search(self)
        if found is None:
            return None
        error = ErrorData(code=TOO_LARGE, message=f"the answer has {self.size} bytes, the limit is {limit}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))


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
        if self._size <= self._limit:
            self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            kept = b"".join(self._parts)[: self._limit if self._cut else self.EDGE]
            self._parts = [kept]
            self._tail = (self._tail + part)[-self.EDGE :]

    def _take(self) -> bytes:
        line = b"".join(self._parts)
        if self._size > self._limit and not self._cut:
            line = Overlong(line + b"\n" + self._tail)
            line.size = self._size
        self._parts, self._size, self._tail = [], 0, b""
        return line
