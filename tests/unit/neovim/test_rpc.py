"""The msgpack-RPC channel, against a peer that violates the protocol, and against Neovim."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import monotonic
from typing import Any

import msgpack
import pytest

from mcp_tools_nvim.errors import EditorError, EditorGoneError, LuaError, NoAnswerError
from mcp_tools_nvim.neovim.rpc import Channel, connect
from tests.support.nvim import Home, Spawn


class Peer:
    """A connection whose messages the test reads and sends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._unpacker = msgpack.Unpacker(raw=False)

    async def read(self) -> Any:
        async with asyncio.timeout(10):
            while True:
                for message in self._unpacker:
                    return message
                self._unpacker.feed(await self.reader.read(1 << 16))

    def send(self, message: Any) -> None:
        self.writer.write(msgpack.packb(message))

    async def answer(self, result: Any, error: Any = None) -> None:
        """Answers the next request."""
        self.send([1, (await self.read())[1], error, result])


class Line:
    """A channel, its peer, and the events of the channel."""

    def __init__(self, channel: Channel, peer: Peer, events: asyncio.Queue[Any]) -> None:
        self.channel, self.peer, self.events = channel, peer, events


@pytest.fixture
async def line(home: Home) -> AsyncIterator[Line]:
    peers: asyncio.Queue[Peer] = asyncio.Queue()
    path = str(home.path / "peer.sock")
    server = await asyncio.start_unix_server(lambda r, w: peers.put_nowait(Peer(r, w)), path)
    events: asyncio.Queue[Any] = asyncio.Queue()

    def on_event(name: str, args: list[Any]) -> None:
        if name == "throw":
            raise RuntimeError("thrown by the listener")
        events.put_nowait((name, args))

    channel = await connect(path, on_event)
    peer = await peers.get()
    yield Line(channel, peer, events)
    channel.close()
    peer.writer.close()
    server.close()
    with contextlib.suppress(OSError):
        await peer.writer.wait_closed()
    await asyncio.wait({channel.closed}, timeout=1)


def soon(seconds: float = 5.0) -> float:
    return monotonic() + seconds


async def test_answers_may_come_in_any_order(line: Line) -> None:
    first, second = line.channel.request("a", (1,), soon()), line.channel.request("b", (2,), soon(), str)
    one, two = await line.peer.read(), await line.peer.read()
    assert (one[0], one[2:], two[2:]) == (0, ["a", [1]], ["b", [2]])
    line.peer.send([1, two[1], None, 22])
    line.peer.send([1, one[1], None, 11])
    assert await asyncio.gather(first, second) == [11, "22"]


async def test_messages_written_in_one_turn_arrive_in_order(line: Line) -> None:
    """Also when the channel closes in the same turn."""
    asked = [line.channel.request("a", (0,), soon()), line.channel.request("a", (1,), soon())]
    line.channel.notify("b", (2,))
    line.channel.close()
    assert [(await line.peer.read())[-1] for _ in range(3)] == [[0], [1], [2]]
    faults = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(fault) for fault in faults] == [EditorGoneError] * 2


async def test_an_error_of_neovim_is_raised_as_luaerror(line: Line) -> None:
    for error in ([0, "no such thing"], "no such thing"):
        future = line.channel.request("a", (), soon())
        await line.peer.answer(None, error)
        with pytest.raises(LuaError, match=r"^no such thing$"):
            await future


@pytest.mark.parametrize("fault", [KeyError, RecursionError, OverflowError])
async def test_a_failed_decoder_fails_its_request_only(line: Line, fault: type[Exception]) -> None:
    def decode(_: Any) -> Any:
        raise fault

    future = line.channel.request("a", (), soon(), decode)
    await line.peer.answer({})
    with pytest.raises(EditorError, match="a: unexpected answer"):
        await future
    assert not line.channel.closed.done()


async def test_each_request_ends_at_its_own_deadline(line: Line) -> None:
    late, early = line.channel.request("a", (), soon(1)), line.channel.request("b", (), soon(0.1))
    with pytest.raises(NoAnswerError, match="b: no answer"):
        await early
    assert not late.done()
    with pytest.raises(NoAnswerError, match="a: no answer"):
        await late


async def test_late_and_unknown_answers_are_dropped(line: Line) -> None:
    expired, cancelled = line.channel.request("a", (), soon(0.05)), line.channel.request("b", (), soon())
    ids = [(await line.peer.read())[1], (await line.peer.read())[1]]
    cancelled.cancel()
    with pytest.raises(NoAnswerError):
        await expired
    for request_id in (*ids, 4711):
        line.peer.send([1, request_id, None, "late"])
    future = line.channel.request("c", (), soon())
    await line.peer.answer("right")
    assert await future == "right"


