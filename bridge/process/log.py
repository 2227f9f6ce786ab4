"""Where everything but the ready line goes: stderr (read by the plugin) and `MCP_LOG_FILE`.

Receives levels and texts, from our modules and from the standard `logging`. Sends `LEVEL message` lines.
Does not know about: what the texts mean; but a secret that it was told of never passes.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import time

LEVELS = {"debug": 10, "info": 20, "warn": 30, "error": 40}
ROTATE_AT = 10 * 1024 * 1024
"""Bytes of the log file; one older file is kept."""


class Log:
    """Writes lines; never waits for whoever reads them, and never fails."""

    def __init__(self, path: str | None = None, level: str = "info", fd: int = 2) -> None:
        self._fd = fd
        self._path = path
        self._file: int | None = None
        self._size = 0
        self._least = LEVELS["info"]
        self._secrets: list[str] = []
        self._lost = 0
        self.set_level(level)
        try:
            kind = os.fstat(fd).st_mode
            # A reader that hangs must not hang the bridge. Not for terminals: those share the flag.
            if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
                os.set_blocking(fd, False)
        except OSError:
            pass  # closed stderr: lines are lost, which is what its owner asked for
        if path is not None:
            self._open(path)

    def set_level(self, level: str) -> None:
        """Sets the least level that is written; an unknown one changes nothing."""
        self._least = LEVELS.get(level, self._least)

    def hide(self, secret: str) -> None:
        """Keeps `secret` out of every line from now on."""
        self._secrets.append(secret)

    def __call__(self, level: str, text: str) -> None:
        """Writes `text`, each line with its level."""
        if LEVELS.get(level, 20) < self._least:
            return
        for secret in self._secrets:
            text = text.replace(secret, "…")
        lines = text.splitlines() or [""]
        self._emit(level.upper(), lines)

    def debug(self, text: str) -> None:
        """For those who look for a fault."""
        self("debug", text)

    def info(self, text: str) -> None:
        """What happened."""
        self("info", text)

    def warn(self, text: str) -> None:
        """What somebody should know."""
        self("warn", text)

    def error(self, text: str) -> None:
        """What failed."""
        self("error", text)

    def _emit(self, level: str, lines: list[str]) -> None:
        if self._lost:
            lines = [*lines, f"({self._lost} log lines were lost: nobody read them)"]
        data = "".join(f"{level} {line}\n" for line in lines).encode("utf-8", "backslashreplace")
        try:
            os.write(self._fd, data)
            self._lost = 0
        except OSError:
            self._lost += len(lines)
        if self._file is not None:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            self._keep("".join(f"[{stamp}] [bridge] {level} {line}\n" for line in lines))

    def _keep(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        try:
            if self._size + len(data) > ROTATE_AT and self._path is not None and self._file is not None:
                os.close(self._file)
                self._file = None
                os.replace(self._path, self._path + ".1")
                self._open(self._path)
            if self._file is not None:
                self._size += os.write(self._file, data)
        except OSError as fault:
            self._file = None
            self("warn", f"MCP_LOG_FILE: {fault}; going on without it")

    def _open(self, path: str) -> None:
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._size = os.fstat(self._file).st_size
        except OSError as fault:
            self("warn", f"MCP_LOG_FILE: {fault}; going on without it")


class _Handler(logging.Handler):
    """What libraries log (aiohttp, asyncio) goes the same way, tracebacks included."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else "warn"
        self._log(level, self.format(record))


def adopt_standard_logging(log: Log) -> None:
    """Sends the warnings and errors of all libraries to `log`."""
    logging.basicConfig(level=logging.WARNING, handlers=[_Handler(log)], force=True)
    logging.raiseExceptions = False


def is_terminal() -> bool:
    """Tells whether a person reads stdout or stderr."""
    return any(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))
