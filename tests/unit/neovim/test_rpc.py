"""The msgpack-RPC channel, against a peer that does what Neovim would not, and against Neovim."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Any

import msgpack
import pytest

from mcp_tools_nvim.errors import EditorError, EditorGoneError, LuaError, NoAnswerError
from mcp_tools_nvim.neovim.rpc import Channel, connect
from tests.support.nvim import Home, Nvim

Spawn = Callable[..., Awaitable[Nvim]]


class Peer:
    """One connection that a test answers by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._unpacker = msgpack.Unpacker(raw=False)

    async def read(self) -> Any:
        async with asyncio.timeout(5):
            while True:
                for message in self._unpacker:
                    return message
                self._unpacker.feed(await self.reader.read(1 << 16))

    def send(self, message: Any) -> None:
        self.writer.write(msgpack.packb(message))


class Line:
    """A channel, its peer, and what the channel told."""

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


async def test_answers_find_their_requests_in_any_order(line: Line) -> None:
    """Two requests, answered the other way round."""
    first, second = line.channel.request("a", (1,), soon()), line.channel.request("b", (2,), soon(), str)
    one, two = await line.peer.read(), await line.peer.read()
    assert (one[0], one[2:], two[2:]) == (0, ["a", [1]], ["b", [2]])
    line.peer.send([1, two[1], None, 22])
    line.peer.send([1, one[1], None, 11])
    assert await asyncio.gather(first, second) == [11, "22"]


async def test_what_is_written_together_arrives_in_order(line: Line) -> None:
    """Requests and notifications of one turn of the loop; also when the channel closes in the same turn."""
    asked = [line.channel.request("a", (0,), soon()), line.channel.request("a", (1,), soon())]
    line.channel.notify("b", (2,))
    line.channel.close()
    assert [(await line.peer.read())[-1] for _ in range(3)] == [[0], [1], [2]]
    assert [type(fault) for fault in await asyncio.gather(*asked, return_exceptions=True)] == [
        EditorGoneError
    ] * 2


async def test_an_error_is_raised(line: Line) -> None:
    """Neovim's `[type, text]` becomes a LuaError with the text; so does any other shape."""
    for error in ([0, "no such thing"], "no such thing"):
        future = line.channel.request("a", (), soon())
        line.peer.send([1, (await line.peer.read())[1], error, None])
        with pytest.raises(LuaError, match=r"^no such thing$"):
            await future


async def test_an_answer_of_unknown_shape_fails_its_request_only(line: Line) -> None:
    """What the decoder throws ends that request, not the channel."""
    future = line.channel.request("a", (), soon(), lambda raw: raw["absent"])
    line.peer.send([1, (await line.peer.read())[1], None, {}])
    with pytest.raises(EditorError, match="a: unexpected answer"):
        await future
    assert not line.channel.closed.done()


@pytest.mark.parametrize("fault", [RecursionError, OverflowError])
async def test_whatever_the_decoder_raises_fails_its_request_only(line: Line, fault: type[Exception]) -> None:
    """An answer that is nested too deep must not end the channel, and with it the bridge."""

    def decode(_: Any) -> Any:
        raise fault

    future = line.channel.request("a", (), soon(), decode)
    line.peer.send([1, (await line.peer.read())[1], None, {}])
    with pytest.raises(EditorError, match="a: unexpected answer"):
        await future
    assert not line.channel.closed.done()


async def test_a_request_ends_at_its_deadline(line: Line) -> None:
    """Each request ends at its own deadline, also one that is set later but ends earlier."""
    begun = monotonic()
    late, early = line.channel.request("a", (), soon(1)), line.channel.request("b", (), soon(0.1))
    with pytest.raises(NoAnswerError, match="b: no answer"):
        await early
    assert not late.done()
    with pytest.raises(NoAnswerError, match="a: no answer"):
        await late
    assert monotonic() - begun > 0.99


async def test_late_and_unknown_answers_are_dropped(line: Line) -> None:
    """An answer after the deadline, after a cancel, or to nothing changes nothing."""
    expired, cancelled = line.channel.request("a", (), soon(0.05)), line.channel.request("b", (), soon())
    ids = [(await line.peer.read())[1], (await line.peer.read())[1]]
    cancelled.cancel()
    with pytest.raises(NoAnswerError):
        await expired
    for request_id in (*ids, 4711):
        line.peer.send([1, request_id, None, "late"])
    future = line.channel.request("c", (), soon())
    line.peer.send([1, (await line.peer.read())[1], None, "right"])
    assert await future == "right"


