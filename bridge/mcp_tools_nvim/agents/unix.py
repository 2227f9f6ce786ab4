"""Unix sockets of endpoints, in a directory that only this user can access."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import Callable

from aiohttp import web

from ..http.app import Application, Handler
from ..http.guards import refusal
from ..http.listener import Connection, Runner
from ..values import AgentEndpoint

MAX_PATH = 103
"""Maximum bytes of a socket's path; Linux allows 107, macOS and BSD 103."""

BACKLOG = 16

Match = Callable[[web.Request, str], Handler | None]


class _Application(Application):
    """The application at one socket. It has nothing to close: its sessions are those of `App`."""

    def __init__(self, agent: str, match: Match, body_limit: int) -> None:
        super().__init__(body_limit)
        self._agent = agent
        self._match = match

    async def serve(self, request: web.Request, connection: Connection) -> web.StreamResponse:
        """Answers a request."""
        handler = self._match(request, self._agent)
        if handler is None:
            return refusal(401, "Unauthorized: missing or wrong token")
        connection.authenticate()
        return await handler(request)


class UnixSockets:
    """All served sockets.

    Args:
        match: finds the handler of a request, given the name of its endpoint.
        body_limit: maximum bytes of a body.
    """

    def __init__(self, match: Match, body_limit: int) -> None:
        self._match = match
        self._body_limit = body_limit
        self._runners: dict[str, tuple[Runner, tuple[int, int]]] = {}
        self._turn = asyncio.Lock()

    async def open(self, endpoint: AgentEndpoint) -> None:
        """Serves the socket of an endpoint, if it is not served yet.

        Raises:
            OSError: why it cannot be served.
        """
        if endpoint.socket is None:
            raise OSError("the endpoint has no socket path")
        path = endpoint.socket
        async with self._turn:
            if path in self._runners and _file_id(path) == self._runners[path][1]:
                return
            await self._close(path)
            listening = _bind(path)
            runner = Runner(_Application(endpoint.name, self._match, self._body_limit))
            try:
                await runner.setup()
                await runner.listen(listening)
            except BaseException:
                listening.close()
                await runner.cleanup()
                raise
            self._runners[path] = runner, _file_id(path) or (0, 0)

    async def stop_listening(self) -> None:
        """Accepts no more connections; open ones continue."""
        async with self._turn:
            for runner, _ in self._runners.values():
                await runner.stop_listening()

    async def close(self) -> None:
        """Ends all sockets. A socket file that another process has put there meanwhile stays."""
        await self.keep(set())

    async def _close(self, path: str) -> None:
        runner, file_id = self._runners.pop(path, (None, None))
        if runner is not None:
            if file_id == _file_id(path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
            await runner.cleanup()

    async def keep(self, paths: set[str]) -> None:
        """Ends all sockets but these."""
        async with self._turn:
            for path in self._runners.keys() - paths:
                await self._close(path)


def _file_id(path: str) -> tuple[int, int] | None:
    """Returns what identifies a file: device and inode; None if it does not exist."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _bind(path: str) -> socket.socket:
    """Returns a socket that listens at `path`; replaces one that an earlier process of ours left there."""
    if len(os.fsencode(path)) > MAX_PATH:
        raise OSError(f"the socket path is longer than {MAX_PATH} bytes")
    _check_directory(os.path.dirname(path))
    with contextlib.suppress(FileNotFoundError):
        found = os.lstat(path)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.getuid():
            raise OSError(f"{path} exists and is not a socket of yours")
        os.unlink(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        listening.bind(path)
        os.chmod(path, 0o600)
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def _check_directory(path: str) -> None:
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(f"{path} is not a directory")
    if found.st_uid != os.getuid():
        raise OSError(f"{path} belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o077:
        raise OSError(f"{path} is accessible to other users: run `chmod 700 {path}`")
