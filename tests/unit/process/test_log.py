"""The log: format, secrets, slow readers, rotation."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_tools_nvim.process import log
from mcp_tools_nvim.process.log import ROTATE_AT, LogHandler

logger = logging.getLogger("mcp_tools_nvim.somewhere")


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    """Restores the logging state of this process."""
    root, own = logging.getLogger(), logging.getLogger("mcp_tools_nvim")
    before = root.handlers[:], root.level, own.level, logging.raiseExceptions
    yield
    root.handlers[:], root.level, own.level, logging.raiseExceptions = before


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def installed(fd: int, path: Path | None = None) -> LogHandler:
    handler = LogHandler(None if path is None else str(path), fd)
    log.install_handler(handler)
    return handler


def drain(fd: int) -> bytes:
    os.set_blocking(fd, False)
    data = b""
    while True:
        try:
            data += os.read(fd, 1 << 16)
        except BlockingIOError:
            return data


def test_every_line_has_its_level_and_lower_levels_are_hidden(pipe: tuple[int, int]) -> None:
    installed(pipe[1])
    logger.debug("hidden")
    logger.error("one\ntwo")
    log.set_level("debug")
    logger.debug("shown\udcff")
    logger.warning("%d and %s", 1, "two")
    assert drain(pipe[0]) == b"ERROR one\nERROR two\nDEBUG shown\\udcff\nWARN 1 and two\n"


def test_libraries_log_warnings_and_at_level_debug_everything(pipe: tuple[int, int]) -> None:
    installed(pipe[1])
    library = logging.getLogger("aiohttp.client")
    library.info("hidden")
    log.set_level("debug")
    library.debug("shown")
    log.set_level("error")
    logger.warning("hidden")
    log.set_level("nonsense")
    library.info("hidden")
    assert drain(pipe[0]) == b"DEBUG aiohttp.client: shown\n"


def test_secrets_are_replaced(pipe: tuple[int, int]) -> None:
    installed(pipe[1]).hide("s3cret")
    logger.info("Bearer %s", "s3cret")
    logger.error("failed", exc_info=KeyError("s3cret"))
    logged = drain(pipe[0])
    assert b"KeyError" in logged
    assert b"s3cret" not in logged


def test_a_repeated_secret_is_stored_once(pipe: tuple[int, int]) -> None:
    handler = installed(pipe[1])
    for _ in range(1_000):
        handler.hide("s3cret")
    assert len(handler._secrets) == 1


def test_a_slow_reader_loses_complete_lines_and_gets_their_number(pipe: tuple[int, int]) -> None:
    installed(pipe[1])
    for number in range(40):
        logger.info("%d %s", number, "x" * 5000)
    before = drain(pipe[0]).splitlines()
    logger.info("again")
    first, second = drain(pipe[0]).decode().strip().splitlines()
    assert first == "INFO again"
    lost = 40 - len(before) + (len(before[-1]) < 5000)
    assert second == f"INFO ({lost} log lines were lost: the reader was too slow)"


def test_a_closed_reader_is_ignored() -> None:
    read, write = os.pipe()
    os.close(read)
    installed(write)
    logger.error("nobody")
    os.close(write)


def test_the_log_file_is_private_and_rotates(tmp_path: Path, pipe: tuple[int, int]) -> None:
    path = tmp_path / "log"
    installed(pipe[1], path)
    logger.warning("hello")
    assert path.read_text().endswith("[bridge] WARN hello\n")
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("ab") as stream:
        stream.truncate(ROTATE_AT)
    installed(pipe[1], path)
    logger.warning("next")
    assert path.read_text().count("\n") == 1
    assert (tmp_path / "log.1").stat().st_size == ROTATE_AT


def test_bridges_that_share_a_file_lose_no_line(tmp_path: Path, pipe: tuple[int, int]) -> None:
    path = tmp_path / "log"
    path.touch(0o600)
    with path.open("ab") as stream:
        stream.truncate(ROTATE_AT)
    handlers = [LogHandler(str(path), pipe[1]) for _ in range(3)]
    for number, handler in enumerate(handlers):
        fields = {"name": "mcp_tools_nvim", "levelname": "INFO", "msg": f"line {number}"}
        handler.emit(logging.makeLogRecord(fields))
    assert [line[-6:] for line in path.read_text().splitlines()] == ["line 0", "line 1", "line 2"]
    assert (tmp_path / "log.1").stat().st_size == ROTATE_AT


def test_a_file_that_cannot_be_opened_is_reported(pipe: tuple[int, int]) -> None:
    installed(pipe[1], Path("/nonexistent/log"))
    assert b"WARN MCP_LOG_FILE: " in os.read(pipe[0], 1000)


def test_libraries_log_with_level_and_traceback(pipe: tuple[int, int]) -> None:
    installed(pipe[1])
    try:
        raise KeyError("k")
    except KeyError:
        logging.getLogger("aiohttp.server").exception("failed")
    lines = drain(pipe[0]).decode().splitlines()
    assert lines[0] == "ERROR aiohttp.server: failed"
    assert lines[-1] == "ERROR KeyError: 'k'"
