"""The log: shapes of lines, secrets, a reader that hangs, rotation."""

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
    """What the log changes of this process is undone."""
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


def test_every_line_has_its_level(pipe: tuple[int, int]) -> None:
    """Texts of several lines become lines with the level each; lower levels are left out."""
    installed(pipe[1])
    logger.debug("unseen")
    logger.error("one\ntwo")
    log.set_level("debug")
    logger.debug("seen\udcff")
    logger.warning("%d and %s", 1, "two")
    assert drain(pipe[0]) == b"ERROR one\nERROR two\nDEBUG seen\\udcff\nWARN 1 and two\n"


def test_levels_reach_libraries_too(pipe: tuple[int, int]) -> None:
    """Of libraries warnings are shown, and all that they say when somebody looks for a fault."""
    installed(pipe[1])
    library = logging.getLogger("aiohttp.client")
    library.info("unseen")
    log.set_level("debug")
    library.debug("seen")
    log.set_level("error")
    logger.warning("unseen")
    log.set_level("nonsense")
    library.info("unseen")
    assert drain(pipe[0]) == b"DEBUG aiohttp.client: seen\n"


def test_secrets_never_pass(pipe: tuple[int, int]) -> None:
    """A secret that the log knows is replaced, wherever it stands."""
    installed(pipe[1]).hide("s3cret")
    logger.info("Bearer %s", "s3cret")
    try:
        raise KeyError("s3cret")
    except KeyError:
        logger.exception("failed")
    assert b"s3cret" not in drain(pipe[0])


def test_a_secret_that_comes_again_costs_nothing(pipe: tuple[int, int]) -> None:
    """Whoever reads settings anew names the same secrets again; each line is searched for every one."""
    handler = installed(pipe[1])
    for _ in range(1_000):
        handler.hide("s3cret")
    assert len(handler._secrets) == 1


def test_a_reader_that_hangs_costs_lines_not_time(pipe: tuple[int, int]) -> None:
    """A full pipe loses lines and says how many when it flows again; none is glued to a part of another."""
    installed(pipe[1])
    for number in range(40):
        logger.info("%d %s", number, "x" * 5000)
    before = drain(pipe[0]).splitlines()
    logger.info("again")
    first, second = drain(pipe[0]).decode().strip().splitlines()
    assert first == "INFO again"
    lost = 40 - len(before) + (len(before[-1]) < 5000)
    assert second == f"INFO ({lost} log lines were lost: the reader was too slow)"


def test_a_reader_that_is_gone_is_no_error() -> None:
    """Writing to a closed pipe goes unnoticed."""
    read, write = os.pipe()
    os.close(read)
    installed(write)
    logger.error("nobody")
    os.close(write)


def test_the_file_is_private_and_rotates(tmp_path: Path, pipe: tuple[int, int]) -> None:
    """Lines go to MCP_LOG_FILE too, for the owner only; at 10 MiB one older file is kept."""
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


def test_bridges_that_share_a_file(tmp_path: Path, pipe: tuple[int, int]) -> None:
    """One turns it over, the others go on in the new one: nothing of it or of the older one is lost."""
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


def test_a_file_that_cannot_be_opened_is_named(pipe: tuple[int, int]) -> None:
    """The bridge goes on without the file and says why."""
    installed(pipe[1], Path("/nonexistent/log"))
    assert b"WARN MCP_LOG_FILE: " in os.read(pipe[0], 1000)


def test_libraries_log_the_same_way(pipe: tuple[int, int]) -> None:
    """Warnings of aiohttp and asyncio arrive with level and traceback."""
    installed(pipe[1])
    try:
        raise KeyError("k")
    except KeyError:
        logging.getLogger("aiohttp.server").exception("failed")
    lines = drain(pipe[0]).decode().splitlines()
    assert lines[0] == "ERROR aiohttp.server: failed"
    assert lines[-1] == "ERROR KeyError: 'k'"
