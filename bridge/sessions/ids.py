"""Session ids that say what the session is, so that it outlives a restart of the bridge.

An id is sealed with a key made from the project's token; nothing is stored for it, except that deleted ones
are remembered until they would have expired anyway. Does not know about: live sessions, HTTP, the SDK.
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
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_ID_BYTES = 2048
"""Servers and proxies cut header lines at 8 KiB; an id is one of several."""

MAX_AGE_SECONDS = 7 * 24 * 3600
"""An id in some client's memory or log is worth nothing after a week."""

MAX_TOMBSTONES = 4096
"""Deleted sessions remembered, over all editors of a user; more than a week of work."""

KEPT_CAPABILITY = "ai.nimblebrain/host-resources"
"""The one extension that tools use; it stays when a client declares too many."""

_KEY_LABEL = b"mcp-tools.nvim session id 1"
_FORMAT = 1
_MAC_BYTES = 16
_NAME_CHARS = 200

logger = logging.getLogger(__name__)


class TooMuchError(ValueError):
    """The client declares more than an id can hold."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """What an id says. `key` names the session inside; `sealed_at` is in unix seconds."""

    key: str
    sealed_at: int
    version: str
    client: dict[str, Any]
    capabilities: dict[str, Any]


class SessionIds:
    """Seals and opens ids.

    Args:
        token: of the project; read at each use, as it may be replaced before anything is served.
        tombstones: ids that were deleted.
        now: unix seconds.
    """

    def __init__(
        self, token: Callable[[], str], tombstones: Tombstones, now: Callable[[], float] = time.time
    ) -> None:
        self._token = token
        self._tombstones = tombstones
        self.now = now

    def seal(self, key: str, version: str, client: dict[str, Any], capabilities: dict[str, Any]) -> str:
        """The id of a session that has just been initialized. It keeps what fits of a long declaration.

        Raises:
            TooMuchError: not even the essentials fit.
        """
        name = {part: str(client.get(part, ""))[:_NAME_CHARS] for part in ("name", "version")}
        sealed_at = int(self.now())
        for kept in (capabilities, _essentials(capabilities)):
            id_ = self._write([_FORMAT, key, sealed_at, version, name, kept])
            if len(id_) <= MAX_ID_BYTES:
                return id_
        raise TooMuchError("the declared capabilities are too large")

    def open(self, id_: str) -> Sealed | None:
        """What the id says; None when it is not ours, too old, or deleted."""
        if len(id_) > MAX_ID_BYTES:
            return None
        body, _, mac = id_.partition(".")
        try:
            data, given = _unbase64(body), _unbase64(mac)
        except (binascii.Error, ValueError):
            return None
        if not hmac.compare_digest(given, self._mac(data)):
            return None
        format_, key, sealed_at, version, client, capabilities = json.loads(zlib.decompress(data))
        if format_ != _FORMAT or self.expired(sealed_at) or key in self._tombstones:
            return None
        return Sealed(key, sealed_at, version, client, capabilities)

    def expired(self, sealed_at: int) -> bool:
        """Whether an id sealed then is too old now."""
        return self.now() - sealed_at > MAX_AGE_SECONDS

    def bury(self, sealed: Sealed) -> None:
        """Makes the id worthless for good."""
        self._tombstones.add(sealed.key, sealed.sealed_at + MAX_AGE_SECONDS)

    def _write(self, content: list[Any]) -> str:
        data = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)
        return f"{_base64(data)}.{_base64(self._mac(data))}"

    def _mac(self, data: bytes) -> bytes:
        # The token is the message here and the key in the proof of /health, so that no proof is ever a key.
        key = hmac.digest(_KEY_LABEL, self._token().encode(), "sha256")
        return hmac.digest(key, data, "sha256")[:_MAC_BYTES]


class Tombstones:
    """Keys of deleted sessions, on disk so that they stay deleted; bounded, the first to expire go first.

    Several bridges append to one file; a line is written at once, and the file is read again when it changed.

    Args:
        folder: where the file lies; None keeps them in memory only.
        now: unix seconds.
    """

    def __init__(self, folder: Path | None, now: Callable[[], float] = time.time) -> None:
        self._path = None if folder is None else folder / "deleted-sessions"
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
                stat = self._append(self._path, line := f"{_digest(key)} {expiry}\n")
                if stat.st_size == self._seen[1] + len(line):  # else somebody else wrote as well: read it
                    self._seen = (stat.st_mtime_ns, stat.st_size)
        except OSError as failure:
            logger.warning("deleted sessions cannot be remembered in %s: %s", self._path, failure)

    def _read(self) -> None:
        if self._path is None:
            return
        try:
            stat = self._path.stat()
            if (stat.st_mtime_ns, stat.st_size) == self._seen:
                return
            text = self._path.read_text("ascii", "replace")
        except FileNotFoundError:
            return
        except OSError as failure:
            logger.warning("deleted sessions cannot be read from %s: %s", self._path, failure)
            return
        self._seen = (stat.st_mtime_ns, stat.st_size)
        for line in text.splitlines():
            digest, _, expiry = line.partition(" ")
            if expiry.isdecimal():
                self._expiries[digest] = int(expiry)
        self._shrink()

    def _shrink(self) -> bool:
        if len(self._expiries) <= MAX_TOMBSTONES:
            return False
        # Down to three quarters, so that the file is rewritten once in a thousand deletions.
        newest = sorted(self._expiries.items(), key=lambda item: item[1])[-MAX_TOMBSTONES * 3 // 4 :]
        now = self._now()
        self._expiries = {digest: expiry for digest, expiry in newest if expiry > now}
        return True

    def _append(self, path: Path, line: str) -> os.stat_result:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode("ascii"))
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def _rewrite(self, path: Path) -> None:
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.unlink(missing_ok=True)
        self._append(new, "".join(f"{digest} {expiry}\n" for digest, expiry in self._expiries.items()))
        new.replace(path)


def new_key() -> str:
    """A name for a session that nobody guesses."""
    return secrets.token_hex(16)


def _essentials(capabilities: dict[str, Any]) -> dict[str, Any]:
    short: dict[str, Any] = {}
    for name, value in capabilities.items():
        if name in ("extensions", "experimental"):
            declared = value.get(KEPT_CAPABILITY) if isinstance(value, dict) else None
            if declared is not None:
                short[name] = {KEPT_CAPABILITY: declared}
        else:
            short[name] = value
    return short


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
