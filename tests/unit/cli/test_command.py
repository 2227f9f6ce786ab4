"""The command `mcp-tools` where notes of editors, messages and signals are none that it hopes for."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.cli import show
from bridge.stdio import serve
from bridge.stdio.endpoint import PROOF_SECONDS, Endpoint
from tests.support import processes
from tests.support.nvim import ROOT

START = str(ROOT / "bridge" / "start.py")
ESCAPE = "\x1b]0;title\x07"
INTERRUPTED = """
import os, runpy, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp_tools_nvim.cli.fault":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv = [sys.argv[1], "cli.main", "list"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The folder in which editors note themselves."""
    folder = tmp_path / "state" / "nvim" / "mcp-tools" / "instances"
    folder.mkdir(parents=True, mode=0o700)
    return folder


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, in that folder."""
    env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    for name in ("XDG_RUNTIME_DIR", "NVIM", "NVIM_LISTEN_ADDRESS", "NVIM_APPNAME"):
        env.pop(name, None)
    return processes.run(
        [sys.executable, START, "cli.main", *words],
        env=env,
        cwd=tmp_path,
        timeout=20,
    )


def note(folder: Path, **fields: Any) -> None:
    """A note of an editor that lives."""
    known = {"pid": os.getpid(), "port": 1, "token": "t", "socket": "/s", "root": str(folder)}
    (folder / "one.json").write_text(json.dumps(known | fields))


@pytest.mark.parametrize("url", ["ftp://x/mcp", "http://[::1/mcp", "http://127.0.0.1:99999/mcp", ""])
def test_a_note_without_an_address(notes: Path, tmp_path: Path, url: str) -> None:
    """It is said what is wrong with it, and what to do."""
    note(notes, url=url, root=str(tmp_path))
    done = run(tmp_path, "tools")
    assert (done.returncode, ":McpTools restart" in done.stderr) == (3, True)
    assert "Traceback" not in done.stderr


def test_names_do_not_act_on_the_terminal(notes: Path, tmp_path: Path) -> None:
    """Of a folder, in a message on stderr."""
    note(notes, root=f"/x{ESCAPE}")
    done = run(tmp_path, "tools")
    assert "/x\N{REPLACEMENT CHARACTER}]0;title" in done.stderr
    assert "\x1b" not in done.stderr


def test_json_does_not_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """It says the same in other words; what anybody can read stays as it is."""
    value = {"a": f"{ESCAPE}\x9b2J\u202e\ud800\U000e0041é\n漢"}
    show.as_json(value)
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert out.replace("\n", "").isprintable()
    assert "é" in out
    assert "漢" in out


@pytest.fixture
def stranger() -> Iterator[int]:
    """A port where somebody answers byte by byte, for ever."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                try:
                    while True:
                        connection.sendall(b"a")
                        time.sleep(PROOF_SECONDS / 10)
                except OSError:
                    pass

        thread = threading.Thread(target=drip)
        thread.start()
        yield server.getsockname()[1]
        thread.join(5)


def test_a_stranger_who_never_ends(stranger: int) -> None:
    """The proof of who listens there has a time, however it comes."""
    began = time.monotonic()
    assert not Endpoint(f"http://127.0.0.1:{stranger}/mcp", "token").is_ours()
    assert time.monotonic() - began < 5 * PROOF_SECONDS


def test_an_interrupt_while_it_starts() -> None:
    """It ends without a trace."""
    done = processes.run([sys.executable, "-c", INTERRUPTED, START], timeout=20)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_a_line_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """No part of it is a message."""
    monkeypatch.setattr(serve, "MAX_LINE", 8)
    assert list(serve._lines(io.BytesIO(b'{"a"}\n\n1234567\n{"a":   {"b":1}\n12345678\nend'))) == [
        b'{"a"}',
        b"1234567",
        b"{",
        b"1",
        b"end",
    ]
