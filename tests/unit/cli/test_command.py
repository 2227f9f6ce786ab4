"""The command `mcp-tools` with invalid instance files, closed streams and signals."""

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
def instances(tmp_path: Path) -> Path:
    """The directory of instance files."""
    directory = tmp_path / "state" / "nvim" / "mcp-tools" / "instances"
    directory.mkdir(parents=True, mode=0o700)
    return directory


def run(tmp_path: Path, *words: str, script: str = '"$@"', **more: str) -> subprocess.CompletedProcess[str]:
    """Runs the command by a shell script, with that home directory."""
    env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    for name in ("XDG_RUNTIME_DIR", "NVIM", "NVIM_LISTEN_ADDRESS", "NVIM_APPNAME", "PYTHONUNBUFFERED"):
        env.pop(name, None)
    env |= more
    cwd = tmp_path / "cwd"  # directories below the current one are not searched for editors
    cwd.mkdir(exist_ok=True)
    command = ["bash", "-c", script, "bash", sys.executable, PACKAGE, *words]
    return processes.run(command, env=env, cwd=cwd, timeout=20)


def write_instance(directory: Path, name: str = "one", **fields: Any) -> None:
    """Writes the file of a running editor."""
    known = {"pid": os.getpid(), "port": 1, "token": "t", "socket": "/s", "root": str(directory)}
    path = directory / f"{name}.json"
    path.touch(0o600)
    path.write_text(json.dumps(known | fields))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://x/mcp", "no Neovim with a running bridge"),
        ("http://[::1/mcp", "no Neovim with a running bridge"),
        ("http://127.0.0.1:99999/mcp", ":McpTools restart"),
        ("", ":McpTools restart"),
    ],
)
def test_an_invalid_url_is_reported(instances: Path, tmp_path: Path, url: str, message: str) -> None:
    write_instance(instances, url=url, root=str(tmp_path))
    done = run(tmp_path, "tools")
    assert (done.returncode, message in done.stderr) == (3, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[str]:
    """The address of a running editor without a bridge."""
    path = tmp_path / "silent"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield str(path)


def test_the_surrounding_editor_of_a_project_is_chosen(instances: Path, tmp_path: Path, silent: str) -> None:
    projects = {"/here": tmp_path, "/too": tmp_path, "/away": tmp_path / "away"}
    for focused, (address, root) in enumerate(projects.items()):
        write_instance(instances, address[1:], socket=address, root=str(root), focused_at=focused)

    def chosen(**variables: str) -> list[str]:
        listed = json.loads(run(tmp_path, "list", "--json", **variables).stdout)
        return [each["socket"] for each in listed if each["chosen"]]

    assert chosen() == ["/too"]
    assert chosen(NVIM="/here") == ["/here"]
    assert chosen(NVIM="/away") == ["/too"]
    for ended in ("/gone", "127.0.0.1:1", ":1", "127.0.0.1:99999", "x"):
        assert chosen(NVIM=ended) == ["/too"]
    assert chosen(NVIM="/gone", NVIM_LISTEN_ADDRESS="/here") == ["/here"]
    assert chosen(NVIM=silent) == []
    done = run(tmp_path, "tools", NVIM=silent)
    assert f"the Neovim at $NVIM ({silent}) has no running bridge: run :McpTools start in it" in done.stderr
    for name in ("here", "too"):
        (instances / f"{name}.json").unlink()
    assert chosen(NVIM="/away") == ["/away"]
    done = run(tmp_path, "tools", NVIM="/gone")
    assert (done.returncode, "$NVIM" in done.stderr) == (3, False), done.stderr


def test_names_are_printed_without_control_characters(instances: Path, tmp_path: Path) -> None:
    write_instance(instances, root=f"/x{ESCAPE}")
    done = run(tmp_path, "tools")
    assert "/x\N{REPLACEMENT CHARACTER}]0;title" in done.stderr
    assert "\x1b" not in done.stderr


def test_json_is_printed_with_control_characters_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a": f"{ESCAPE}\x9b2J\u202e\ud800\U000e0041é\n漢"}
    show.as_json(value)
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert out.replace("\n", "").isprintable()
    assert "é" in out
    assert "漢" in out


@pytest.mark.parametrize(
    ("script", "code", "error"),
    [
        ('"$@" >&-', 0, ""),
        ('"$@" 2>&-', 0, ""),
        ('"$@" <&-', 0, ""),
        ('"$@" | true; exit ${PIPESTATUS[0]}', 0, ""),
        ('"$@" >/dev/full', 1, "mcp-tools: [Errno 28]"),
    ],
)
@pytest.mark.parametrize("words", [("list",), ("clients",), ("--help",), ("stdio",)])
def test_closed_streams_are_no_error_but_a_failed_write_is(
    words: tuple[str, ...], script: str, code: int, error: str, instances: Path, tmp_path: Path
) -> None:
    write_instance(instances, root=str(tmp_path))
    done = run(tmp_path, *words, script=script)
    if words == ("stdio",):
        code, error = 0, ""
    assert (done.returncode, done.stderr[: len(error)]) == (code, error), done.stderr
    assert error or not done.stderr


def test_characters_outside_the_encoding_are_escaped(instances: Path, tmp_path: Path) -> None:
    write_instance(instances, root="/漢")
    more = {"PYTHONIOENCODING": "ascii"}
    for word, code in (("list", 0), ("tools", 3)):
        done = run(tmp_path, word, **more)
        assert done.returncode == code, done.stderr
        assert "/\\u6f22" in (done.stderr if code else done.stdout)


@pytest.mark.parametrize("words", ["tools", "clients", "config cursor", "connect cursor --yes", "list"])
def test_a_missing_working_directory_is_an_error(words: str, instances: Path, tmp_path: Path) -> None:
    (tmp_path / "cwd" / "gone").mkdir(parents=True)
    done = run(tmp_path, *words.split(), script='cd gone && rmdir ../gone && "$@"')
    assert done.returncode == {"tools": 3, "list": 0}.get(words, 2)
    assert words == "list" or "the working directory: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_instance_name_with_an_unknown_home_is_not_found(instances: Path, tmp_path: Path) -> None:
    write_instance(instances, root=str(tmp_path))
    done = run(tmp_path, "tools", "--instance", "~nobody-of-that-name/x")
    assert (done.returncode, "no Neovim is called" in done.stderr) == (3, True), done.stderr


@pytest.fixture
def foreign_server() -> Iterator[int]:
    """A port that answers byte by byte without end."""
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


@pytest.mark.slow
def test_a_foreign_server_that_never_ends_its_answer_is_given_up(foreign_server: int) -> None:
    began = time.monotonic()
    assert not BridgeClient(f"http://127.0.0.1:{foreign_server}/mcp", "token").is_ours()
    assert time.monotonic() - began < 10 * PROOF_SECONDS


def test_an_interrupt_during_the_start_ends_without_a_traceback() -> None:
    for how in ((), ("script",)):
        done = processes.run([sys.executable, "-c", INTERRUPTED, PACKAGE, *how], timeout=20)
        assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_a_line_that_is_too_long_is_split_and_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MAX_LINE", 8)
    lines = list(serve._lines(io.BytesIO(b'{"a"}\n\n1234567\n{"a":   {"b":1}\n12345678\nend')))
    assert lines == [b'{"a"}', b"1234567", b"{", b"1", b"end"]


def test_serve_names_missing_packages() -> None:
    done = processes.run([sys.executable, "-I", "-S", PACKAGE, "serve", "--nvim", "/nowhere"])
    assert done.returncode == 1
    assert "msgpack" in done.stderr
    assert "mcp-tools-nvim[bridge]" in done.stderr
