"""The log handler: writes to stderr, which the plugin reads, and to `MCP_LOG_FILE`; hides secrets."""

from __future__ import annotations

import logging
import os
import stat
import sys
import time

PACKAGE = __name__.partition(".")[0]
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
NAMES = {number: name.upper() for name, number in LEVELS.items()}
ROTATE_AT = 10 * 1024 * 1024
"""Maximum bytes of the log file; one older file is kept."""


class LogHandler(logging.Handler):
    """Writes log lines; never waits for the reader, and never raises."""

    def __init__(self, path: str | None = None, fd: int = 2) -> None:
        super().__init__()
        self._fd = fd
        self._path = path
        self._file: int | None = None
        self._size = 0
        self._secrets: list[str] = []
        self._lost = 0
        self._torn = False
        try:
            kind = os.fstat(fd).st_mode
            # A reader that hangs must not block the bridge. On a terminal, this would affect other processes.
            if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
                os.set_blocking(fd, False)
        except OSError:
            pass  # stderr is closed
        if path is not None:
            self._open(path)

    def hide(self, secret: str) -> None:
        """Replaces `secret` in all later lines."""
        if secret not in self._secrets:
            self._secrets.append(secret)

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a record with its traceback; each line starts with the level."""
        text = self.format(record)
        if record.name.partition(".")[0] != PACKAGE:
            text = f"{record.name}: {text}"
        for secret in self._secrets:
            text = text.replace(secret, "…")
        self._emit(NAMES.get(record.levelno, record.levelname), text.splitlines() or [""])

    def _emit(self, level: str, lines: list[str]) -> None:
        notice = [f"({self._lost} log lines were lost: the reader was too slow)"] if self._lost else []
        data = "".join(f"{level} {line}\n" for line in [*lines, *notice]).encode("utf-8", "backslashreplace")
        taken = self._write(data)
        whole = taken == len(data)
        self._lost = 0 if whole else self._lost + max(0, len(lines) - data[:taken].count(b"\n"))
        if self._file is not None:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            self._keep("".join(f"[{stamp}] [bridge] {level} {line}\n" for line in lines))

    def _write(self, data: bytes) -> int:
        """Returns the number of bytes written. A write after a partial one starts with a line break."""
        start = b"\n" if self._torn else b""
        try:
            taken = os.write(self._fd, start + data) - len(start)
        except OSError:
            return 0
        if taken:
            self._torn = data[taken - 1 : taken] != b"\n"
        return max(0, taken)

    def _keep(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        try:
            if self._size + len(data) > ROTATE_AT and self._path is not None and self._file is not None:
                self._rotate(self._path, self._file)
            if self._file is not None:
                self._size += os.write(self._file, data)
        except OSError as fault:
            self._file = None
            self._emit("WARN", [f"MCP_LOG_FILE: {fault}; continuing without it"])

    def _rotate(self, path: str, file: int) -> None:
        self._file = None
        try:
            # Several bridges may write to one file; only the first one renames it.
            if os.path.samestat(os.fstat(file), os.stat(path)):
                os.replace(path, path + ".1")
        except FileNotFoundError:
            pass  # removed by another process
        finally:
            os.close(file)
        self._open(path)

    def _open(self, path: str) -> None:
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._size = os.fstat(self._file).st_size
        except OSError as fault:
            self._emit("WARN", [f"MCP_LOG_FILE: {fault}; continuing without it"])


def install_handler(handler: LogHandler) -> None:
    """Makes `handler` the only log handler of this process."""
    logging.basicConfig(handlers=[handler], format="%(message)s", force=True)
    logging.raiseExceptions = False
    set_level("info")


def set_level(level: str) -> None:
    """Sets the log level of the bridge; ignores an unknown one.

    Libraries log warnings only, unless the level is `debug`.
    """
    if level in LEVELS:
        logging.getLogger(PACKAGE).setLevel(LEVELS[level])
        logging.getLogger().setLevel(logging.DEBUG if level == "debug" else logging.WARNING)


def is_terminal() -> bool:
    """Whether stdout or stderr is a terminal."""
    return any(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))
