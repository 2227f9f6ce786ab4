"""Tombstones: keys of deleted sessions, so that their ids stay worthless until they expire."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

MAX_TOMBSTONES = 4096
"""Deleted sessions remembered, over all editors of a user; more than a week of work."""

MAX_BYTES = 1024 * 1024
"""Several times of what they take; what is longer was not written by us."""

NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe that nobody is at the other end of would hold every request."""

logger = logging.getLogger(__name__)


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
                now = self._append(self._path, line := f"{_digest(key)} {expiry}\n")
                if now.st_size == self._seen[1] + len(line):  # else somebody else wrote as well: read it
                    self._seen = (now.st_mtime_ns, now.st_size)
        except OSError as failure:
            logger.warning("deleted sessions cannot be remembered in %s: %s", self._path, failure)

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
            logger.warning("deleted sessions cannot be read from %s: %s", self._path, failure)
            return
        self._seen = (found.st_mtime_ns, found.st_size)
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


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | NO_WAIT)
    with open(descriptor, encoding="ascii", errors="replace") as file:
        _check(descriptor)
        return file.read(MAX_BYTES)


def _check(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError("it is no regular file")


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]
