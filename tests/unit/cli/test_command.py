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

from mcp_tools_nvim.cli import show
from mcp_tools_nvim.relay import serve
from mcp_tools_nvim.relay.bridge_client import PROOF_SECONDS, BridgeClient
from tests.support import processes
from tests.support.nvim import ROOT

PACKAGE = str(ROOT / "bridge" / "mcp_tools_nvim")
ESCAPE = "\x1b]0;title\x07"
INTERRUPTED = """
import os, runpy, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp_tools_nvim.cli.show":
            os.kill(os.getpid(), signal.SIGINT)

package = sys.argv[1]
sys.meta_path.insert(0, Finder())
if sys.argv[2:]:  # as a console script does
    sys.path.insert(0, os.path.dirname(package))
    sys.argv = ["mcp-tools", "list"]
    from mcp_tools_nvim.__main__ import script
    script()
sys.argv = [package, "list"]
runpy.run_path(package, run_name="__main__")
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The folder in which editors note themselves."""
    folder = tmp_path / "state" / "nvim" / "mcp-tools" / "instances"
    folder.mkdir(parents=True, mode=0o700)
    return folder


def run(tmp_path: Path, *words: str, script: str = '"$@"', **more: str) -> subprocess.CompletedProcess[str]:
    """The command, in that folder, as a shell runs it by `script`."""
    env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), **more}
    for name in ("XDG_RUNTIME_DIR", "NVIM", "NVIM_LISTEN_ADDRESS", "NVIM_APPNAME", "PYTHONUNBUFFERED"):
        env.pop(name, None)
    return processes.run(
        ["bash", "-c", script, "bash", sys.executable, PACKAGE, *words], env=env, cwd=tmp_path, timeout=20
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


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ('"$@" >&-', 0, ""),
        ('"$@" 2>&-', 0, ""),
        ('"$@" <&-', 0, ""),
        ('"$@" | true; exit ${PIPESTATUS[0]}', 0, ""),
        ('"$@" >/dev/full', 1, "mcp-tools: [Errno 28]"),
    ],
)
@pytest.mark.parametrize("words", [("list",), ("clients",), ("--help",), ("stdio",)])
def test_streams_that_are_not_there(
    words: tuple[str, ...], script: str, code: int, said: str, notes: Path, tmp_path: Path
) -> None:
    """Closed, or nobody reads: that is no fault; what cannot be written is told."""
    note(notes, root=str(tmp_path))
    done = run(tmp_path, *words, script=script)
    if words == ("stdio",):
        code, said = 0, ""
    assert (done.returncode, done.stderr[: len(said)]) == (code, said), done.stderr
    assert said or not done.stderr


def test_an_encoding_that_has_not_all_characters(notes: Path, tmp_path: Path) -> None:
    """They are written as escapes, on both streams."""
    note(notes, root="/漢")
    more = {"PYTHONIOENCODING": "ascii"}
    done = run(tmp_path, "list", **more)
    assert (done.returncode, "/\\u6f22" in done.stdout) == (0, True), done.stderr
    done = run(tmp_path, "tools", **more)
    assert (done.returncode, "/\\u6f22" in done.stderr) == (3, True), done.stderr


@pytest.mark.parametrize("words", ["tools", "clients", "config cursor", "connect cursor --yes", "list"])
def test_a_working_folder_that_is_gone(words: str, notes: Path, tmp_path: Path) -> None:
    """It is said, and nothing is written in its place."""
    (tmp_path / "gone").mkdir()
    done = run(tmp_path, *words.split(), script='cd gone && rmdir ../gone && "$@"')
    assert done.returncode == {"tools": 3, "list": 0}.get(words, 2)
    assert words == "list" or "the working directory: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_home_of_nobody(notes: Path, tmp_path: Path) -> None:
    """A name of an editor that begins with one is none."""
    note(notes, root=str(tmp_path))
    done = run(tmp_path, "tools", "--instance", "~nobody-of-that-name/x")
    assert (done.returncode, "no Neovim is called" in done.stderr) == (3, True), done.stderr


@pytest.fixture
def foreign_server() -> Iterator[int]:
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


def test_a_stranger_who_never_ends(foreign_server: int) -> None:
    """The proof of who listens there has a time, however it comes."""
    began = time.monotonic()
    assert not BridgeClient(f"http://127.0.0.1:{foreign_server}/mcp", "token").is_ours()
    assert time.monotonic() - began < 5 * PROOF_SECONDS


def test_an_interrupt_while_it_starts() -> None:
    """It ends without a trace."""
    for how in ((), ("script",)):
        done = processes.run([sys.executable, "-c", INTERRUPTED, PACKAGE, *how], timeout=20)
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


def test_serve_names_missing_packages() -> None:
    """Without the packages of the bridge `serve` says which are missing, and what to install."""
    program = str(ROOT / "bridge" / "mcp_tools_nvim")
    done = processes.run([sys.executable, "-I", "-S", program, "serve", "--nvim", "/nowhere"])
    assert done.returncode == 1
    assert "msgpack" in done.stderr
    assert "mcp-tools-nvim[bridge]" in done.stderr
