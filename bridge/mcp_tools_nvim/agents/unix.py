"""Unix sockets of endpoints: bound in a folder that is this user's alone, served, and taken away."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import stat
from collections.abc import Callable

from aiohttp import web

from .. import jsonrpc
from ..http.app import Handler
from ..http.connection import connection_of
from ..http.guards import refusal
from ..http.listener import Runner
from ..values import Endpoint

MAX_PATH = 103
"""Bytes of a socket's path: 108 with the last one on Linux, 104 elsewhere."""

BACKLOG = 16

Welcome = Callable[[web.Request, str], Handler | None]

logger = logging.getLogger(__name__)


class _Application:
    """What is served at one socket; see `listener.Application`."""

    def __init__(self, companion: str, welcome: Welcome, body_limit: int) -> None:
        self._companion = companion
        self._welcome = welcome
        self.body_limit = body_limit

    async def start(self) -> None:
        """Nothing to begin."""

    async def close(self) -> None:
        """What its requests wait for ends with the sessions."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers one request, whatever happens."""
        connection = connection_of(request)
        if connection is not None:
            connection.head_is_complete(request)
        try:
            handler = self._welcome(request, self._companion)
            if handler is None:
                return refusal(401, "Unauthorized: missing or wrong token")
            if connection is not None:
                connection.become_known()
            return await handler(request)
        except ConnectionError:
            return refusal(400, "The connection is gone")
        except Exception:  # boundary: a fault of ours is logged, and the client is told nothing about it
            logger.exception("%s %s at a socket failed", request.method, request.path)
            return refusal(500, "Internal error", code=jsonrpc.INTERNAL_ERROR)
        finally:
            if connection is not None:
                connection.request_is_done(request)


class UnixSockets:
    """Those that are served.

    Args:
        welcome: who serves a request that came by the socket of an endpoint.
        body_limit: bytes of a body.
    """

    def __init__(self, welcome: Welcome, body_limit: int) -> None:
        self._welcome = welcome
        self._body_limit = body_limit
        self._runners: dict[str, tuple[Runner, tuple[int, int]]] = {}
        self._turn = asyncio.Lock()

    async def open(self, endpoint: Endpoint) -> None:
        """Serves the socket of an endpoint, if it is not served yet.

        Raises:
            OSError: it cannot be; the text says why.
        """
        if endpoint.socket is None:
            raise OSError("it has no path")
        async with self._turn:
            await self._open(endpoint, endpoint.socket)

    async def _open(self, endpoint: Endpoint, path: str) -> None:
        if path in self._runners and _mark(path) == self._runners[path][1]:
            return
        await self._close(path)
        listening = _bind(path)
        runner = Runner(_Application(endpoint.name, self._welcome, self._body_limit))
        try:
            await runner.setup()
            await runner.listen(listening)
        except BaseException:
            listening.close()
            await runner.cleanup()
            raise
        self._runners[path] = runner, _mark(path) or (0, 0)

    async def stop_listening(self) -> None:
        """Takes no more connections; those that there are go on."""
        async with self._turn:
            for runner, _ in self._runners.values():
                await runner.stop_listening()

    async def close(self) -> None:
        """Ends all. A socket that somebody else has put there by now stays."""
        await self.keep(set())

    async def _close(self, path: str) -> None:
        runner, mark = self._runners.pop(path, (None, None))
        if runner is not None:
            if mark == _mark(path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
            await runner.cleanup()

    def paths(self) -> set[str]:
        """Those that are served."""
        return set(self._runners)

    async def keep(self, paths: set[str]) -> None:
        """Ends all others."""
        async with self._turn:
            for path in self.paths() - paths:
                await self._close(path)


def _mark(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _bind(path: str) -> socket.socket:
    """A socket that listens at `path`; what an earlier process of ours has left there gives way."""
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("there are no unix sockets here")
    if len(os.fsencode(path)) > MAX_PATH:
        raise OSError(f"the path of its socket is longer than {MAX_PATH} bytes")
    folder = os.path.dirname(path)
    _check_folder(folder)
    with contextlib.suppress(FileNotFoundError):
        found = os.lstat(path)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.getuid():
            raise OSError(f"{path} is there already, and no socket of yours")
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


def _check_folder(folder: str) -> None:
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(f"{folder} is no folder")
    if found.st_uid != os.getuid():
        raise OSError(f"{folder} belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o077:
        raise OSError(f"{folder} is open to other users: run `chmod 700 {folder}`")
