"""Session ids that contain the session, so that it outlives a restart of the bridge.

An id is authenticated with a key derived from the project's token. Only deleted ids are stored, until they
would have expired.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import os
import secrets
import stat
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..values import Scope

MAX_ID_BYTES = 2048
"""Servers and proxies cut header lines at 8 KiB; an id is one of several."""

MAX_AGE_SECONDS = 7 * 24 * 3600
"""Limits how long an id found in a client's memory or log is usable."""

ESSENTIAL_EXTENSION = "ai.nimblebrain/host-resources"
"""The one extension that tools use; kept when a client declares too many."""

_KEY_LABEL = b"mcp-tools.nvim session id 1"
_FORMAT, _SCOPED_FORMAT, _AGENT_FORMAT = 1, 2, 3
_MAC_BYTES = 16
_NAME_CHARS = 200

MAX_DELETED = 4096
"""Maximum number of deleted sessions remembered for all Neovims of a user."""

MAX_BYTES = 1024 * 1024
"""Maximum size of the file that is read; ours is several times smaller."""

NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""Opening a named pipe in place of the file would block every request."""

logger = logging.getLogger(__name__)


class TooMuchError(ValueError):
    """The client declares more than an id can hold."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """The contents of an id. `key` is the session's internal name; `sealed_at` is in unix seconds."""

    key: str
    sealed_at: int
    version: str
    client: dict[str, Any]
    capabilities: dict[str, Any]
    scope: Scope | None = None


class DeletedSessions:
    """Keys of deleted sessions, stored so that a restart does not revive them.

    Bounded: the first to expire are dropped first. Several bridges append whole lines to one file and read
    it again after a change.

    Args:
        directory: of the file; None keeps the keys in memory only.
        now: unix seconds.
    """

    def __init__(self, directory: Path | None, now: Callable[[], float] = time.time) -> None:
        self._path = None if directory is None else directory / "deleted-sessions"
        self._now = now
        self._expiries: dict[str, int] = {}
        self._seen = (0, 0)

    def __contains__(self, key: str) -> bool:
        self._read()
        return self._expiries.get(_digest(key), 0) > self._now()

    def __len__(self) -> int:
        return len(self._expiries)

    def add(self, key: str, expiry: int) -> None:
        """Remembers a key until `expiry` (unix seconds)."""
        self._read()
        self._expiries[_digest(key)] = expiry
        if self._path is None:
            self._shrink()
            return
        try:
            if self._shrink():
                self._rewrite(self._path)
            else:
                now = self._append(self._path, line := f"{_digest(key)} {expiry}\n")
                if now.st_size == self._seen[1] + len(line):  # else another bridge has written, too: read it
                    self._seen = (now.st_mtime_ns, now.st_size)
        except OSError as failure:
            logger.warning("cannot write deleted sessions to %s: %s", self._path, failure)

    def _read(self) -> None:
        if self._path is None:
            return
        try:
            found = self._path.stat()
            if (found.st_mtime_ns, found.st_size) == self._seen:
                return
            text = _read(self._path)
        except FileNotFoundError:
            return
        except OSError as failure:
            logger.warning("cannot read deleted sessions from %s: %s", self._path, failure)
            return
        self._seen = (found.st_mtime_ns, found.st_size)
        for line in text.splitlines():
            digest, _, expiry = line.partition(" ")
            if expiry.isdecimal():
                self._expiries[digest] = int(expiry)
        self._shrink()

    def _shrink(self) -> bool:
        if len(self._expiries) <= MAX_DELETED:
            return False
        # Down to three quarters, so that the file is rewritten once in a thousand deletions.
        newest = sorted(self._expiries.items(), key=lambda item: item[1])[-MAX_DELETED * 3 // 4 :]
        now = self._now()
        self._expiries = {digest: expiry for digest, expiry in newest if expiry > now}
        return True

    def _append(self, path: Path, line: str) -> os.stat_result:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_WAIT, 0o600)
        try:
            _check(descriptor)
            os.write(descriptor, line.encode("ascii"))
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def _rewrite(self, path: Path) -> None:
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.unlink(missing_ok=True)
        self._append(new, "".join(f"{digest} {expiry}\n" for digest, expiry in self._expiries.items()))
        new.replace(path)


