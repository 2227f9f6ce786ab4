"""The log: shapes of lines, secrets, a reader that hangs, rotation."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.process import log as log_module
from bridge.process.log import ROTATE_AT, Log


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def test_every_line_has_its_level(pipe: tuple[int, int]) -> None:
    """Texts of several lines become lines with the level each; lower levels are left out."""
    log = Log(fd=pipe[1])
    log.debug("unseen")
    log.error("one\ntwo")
    log.set_level("debug")
    log.debug("seen\udcff")
    assert os.read(pipe[0], 1000) == b"ERROR one\nERROR two\nDEBUG seen\\udcff\n"


def test_secrets_never_pass(pipe: tuple[int, int]) -> None:
    """A secret that the log knows is replaced, wherever it stands."""
    log = Log(fd=pipe[1])
    log.hide("s3cret")
    log.info("Bearer s3cret")
    assert os.read(pipe[0], 1000) == "INFO Bearer …\n".encode()


def test_a_reader_that_hangs_costs_lines_not_time(pipe: tuple[int, int]) -> None:
    """A full pipe loses lines and says how many when it flows again."""
    log = Log(fd=pipe[1])
    for _ in range(2000):
        log.info("x" * 100)
    os.set_blocking(pipe[0], False)
    while True:
        try:
            os.read(pipe[0], 1 << 16)
        except BlockingIOError:
            break
    log.info("again")
    first, second = os.read(pipe[0], 1000).decode().splitlines()
    assert first == "INFO again"
    assert "log lines were lost" in second


def test_a_reader_that_is_gone_is_no_error() -> None:
    """Writing to a closed pipe goes unnoticed."""
    read, write = os.pipe()
    os.close(read)
    Log(fd=write).error("nobody")
    os.close(write)


def test_the_file_is_private_and_rotates(tmp_path: Path, pipe: tuple[int, int]) -> None:
    """Lines go to MCP_LOG_FILE too, for the owner only; at 10 MiB one older file is kept."""
    path = tmp_path / "log"
    log = Log(str(path), fd=pipe[1])
    log.warn("hello")
    assert path.read_text().endswith("[bridge] WARN hello\n")
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("ab") as stream:
        stream.truncate(ROTATE_AT)
    log = Log(str(path), fd=pipe[1])
    log.warn("next")
    assert path.read_text().count("\n") == 1
    assert (tmp_path / "log.1").stat().st_size == ROTATE_AT


def test_a_file_that_cannot_be_opened_is_named(pipe: tuple[int, int]) -> None:
    """The bridge goes on without the file and says why."""
    Log("/nonexistent/log", fd=pipe[1])
    assert b"WARN MCP_LOG_FILE: " in os.read(pipe[0], 1000)


def test_libraries_log_the_same_way(pipe: tuple[int, int]) -> None:
    """Warnings of aiohttp and asyncio arrive with level and traceback."""
    root = logging.getLogger()
    kept = root.handlers[:], root.level, logging.raiseExceptions
    try:
        log_module.adopt_standard_logging(Log(fd=pipe[1]))
        try:
            raise KeyError("k")
        except KeyError:
            logging.getLogger("aiohttp.server").exception("failed")
    finally:
        root.handlers[:], root.level, logging.raiseExceptions = kept
    lines = os.read(pipe[0], 10_000).decode().splitlines()
    assert lines[0] == "ERROR aiohttp.server: failed"
    assert lines[-1] == "ERROR KeyError: 'k'"