async def test_the_end_of_the_channel_fails_all_that_waits(line: Line) -> None:
    """Pending requests fail at once, later ones too, and nothing hangs."""
    waiting = [line.channel.request("a", (), soon(60)) for _ in range(10)]
    await line.peer.read()
    line.peer.writer.close()
    async with asyncio.timeout(1):
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
async def test_bytes_that_are_no_messages_end_the_channel(
    line: Line, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Garbage closes the channel with an error that says so, and fails what waits."""
    future = line.channel.request("a", (), soon())
    line.peer.writer.write(data)
    async with asyncio.timeout(1):
        await line.channel.closed
    with pytest.raises(EditorGoneError, match="does not speak msgpack-RPC"):
        await future
    assert "does not speak msgpack-RPC" in caplog.messages[0]


async def test_requests_of_the_peer_are_refused(line: Line) -> None:
    """Neovim could ask, but the bridge answers nothing but a refusal."""
    line.peer.send([0, 5, "anything", [1]])
    assert await line.peer.read() == [1, 5, [0, "the bridge answers no requests"], None]


async def test_an_event_that_throws_is_logged(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    """A listener's failure ends neither the channel nor the next event."""
    line.peer.send([2, "throw", []])
    line.peer.send([2, "fine", [1]])
    async with asyncio.timeout(1):
        assert await line.events.get() == ("fine", [1])
    assert "thrown by the listener" in caplog.messages[0]


async def test_messages_may_arrive_in_any_pieces(line: Line) -> None:
    """One byte at a time, or many messages at once."""
    for byte in msgpack.packb([2, "slow", ["é" * 10]]):
        line.peer.writer.write(bytes([byte]))
        await line.peer.writer.drain()
        await asyncio.sleep(0)
    line.peer.writer.write(b"".join(msgpack.packb([2, "many", [n]]) for n in range(1000)))
    async with asyncio.timeout(5):
        assert await line.events.get() == ("slow", ["é" * 10])
        assert [(await line.events.get())[1][0] for _ in range(1000)] == list(range(1000))


async def test_a_message_may_arrive_in_pieces_after_a_large_one(line: Line) -> None:
    """The parser, which is renewed after large messages, is not renewed in the middle of one."""
    large, small = msgpack.packb([2, "large", ["x" * (2 << 20)]]), msgpack.packb([2, "small", [{"clock": 1}]])
    for cut in range(1, len(small)):
        line.channel.data_received(large[:-1])
        line.channel.data_received(large[-1:] + small[:cut])
        line.channel.data_received(small[cut:])
    for _ in range(1, len(small)):
        assert line.events.get_nowait()[0] == "large"
        assert line.events.get_nowait() == ("small", [{"clock": 1}])
    assert not line.channel.closed.done()


async def test_arguments_that_do_not_fit_fail_their_request(line: Line) -> None:
    """What msgpack cannot carry fails that request; the next one goes through whole."""
    for value in (2**70, "\ud800", object()):
        with pytest.raises(EditorError, match="do not fit msgpack"):
            await line.channel.request("a", (value,), soon())
    line.channel.notify("b", (1,))
    assert await line.peer.read() == [2, "b", [1]]


async def test_congestion_is_seen_and_ends(line: Line) -> None:
    """A peer that does not read makes the channel congested; reading again frees it."""
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


async def test_neovim_over_a_socket(spawn_nvim: Spawn) -> None:
    """Bytes that are not UTF-8 go both ways, sizes and nesting are no matter."""
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
    async with asyncio.timeout(1):
        await channel.closed


async def test_neovim_over_tcp(spawn_nvim: Spawn, free_port: Callable[[], int]) -> None:
    """`host:port` reaches a Neovim that listens on TCP."""
    nvim, port = await spawn_nvim(), free_port()
    await nvim.request("nvim_call_function", "serverstart", [f"127.0.0.1:{port}"])
    channel = await connect(f"127.0.0.1:{port}", lambda name, args: None)
    assert await channel.request("nvim_exec_lua", ("return 42", ()), soon()) == 42
    channel.close()
    await channel.closed


@pytest.mark.parametrize("address", ["absent.sock", "127.0.0.1:1"])
async def test_nobody_there(address: str, tmp_path: Path) -> None:
    """An address where nobody listens is an OSError at once."""
    where = address if ":" in address else str(tmp_path / address)
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the kind of socket
        await connect(where, lambda name, args: None)
