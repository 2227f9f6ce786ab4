"""Saves each session in a private file, so that it outlives a restart of the bridge.

All projects share the directory, so that the total number of files is bounded. The first part of a file name
depends on the project's token: a session is valid only with this token.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..values import MAX_CLIENT_NAME, Scope

MAX_AGE_SECONDS = 7 * 24 * 3600
"""Maximum age of a session, since its id may leak from a client's log."""

MAX_RECORD = 256 * 1024
"""Maximum bytes of a file."""

MAX_SAVED = 4096
"""Maximum number of files: some clients open a session for every call. The oldest are deleted."""

TIDY_EVERY = 64
"""Old files are deleted when a process saves its first session, and then once per this many."""

_KEY_LABEL = b"mcp-tools.nvim saved sessions 1"
_ID = re.compile(r"[0-9a-f]{32}")

logger = logging.getLogger(__name__)


class TooMuchError(ValueError):
    """The client declares more than can be saved."""


@dataclass(frozen=True, slots=True)
class SavedSession:
    """What is needed to continue a session.

    Attributes:
        key: the session's id for tools.
        created: unix seconds.
        version: negotiated protocol version.
        client: name and version.
        capabilities: declared capabilities.
        scope: scope of the client.
        holder: digest of the client's own token; None = it uses the project's token.
    """

    key: str
    created: float
    version: str
    client: dict[str, str]
    capabilities: dict[str, Any]
    scope: Scope | None = None
    holder: str | None = None

    @property
    def agent(self) -> str | None:
        """Name of the terminal agent whose endpoint the client uses."""
        return None if self.scope is None else self.scope.agent


class SessionStore:
    """The saved sessions of one project.

    Args:
        token: the project's token.
        directory: directory of the files; None = nothing is saved.
        now: returns the time in Unix seconds.
    """

    def __init__(self, token: str, directory: Path | None, now: Callable[[], float] = time.time) -> None:
        # The token is the message here, while it is the HMAC key of /health: no proof can equal this digest.
        self._project = hmac.digest(_KEY_LABEL, token.encode(), "sha256").hex()[:32]
        self._directory = directory
        self._saved = 0
        self.now = now

    def save(
        self,
        key: str,
        version: str,
        client: dict[str, Any],
        capabilities: dict[str, Any],
        scope: Scope | None = None,
        holder: str | None = None,
    ) -> str:
        """Saves a new session and returns its id; after a write error it is valid only while in memory.

        Raises:
            TooMuchError: the session is too large.
        """
        name = {part: str(client.get(part, ""))[:MAX_CLIENT_NAME] for part in ("name", "version")}
        saved = SavedSession(key, self.now(), version, name, capabilities, scope, holder)
        data = json.dumps(asdict(saved)).encode()
        if len(data) > MAX_RECORD:
            raise TooMuchError("the declared capabilities are too large")
        id_ = new_key()
        if self._directory is not None:
            try:
                self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
                file = os.open(self._path(id_), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(file, "wb") as writing:
                    writing.write(data)
            except OSError as failure:
                logger.warning("cannot save a session: %s", failure)
                self.delete(id_)  # a full disk may have a part of it
            else:
                if self._saved % TIDY_EVERY == 0:
                    self._tidy(self._directory)
                self._saved += 1
        return id_

    def read(self, id_: str) -> SavedSession | None:
        """Returns a session; None when it is unknown, expired, or deleted."""
        if self._directory is None or not _ID.fullmatch(id_):
            return None
        try:
            # O_NONBLOCK since a named pipe in place of the file must not block the bridge.
            with open(os.open(self._path(id_), os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                fields = json.loads(file.read(MAX_RECORD))
            scope = fields["scope"]
            if scope is not None:
                tools = scope["tools"]
                fields["scope"] = Scope(**{**scope, "tools": None if tools is None else tuple(tools)})
            saved = SavedSession(**fields)
            return saved if self.now() - saved.created <= MAX_AGE_SECONDS else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as failure:
            logger.warning("cannot read a saved session: %r", failure)
            return None

    def delete(self, id_: str) -> None:
        """Deletes a session, if it is saved."""
        if self._directory is not None and _ID.fullmatch(id_):
            try:
                self._path(id_).unlink(missing_ok=True)
            except OSError as failure:
                logger.warning("cannot delete a saved session: %s", failure)

    def _path(self, id_: str) -> Path:
        assert self._directory is not None  # noqa: S101 - its callers have checked it
        return self._directory / f"{self._project}-{id_}"

    def _tidy(self, directory: Path) -> None:
        """Deletes the oldest and the expired files."""
        try:
            found = [(entry.stat(follow_symlinks=False), entry.path) for entry in os.scandir(directory)]
            files = sorted((about.st_mtime, path) for about, path in found)
            expired = self.now() - MAX_AGE_SECONDS
            for at, (changed, path) in enumerate(files):
                if changed >= expired and at >= len(files) - MAX_SAVED:
                    return
                Path(path).unlink(missing_ok=True)
        except FileNotFoundError:
            pass  # another bridge is deleting them
        except OSError as failure:
            logger.warning("cannot delete old sessions: %s", failure)


def new_key() -> str:
    """Returns an unguessable id."""
    return secrets.token_hex(16)
