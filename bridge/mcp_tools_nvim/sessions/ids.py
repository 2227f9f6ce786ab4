"""Session ids that say what the session is, so that it outlives a restart of the bridge.

An id is sealed with a key made from the project's token; nothing is stored for it, except that deleted ones
are remembered until they would have expired anyway. Does not know about: live sessions, HTTP, the SDK.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..values import Scope
from .tombstones import Tombstones

MAX_ID_BYTES = 2048
"""Servers and proxies cut header lines at 8 KiB; an id is one of several."""

MAX_AGE_SECONDS = 7 * 24 * 3600
"""An id in some client's memory or log is worth nothing after a week."""

KEPT_CAPABILITY = "ai.nimblebrain/host-resources"
"""The one extension that tools use; it stays when a client declares too many."""

_KEY_LABEL = b"mcp-tools.nvim session id 1"
_FORMAT, _SCOPED_FORMAT, _COMPANION_FORMAT = 1, 2, 3
_MAC_BYTES = 16
_NAME_CHARS = 200


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
    scope: Scope | None = None


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

    def seal(
        self,
        key: str,
        version: str,
        client: dict[str, Any],
        capabilities: dict[str, Any],
        scope: Scope | None = None,
    ) -> str:
        """The id of a session that has just been initialized. It keeps what fits of a long declaration.

        Raises:
            TooMuchError: not even the essentials fit.
        """
        name = {part: str(client.get(part, ""))[:_NAME_CHARS] for part in ("name", "version")}
        sealed_at = int(self.now())
        for kept in (capabilities, _essentials(capabilities)):
            content = [_FORMAT, key, sealed_at, version, name, kept]
            if scope is not None and scope.companion is not None:
                content = [_COMPANION_FORMAT, *content[1:], scope.companion]
            elif scope is not None:
                content = [_SCOPED_FORMAT, *content[1:], [scope.tools, scope.read_only, scope.catalogue]]
            id_ = self._write(content)
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
        if id_ != f"{_base64(data)}.{_base64(given)}":
            return None  # another spelling of an id of ours: whoever deletes one must not leave the others
        format_, *content = json.loads(zlib.decompress(data))
        if format_ not in (_FORMAT, _SCOPED_FORMAT, _COMPANION_FORMAT):
            return None
        key, sealed_at, version, client, capabilities = content[:5]
        if self.expired(sealed_at) or key in self._tombstones:
            return None
        scope = None
        if format_ == _SCOPED_FORMAT:
            scope = _read_scope(content[5])
        elif format_ == _COMPANION_FORMAT:
            scope = Scope(companion=content[5])
        return Sealed(key, sealed_at, version, client, capabilities, scope)

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


def new_key() -> str:
    """A name for a session that nobody guesses."""
    return secrets.token_hex(16)


def _read_scope(content: list[Any]) -> Scope:
    tools, read_only, catalogue = content
    return Scope(None if tools is None else tuple(tools), read_only, catalogue)


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


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
