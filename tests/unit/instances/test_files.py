"""Instance files, and who listens on a port."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from mcp_tools_nvim.instances.files import own_directories, read_all
from mcp_tools_nvim.instances.holder import holder_of
from mcp_tools_nvim.instances.proof import prove

Answer = Callable[[str, int], bytes]


def proof_of(token: str, other_port: int | None = None) -> Answer:
    def answer(nonce: str, port: int) -> bytes:
        proof = prove(token, other_port or port, nonce)
        body = json.dumps({"status": "ok", "proof": proof}).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    return answer


class Holder:
    """A server that answers /health as the test says, and keeps the last request."""

    def __init__(self) -> None:
        self.received = b""
        self.port = 0

    async def serve(self, answer: Answer | None) -> asyncio.Server:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.received = await reader.readuntil(b"\r\n\r\n")
            if answer is None:
                await reader.read()
            else:
                query = urlsplit(self.received.split()[1].decode()).query
                writer.write(answer(parse_qs(query)["nonce"][0], self.port))
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server


Hold = Callable[[Answer | None], Awaitable[Holder]]


@pytest.fixture
async def hold() -> AsyncIterator[Hold]:
    servers: list[asyncio.Server] = []

    async def start(answer: Answer | None) -> Holder:
        holder = Holder()
        servers.append(await holder.serve(answer))
        return holder

    yield start
    for server in servers:
        server.close()


def write(directory: Path, name: str, **values: Any) -> Path:
    path = directory / name
    path.write_text(json.dumps({"pid": 1, "token": "theirs", "root": "/r"} | values))
    path.chmod(0o600)
    return path


async def test_another_editor_of_this_user_is_recognized_by_its_proof(tmp_path: Path, hold: Hold) -> None:
    """The tokens are never sent."""
    holder = await hold(proof_of("theirs"))
    write(tmp_path, "1.json", port=holder.port)
    assert await holder_of("127.0.0.1", holder.port, str(tmp_path), "mine") == "ours"
    assert b"theirs" not in holder.received
    assert b"mine" not in holder.received


async def test_an_editor_of_this_project_is_recognized_without_a_file(hold: Hold) -> None:
    holder = await hold(proof_of("mine"))
    assert await holder_of("127.0.0.1", holder.port, None, "mine") == "ours"


def body(data: bytes) -> Answer:
    return lambda *_: b"HTTP/1.1 200 OK\r\n\r\n" + data


@pytest.mark.parametrize(
    "answer",
    [
        proof_of("guessed"),
        proof_of("mine", other_port=1),  # forwarded from another bridge of this project
        *map(body, (b'{"status":"ok"}', b'{"proof":7}', b"[1]", b"[" * 60_000, '{"proof":"é"}'.encode())),
        lambda *_: b"HTTP/1.1 404 Not Found\r\n\r\n",
        lambda *_: b"SSH-2.0-OpenSSH\r\n",
        lambda *_: b"\xff\xfe" * 100_000,
    ],
)
async def test_without_a_proof_the_holder_is_foreign(tmp_path: Path, hold: Hold, answer: Answer) -> None:
    """Although a file names the port."""
    holder = await hold(answer)
    write(tmp_path, "1.json", port=holder.port)
    assert await holder_of("127.0.0.1", holder.port, str(tmp_path), "mine") == "foreign"


@pytest.mark.slow
async def test_a_silent_holder_is_foreign(tmp_path: Path, hold: Hold) -> None:
    holder = await hold(None)
    async with asyncio.timeout(10):
        assert await holder_of("127.0.0.1", holder.port, str(tmp_path), "mine") == "foreign"


async def test_a_port_that_takes_no_connection_is_foreign() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        assert await holder_of("127.0.0.1", held.getsockname()[1], None, "mine") == "foreign"


def test_partial_invalid_exposed_and_linked_files_are_ignored(tmp_path: Path) -> None:
    url = "http://127.0.0.1:5/mcp"
    good = write(tmp_path, "1.json", port=5, url=url, focused_at=2)
    write(tmp_path, "2.json", port=5).chmod(0o620)
    (tmp_path / "3.json").write_text('{"pid": 1, "po')
    write(tmp_path, "4.json", port="5")
    (tmp_path / "5.json").symlink_to(good)
    write(tmp_path, "6.json", port=5).chmod(0o644)  # as git checks it out
    found = read_all(str(tmp_path))
    assert [(i.port, i.url, i.focused_at) for i in found] == [(5, url, 2)]
    assert "theirs" not in repr(found)
    for mode in (0o770, 0o755):
        tmp_path.chmod(mode)
        assert read_all(str(tmp_path)) == []
    assert read_all(None) == read_all(str(tmp_path / "absent")) == []


def test_only_bridges_of_this_machine_are_found(tmp_path: Path) -> None:
    """A URL must be HTTP on a loopback address."""
    good = ["http://127.0.0.1:5/mcp", "http://[::1]:5/mcp", "http://127.0.0.2:5/mcp", ""]
    bad = "http://192.0.2.1:5/mcp http://example.org/mcp https://127.0.0.1:5/ http://a@127.0.0.1/ x"
    for number, url in enumerate([*good, *bad.split()]):
        write(tmp_path, f"{number}.json", port=5, url=url)
    assert sorted(i.url for i in read_all(str(tmp_path))) == sorted(good)


def used(
    runtime: Path | str = "", state: Path | str = "x", home: Path | None = None, **more: str
) -> list[str]:
    """The directories for these values of XDG_RUNTIME_DIR and XDG_STATE_HOME."""
    environ = {"XDG_RUNTIME_DIR": str(runtime), "XDG_STATE_HOME": str(state), **more}
    return own_directories(environ, **({"home": str(home)} if home else {}))


def test_a_directory_in_a_repository_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of a project may set variables that name a directory of it."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    inside, outside = tmp_path / "project" / "run", tmp_path / "run"
    for directory in (inside, outside):
        directory.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(inside)
    monkeypatch.chdir(tmp_path / "project")
    for name in (inside, tmp_path / "link", "run", "project/run"):
        assert used(name, name) == []
    assert used("", outside, NVIM_APPNAME="../project/x") == []
    assert used(outside) == [f"{outside}/mcp-tools"]
    (tmp_path / "project" / ".git").rmdir()
    (tmp_path / "project" / ".git").write_text("gitdir: elsewhere")  # a linked work tree
    assert used("", inside) == []
    (tmp_path / "project" / ".git").unlink()  # an unpacked archive
    assert used("", inside) == []
    for name in ("../project/x", str(outside)):
        assert used("", outside, NVIM_APPNAME=name) == []


def test_a_repository_has_no_instance_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone may have the expected name, and private files with umask 077."""
    clone = tmp_path / "mcp-tools"
    (clone / "sub").mkdir(parents=True, mode=0o700)
    git = clone / ".git"
    git.mkdir()
    for place in (clone, clone / "sub", tmp_path):
        monkeypatch.chdir(place)
        assert used(tmp_path) == used(clone / "..") == []
    git.rmdir()  # an unpacked archive
    monkeypatch.chdir(clone)
    assert used(tmp_path) == []
    monkeypatch.chdir("/")
    assert used(tmp_path) == [str(clone)]
    up = f"{tmp_path}/mcp-tools/.."
    assert used(up, up) == []


