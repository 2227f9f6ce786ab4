"""Who holds a port: files, owners, proofs."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from time import monotonic
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
    """A server that answers /health as the test wants, and remembers what it was sent."""

    def __init__(self) -> None:
        self.received = b""
        self.port = 0

    async def serve(self, answer: Answer | None) -> asyncio.Server:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.received = await reader.readuntil(b"\r\n\r\n")
            if answer is not None:
                query = urlsplit(self.received.split()[1].decode()).query
                writer.write(answer(parse_qs(query)["nonce"][0], self.port))
                writer.close()
            else:
                await reader.read()
                writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server


@pytest.fixture
async def hold() -> AsyncIterator[Callable[[Answer | None], Awaitable[Holder]]]:
    servers: list[asyncio.Server] = []

    async def start(answer: Answer | None) -> Holder:
        holder = Holder()
        servers.append(await holder.serve(answer))
        return holder

    yield start
    for server in servers:
        server.close()


def write(folder: Path, name: str, **values: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps({"pid": 1, "token": "theirs", "root": "/r"} | values))
    path.chmod(0o600)
    return path


async def test_another_editor_of_this_user_proves_itself(
    tmp_path: Path, hold: Callable[[Answer | None], Awaitable[Holder]]
) -> None:
    """An instance file names the port and the holder knows its token, which itself is never sent."""
    holder = await hold(proof_of("theirs"))
    write(tmp_path, "1.json", port=holder.port)
    assert await holder_of("127.0.0.1", holder.port, str(tmp_path), "mine") == "ours"
    assert b"theirs" not in holder.received
    assert b"mine" not in holder.received


async def test_an_editor_of_this_project_needs_no_file_yet(
    hold: Callable[[Answer | None], Awaitable[Holder]],
) -> None:
    """Two editors of one project that start together share the token."""
    holder = await hold(proof_of("mine"))
    assert await holder_of("127.0.0.1", holder.port, None, "mine") == "ours"


@pytest.mark.parametrize(
    "answer",
    [
        proof_of("guessed"),
        proof_of("mine", other_port=1),  # passed on from another bridge of this project
        lambda *_: b'HTTP/1.1 200 OK\r\n\r\n{"status":"ok"}',
        lambda *_: b'HTTP/1.1 200 OK\r\n\r\n{"proof":7}',
        lambda *_: b"HTTP/1.1 404 Not Found\r\n\r\n",
        lambda *_: b"SSH-2.0-OpenSSH\r\n",
        lambda *_: b"\xff\xfe" * 100_000,
        lambda *_: b"HTTP/1.1 200 OK\r\n\r\n[1]",
        lambda *_: b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 60_000,
        lambda *_: 'HTTP/1.1 200 OK\r\n\r\n{"proof":"é"}'.encode(),
    ],
)
async def test_whoever_has_no_proof_is_a_stranger(
    tmp_path: Path, hold: Callable[[Answer | None], Awaitable[Holder]], answer: Answer
) -> None:
    """A file that names the port is not enough: the pid may be gone and somebody else may listen."""
    holder = await hold(answer)
    write(tmp_path, "1.json", port=holder.port)
    assert await holder_of("127.0.0.1", holder.port, str(tmp_path), "mine") == "foreign"


@pytest.mark.slow
async def test_a_silent_holder_is_a_stranger_after_a_second(
    tmp_path: Path, hold: Callable[[Answer | None], Awaitable[Holder]]
) -> None:
    """Waiting for the proof has its limit."""
    holder = await hold(None)
    begun = monotonic()
    assert await holder_of("127.0.0.1", holder.port, str(tmp_path), "mine") == "foreign"
    assert monotonic() - begun < 2


async def test_nobody_there_is_a_stranger() -> None:
    """A port that is held but does not take connections has no proof either."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        assert await holder_of("127.0.0.1", held.getsockname()[1], None, "mine") == "foreign"


def test_only_private_whole_files_count(tmp_path: Path) -> None:
    """Half-written, foreign-shaped, writable or linked files are left out."""
    good = write(tmp_path, "1.json", port=5, url="http://x", focused_at=2)
    write(tmp_path, "2.json", port=5).chmod(0o620)
    (tmp_path / "3.json").write_text('{"pid": 1, "po')
    write(tmp_path, "4.json", port="5")
    (tmp_path / "5.json").symlink_to(good)
    found = read_all(str(tmp_path))
    assert [(i.port, i.url, i.focused_at) for i in found] == [(5, "http://x", 2)]
    assert "theirs" not in repr(found)
    tmp_path.chmod(0o770)
    assert read_all(str(tmp_path)) == []
    assert read_all(None) == read_all(str(tmp_path / "absent")) == []


def test_odd_files_are_left_out_at_once(tmp_path: Path) -> None:
    """What is no regular file, too large or nested without end holds nobody up and hides no other file."""
    os.mkfifo(tmp_path / "1.json", 0o600)
    (tmp_path / "2.json").mkdir()
    for name, text in (("3.json", "[" * 60_000), ("4.json", '{"pid": ' + "9" * 5_000 + "}")):
        write(tmp_path, name).write_text(text)
    write(tmp_path, "5.json", port=6, root="x" * 100_000)
    write(tmp_path, "6.json", port=7, focused_at=float("nan"))
    write(tmp_path, "7.json", port=8, focused_at=float("inf"))
    write(tmp_path, "8.json", port=9, focused_at=10**400)
    write(tmp_path, "9.json", port=10)
    begun = monotonic()
    assert [(i.port, i.focused_at) for i in read_all(str(tmp_path))] == [(7, 0), (8, 0), (9, 0), (10, 0)]
    assert monotonic() - begun < 2


def test_a_folder_that_is_no_utf_8(tmp_path: Path) -> None:
    """Its bytes stand in the file as the editor has them, and name the same folder."""
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    path = write(tmp_path, "1.json")
    path.write_bytes(b'{"pid": 1, "port": 5, "token": "t", "root": "%s"}' % folder)
    assert [os.fsencode(instance.root) for instance in read_all(str(tmp_path))] == [folder]


def test_folders_without_the_variable(tmp_path: Path) -> None:
    """What `ssh` starts may lack XDG_RUNTIME_DIR: the system's folder is looked at; an empty one says no."""
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
