"""A proxy that adds the token for clients that cannot, and can cut event streams."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

EVENT_END = b"\n\n\r\n"  # an event, then the end of its chunk


class Proxy:
    """A port in front of a bridge.

    Args:
        upstream: port of the bridge.
        token: added to every request.
        cut: if the body of a request contains this, its event stream ends after `cut_after` events.
        cut_after: number of events.
    """

    def __init__(self, upstream: int, token: str, *, cut: bytes | None = None, cut_after: int = 2) -> None:
        self.upstream = upstream
        self.token = token
        self.cut = cut
        self.cut_after = cut_after
        self.port = 0
        self.cuts = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forwards one connection, request by request."""
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        self._streams.add(writer)
        back: asyncio.Task[None] | None = None
        up: asyncio.StreamWriter | None = None
        try:
            down, up = await asyncio.open_connection("127.0.0.1", self.upstream)
            self._streams.add(up)
            answer = _Answer(self)
            back = asyncio.create_task(answer.carry(down, writer))
            while request := await self._request(reader):
                answer.cut = self.cut is not None and self.cut in request
                up.write(request)
                await up.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # one side has closed: the other one is closed below
        finally:
            if back:
                back.cancel()
                await asyncio.gather(back, return_exceptions=True)
            for stream in (writer, up):
                if stream:
                    stream.close()
            self._tasks.discard(task)

    async def _request(self, reader: asyncio.StreamReader) -> bytes:
        """The next request with a changed head; empty when the client has closed."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return b""
        first, *lines = head[:-4].split(b"\r\n")
        length, chunked = 0, False
        kept = [first, b"Authorization: Bearer " + self.token.encode()]
        for line in lines:
            name, _, value = line.partition(b":")
            match name.strip().lower():
                case b"host" | b"origin":
                    line = line.replace(b":%d" % self.port, b":%d" % self.upstream)
                case b"content-length":
                    length = int(value)
                case b"transfer-encoding":
                    chunked = b"chunked" in value.lower()
            kept.append(line)
        body = await self._chunks(reader) if chunked else await reader.readexactly(length)
        return b"\r\n".join(kept) + b"\r\n\r\n" + body

    @staticmethod
    async def _chunks(reader: asyncio.StreamReader) -> bytes:
        """A chunked body as it was sent; trailers are not expected."""
        body = b""
        while True:
            size = await reader.readuntil(b"\r\n")
            data = await reader.readexactly(int(size.split(b";")[0], 16) + 2)
            body += size + data
            if data == b"\r\n":
                return body

    async def close(self) -> None:
        """Aborts open connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in self._streams:
            stream.transport.abort()
            with contextlib.suppress(OSError):
                await stream.wait_closed()


class _Answer:
    """The responses of one connection."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.cut = False
        self._seen = b""

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forwards bytes until the bridge closes or the answer is cut."""
        try:
            while data := await reader.read(65536):
                writer.write(data)
                if self.cut and self._is_due(data):
                    self.proxy.cuts += 1
                    writer.write(b"0\r\n\r\n")
                    break
                await writer.drain()
        except OSError:
            pass  # one side has closed
        writer.close()

    def _is_due(self, data: bytes) -> bool:
        self._seen += data
        head, _, body = self._seen.partition(b"\r\n\r\n")
        is_stream = b"text/event-stream" in head.lower()
        return is_stream and body.endswith(EVENT_END) and body.count(EVENT_END) >= self.proxy.cut_after


@contextlib.asynccontextmanager
async def proxied(
    upstream: int, token: str, *, cut: bytes | None = None, cut_after: int = 2
) -> AsyncIterator[Proxy]:
    """A running proxy on a free port (`proxy.port`)."""
    proxy = Proxy(upstream, token, cut=cut, cut_after=cut_after)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=1 << 20)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