class SessionIds:
    """Creates and reads ids.

    Args:
        token: the project's token.
        deleted: keys of deleted sessions.
        now: unix seconds.
    """

    def __init__(self, token: str, deleted: DeletedSessions, now: Callable[[], float] = time.time) -> None:
        # The token is the message here and the key in the proof of /health, so no proof can be used as a key.
        self._key = hmac.digest(_KEY_LABEL, token.encode(), "sha256")
        self._deleted = deleted
        self.now = now

    def seal(
        self,
        key: str,
        version: str,
        client: dict[str, Any],
        capabilities: dict[str, Any],
        scope: Scope | None = None,
    ) -> str:
        """Returns the id of a newly initialized session, without extensions that do not fit.

        Raises:
            TooMuchError: the essential capabilities do not fit.
        """
        name = {part: str(client.get(part, ""))[:_NAME_CHARS] for part in ("name", "version")}
        sealed_at = int(self.now())
        for kept in (capabilities, _essentials(capabilities)):
            content = [_FORMAT, key, sealed_at, version, name, kept]
            if scope is not None and scope.agent is not None:
                content = [_AGENT_FORMAT, *content[1:], scope.agent]
            elif scope is not None:
                content = [_SCOPED_FORMAT, *content[1:], [scope.tools, scope.read_only, scope.catalogue]]
            id_ = self._write(content)
            if len(id_) <= MAX_ID_BYTES:
                return id_
        raise TooMuchError("the declared capabilities are too large")

    def open(self, id_: str) -> Sealed | None:
        """Returns the contents of an id; None when it is not ours, expired, or deleted."""
        if len(id_) > MAX_ID_BYTES:
            return None
        body, _, mac = id_.partition(".")
        try:
            data, given = _unbase64(body), _unbase64(mac)
        except (binascii.Error, ValueError):
            return None
        if not hmac.compare_digest(given, self._mac(data)):
            return None
        if id_ != f"{_base64(data)}.{_base64(given)}":
            return (
                None  # only the canonical encoding is valid, so that deleting an id deletes every form of it
            )
        format_, *content = json.loads(zlib.decompress(data))
        if format_ not in (_FORMAT, _SCOPED_FORMAT, _AGENT_FORMAT):
            return None
        key, sealed_at, version, client, capabilities = content[:5]
        if self.now() - sealed_at > MAX_AGE_SECONDS or key in self._deleted:
            return None
        scope = None
        if format_ == _SCOPED_FORMAT:
            scope = _read_scope(content[5])
        elif format_ == _AGENT_FORMAT:
            scope = Scope(agent=content[5])
        return Sealed(key, sealed_at, version, client, capabilities, scope)

    def delete(self, sealed: Sealed) -> None:
        """Makes the id permanently invalid."""
        self._deleted.add(sealed.key, sealed.sealed_at + MAX_AGE_SECONDS)

    def _write(self, content: list[Any]) -> str:
        data = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)
        return f"{_base64(data)}.{_base64(self._mac(data))}"

    def _mac(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, "sha256")[:_MAC_BYTES]


def new_key() -> str:
    """Returns an unguessable internal name for a session."""
    return secrets.token_hex(16)


def _read_scope(content: list[Any]) -> Scope:
    tools, read_only, catalogue = content
    return Scope(None if tools is None else tuple(tools), read_only, catalogue)


def _essentials(capabilities: dict[str, Any]) -> dict[str, Any]:
    short: dict[str, Any] = {}
    for name, value in capabilities.items():
        if name in ("extensions", "experimental"):
            declared = value.get(ESSENTIAL_EXTENSION) if isinstance(value, dict) else None
            if declared is not None:
                short[name] = {ESSENTIAL_EXTENSION: declared}
        else:
            short[name] = value
    return short


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | NO_WAIT)
    with open(descriptor, encoding="ascii", errors="replace") as file:
        _check(descriptor)
        return file.read(MAX_BYTES)


def _check(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError("not a regular file")


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]
