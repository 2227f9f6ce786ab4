"""The log handler: all but the ready line goes to stderr (read by the plugin) and `MCP_LOG_FILE`."""

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
"""Bytes of the log file; one older file is kept."""


class LogHandler(logging.Handler):
    """Writes lines; never waits for whoever reads them, and never fails."""

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
            # A reader that hangs must not hang the bridge. Not for terminals: those share the flag.
            if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
                os.set_blocking(fd, False)
        except OSError:
            pass  # closed stderr: lines are lost, which is what its owner asked for
        if path is not None:
            self._open(path)

    def hide(self, secret: str) -> None:
        """Keeps `secret` out of every line from now on."""
        if secret not in self._secrets:
            self._secrets.append(secret)

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a record, traceback included, each of its lines with the level."""
        text = self.format(record)
        if record.name.partition(".")[0] != PACKAGE:
            text = f"{record.name}: {text}"
        for secret in self._secrets:
            text = text.replace(secret, "…")
        self._emit(NAMES.get(record.levelno, record.levelname), text.splitlines() or [""])

    def _emit(self, level: str, lines: list[str]) -> None:
        notice = [f"({self._lost} log lines were lost: nobody read them)"] if self._lost else []
        data = "".join(f"{level} {line}\n" for line in [*lines, *notice]).encode("utf-8", "backslashreplace")
        taken = self._write(data)
        whole = taken == len(data)
        self._lost = 0 if whole else self._lost + max(0, len(lines) - data[:taken].count(b"\n"))
        if self._file is not None:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            self._keep("".join(f"[{stamp}] [bridge] {level} {line}\n" for line in lines))

    def _write(self, data: bytes) -> int:
        """How many bytes went out. A pipe that is nearly full takes a part; the next begins a line."""
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
            self._emit("WARN", [f"MCP_LOG_FILE: {fault}; going on without it"])

    def _rotate(self, path: str, file: int) -> None:
        self._file = None
        try:
            # Several bridges may write to one file. Whose turn is over joins the one who was first.
            if os.path.samestat(os.fstat(file), os.stat(path)):
                os.replace(path, path + ".1")
        except FileNotFoundError:
            pass  # taken away by somebody else
        finally:
            os.close(file)
        self._open(path)

    def _open(self, path: str) -> None:
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._size = os.fstat(self._file).st_size
        except OSError as fault:
            self._emit("WARN", [f"MCP_LOG_FILE: {fault}; going on without it"])


def install_handler(handler: LogHandler) -> None:
    """Makes it the only handler of this process."""
    logging.basicConfig(handlers=[handler], format="%(message)s", force=True)
    logging.raiseExceptions = False
    set_level("info")


def set_level(level: str) -> None:
    """Sets the least level of ours that is written; an unknown one changes nothing.

    Of libraries only warnings are, unless somebody looks for a fault.
    """
    if level in LEVELS:
        logging.getLogger(PACKAGE).setLevel(LEVELS[level])
        logging.getLogger().setLevel(logging.DEBUG if level == "debug" else logging.WARNING)


def is_terminal() -> bool:
    """Tells whether a person reads stdout or stderr."""
    return any(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))