def test_a_home_directory_may_be_a_repository(tmp_path: Path) -> None:
    """Some users keep their configuration in one."""
    (tmp_path / ".git").mkdir()
    assert used("", tmp_path / "state") == []
    instances = str(tmp_path / "state" / "nvim" / "mcp-tools" / "instances")
    assert used("", tmp_path / "state", tmp_path) == [instances]


def test_special_huge_and_nested_files_are_ignored(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1.json", 0o600)
    (tmp_path / "2.json").mkdir()
    for name, text in (("3.json", "[" * 60_000), ("4.json", '{"pid": ' + "9" * 5_000 + "}")):
        write(tmp_path, name).write_text(text)
    write(tmp_path, "5.json", port=6, root="x" * 100_000)
    write(tmp_path, "6.json", port=7, focused_at=float("nan"))
    write(tmp_path, "7.json", port=8, focused_at=float("inf"))
    write(tmp_path, "8.json", port=9, focused_at=10**400)
    write(tmp_path, "9.json", port=10)
    assert [(i.port, i.focused_at) for i in read_all(str(tmp_path))] == [(7, 0), (8, 0), (9, 0), (10, 0)]


def test_a_directory_that_is_not_utf_8_keeps_its_bytes(tmp_path: Path) -> None:
    directory = os.fsencode(tmp_path) + b"/caf\xe9"
    path = write(tmp_path, "1.json")
    path.write_bytes(b'{"pid": 1, "port": 5, "token": "t", "root": "%s"}' % directory)
    assert [os.fsencode(instance.root) for instance in read_all(str(tmp_path))] == [directory]


def test_without_xdg_runtime_dir_the_directory_of_the_system_is_used(tmp_path: Path) -> None:
    """An empty variable disables it."""
    usual = tmp_path / "run" / str(os.getuid())
    usual.mkdir(parents=True, mode=0o700)
    environ, sessions = {"XDG_STATE_HOME": str(tmp_path)}, str(usual.parent)
    state = str(tmp_path / "nvim" / "mcp-tools" / "instances")
    assert own_directories(environ, sessions) == [str(usual / "mcp-tools"), state]
    assert own_directories(environ | {"XDG_RUNTIME_DIR": ""}, sessions) == [state]
    named = own_directories(environ | {"XDG_RUNTIME_DIR": str(tmp_path)}, sessions)
    assert named == [str(tmp_path / "mcp-tools"), state]
    usual.chmod(0o777)
    assert own_directories(environ, sessions) == [state]
