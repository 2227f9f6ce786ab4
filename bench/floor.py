"""The floor: the cost of a bare aiohttp `web.Server` and one round trip to Neovim, without our code.

    python bench/floor.py NVIM_SOCKET

`/lua` awaits `nvim_exec_lua('return 1')` and echoes; `/echo` echoes; `/fixed` returns what was PUT there.
It uses the event loop of the bridge, so that a ratio is the overhead of the bridge.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from typing import Any

import msgpack
from aiohttp import web

try:
    from uvloop import run
except ImportError:  # optional in the bridge, too
    from asyncio import run


class Neovim(asyncio.Protocol):
    """A minimal msgpack-RPC client."""

    def __init__(self) -> None:
        self.ids = itertools.count()
        self.pending: dict[int, asyncio.Future[Any]] = {}
        self.unpacker = msgpack.Unpacker()
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.unpacker.feed(data)
        for _, request_id, error, result in self.unpacker:
            assert error is None, error
            self.pending.pop(request_id).set_result(result)

    def lua(self, code: str) -> asyncio.Future[Any]:
        request_id = next(self.ids)
        future = self.pending[request_id] = asyncio.get_running_loop().create_future()
        self.transport.write(msgpack.packb((0, request_id, "nvim_exec_lua", (code, ()))))
        return future


def answer(message: Any) -> web.Response:
    content = [{"type": "text", "text": message["params"]["arguments"]["text"]}]
    body = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}}
    return web.Response(body=json.dumps(body).encode(), content_type="application/json")


async def main(socket: str) -> None:
    neovim = (await asyncio.get_running_loop().create_unix_connection(Neovim, socket))[1]
    fixed = b""

    async def lua(request: web.BaseRequest) -> web.Response:
        message = json.loads(await request.read())
        await neovim.lua("return 1")
        return answer(message)

    async def echo(request: web.BaseRequest) -> web.Response:
        return answer(json.loads(await request.read()))

    async def put(request: web.BaseRequest) -> web.Response:
        nonlocal fixed
        fixed = await request.read()
        return web.Response()

    async def send(request: web.BaseRequest) -> web.Response:
        json.loads(await request.read())
        return web.Response(body=fixed, content_type="application/json")

    routes = {
        ("POST", "/lua"): lua,
        ("POST", "/echo"): echo,
        ("PUT", "/fixed"): put,
        ("POST", "/fixed"): send,
    }

    async def handle(request: web.BaseRequest) -> web.Response:
        return await routes[request.method, request.path](request)

    loop = asyncio.get_running_loop()

    def request(*parts: Any) -> web.BaseRequest:
        return web.BaseRequest(*parts, loop, client_max_size=16 << 20)

    server = web.Server(handle, request_factory=request, access_log=None)
    listening = await loop.create_server(server, "127.0.0.1", 0)
    print(f"listening on port {listening.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    run(main(sys.argv[1]))