async def test_the_end_of_the_channel_fails_pending_and_later_requests(line: Line) -> None:
    waiting = [line.channel.request("a", (), soon(60)) for _ in range(10)]
    await line.peer.read()
    line.peer.writer.close()
    async with asyncio.timeout(10):
        await line.channel.closed
        for future in (*waiting, line.channel.request("a", (), soon(60))):
            with pytest.raises(EditorGoneError, match="Neovim has exited"):
                await future
    line.channel.notify("a", ())


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1",  # never used in msgpack
        b"HTTP/1.1 400 Bad Request\r\n\r\n",  # msgpack, but no message
        msgpack.packb([7, 1, 2]),
        msgpack.packb([1, "x", None, None]),
        msgpack.packb({}),
        b"\x81\x90\x01",  # a map with a list as key
        b"\xdd\x7f\xff\xff\xff",  # a list of two thousand million
        b"\x91" * 2000 + b"\x01",  # too deep
    ],
)
async def test_invalid_data_ends_channels(line: Line, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    future = line.channel.request("a", (), soon())
    line.peer.writer.write(data)
    async with asyncio.timeout(10):
        await line.channel.closed
    with pytest.raises(EditorGoneError, match="does not speak msgpack-RPC"):
        await future
    assert "does not speak msgpack-RPC" in caplog.messages[0]


async def test_requests_of_the_peer_are_refused(line: Line) -> None:
    line.peer.send([0, 5, "anything", [1]])
    assert await line.peer.read() == [1, 5, [0, "the bridge answers no requests"], None]


async def test_an_exception_of_a_listener_is_logged(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    line.peer.send([2, "throw", []])
    line.peer.send([2, "fine", [1]])
    async with asyncio.timeout(10):
        assert await line.events.get() == ("fine", [1])
    assert "thrown by the listener" in caplog.messages[0]


async def test_messages_may_arrive_in_any_number_of_pieces(line: Line) -> None:
    for byte in msgpack.packb([2, "slow", ["é" * 10]]):
        line.peer.writer.write(bytes([byte]))
        await line.peer.writer.drain()
        await asyncio.sleep(0)
    line.peer.writer.write(b"".join(msgpack.packb([2, "many", [n]]) for n in range(1000)))
    async with asyncio.timeout(10):
        assert await line.events.get() == ("slow", ["é" * 10])
        assert [(await line.events.get())[1][0] for _ in range(1000)] == list(range(1000))


async def test_a_message_in_pieces_after_a_large_one_is_read(line: Line) -> None:
    """The parser is renewed after large messages, but not within one."""
    large, small = msgpack.packb([2, "large", ["x" * (2 << 20)]]), msgpack.packb([2, "small", [{"clock": 1}]])
    for cut in range(1, len(small)):
        line.channel.data_received(large[:-1])
        line.channel.data_received(large[-1:] + small[:cut])
        line.channel.data_received(small[cut:])
    for _ in range(1, len(small)):
        assert line.events.get_nowait()[0] == "large"
        assert line.events.get_nowait() == ("small", [{"clock": 1}])
    assert not line.channel.closed.done()


async def test_arguments_that_msgpack_cannot_encode_fail_their_request(line: Line) -> None:
    for value in (2**70, "\ud800", object()):
        with pytest.raises(EditorError, match="do not fit msgpack"):
            await line.channel.request("a", (value,), soon())
    line.channel.notify("b", (1,))
    assert await line.peer.read() == [2, "b", [1]]


async def test_a_channel_is_congested_while_its_peer_does_not_read(line: Line) -> None:
    size = 8 << 20
    line.channel.notify("big", (b"x" * size,))
    assert line.channel.congested
    assert not await line.channel.drain(soon(0.05))
    drained = asyncio.ensure_future(line.channel.drain(soon(5)))
    received = 0
    while received < size:
        received += len(await line.peer.reader.read(1 << 20))
    assert await drained
    assert not line.channel.congested


async def test_neovim_answers_over_a_unix_socket(spawn_nvim: Spawn) -> None:
    """With bytes that are not UTF-8, large and nested values."""
    nvim = await spawn_nvim()
    channel = await connect(str(nvim.socket), lambda name, args: None)

    async def lua(code: str, *args: Any) -> Any:
        return await channel.request("nvim_exec_lua", (code, args), soon())

    assert await lua(r"return '\255bin'") == "\udcffbin"
    assert await lua("return (...) == '\\255bin'", "\udcffbin") is True
    assert len(await lua("return ('x'):rep(12 * 2^20)")) == 12 << 20
    assert await lua("return #...", "y" * (4 << 20)) == 4 << 20
    assert await lua("return {{}, vim.empty_dict(), 2^53, 1.5, vim.NIL}") == [[], {}, 2**53, 1.5, None]
    with pytest.raises(LuaError, match="boom"):
        await lua("error('boom')")
    assert monotonic() - channel.last_heard < 1
    futures = [channel.request("nvim_exec_lua", ("return ...", (n,)), soon()) for n in range(2000)]
    assert await asyncio.gather(*futures) == list(range(2000))
    await nvim.stop()
    async with asyncio.timeout(10):
        await channel.closed


async def test_neovim_answers_over_tcp(spawn_nvim: Spawn, free_port: Callable[[], int]) -> None:
    nvim, port = await spawn_nvim(), free_port()
    await nvim.request("nvim_call_function", "serverstart", [f"127.0.0.1:{port}"])
    channel = await connect(f"127.0.0.1:{port}", lambda name, args: None)
    assert await channel.request("nvim_exec_lua", ("return 42", ()), soon()) == 42
    channel.close()
    await channel.closed


@pytest.mark.parametrize("address", ["absent.sock", "127.0.0.1:1"])
async def test_an_address_without_a_listener_raises_oserror(address: str, tmp_path: Path) -> None:
    where = address if ":" in address else str(tmp_path / address)
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the kind of socket
        await connect(where, lambda name, args: None)
