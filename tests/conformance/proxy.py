"""A proxy that adds the token, which the suites cannot send, and cuts event streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

DROPPED = ("content-length", "transfer-encoding", "connection")
AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@asynccontextmanager
async def proxied(upstream: int, token: str, *, cut: bytes, cut_after: int = 2) -> AsyncIterator[int]:
    """Yields the port of the proxy.

    Args:
        upstream: port of the bridge.
        token: added to every request.
        cut: if the body of a request contains this, its event stream ends after `cut_after` events.
        cut_after: number of events.
    """

    async def forward(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        head = {name: value for name, value in request.headers.items() if name.lower() not in DROPPED}
        for name in head.keys() & {"Host", "Origin"}:
            head[name] = head[name].replace(f":{port}", f":{upstream}")
        head["Authorization"] = f"Bearer {token}"
        url = f"http://127.0.0.1:{upstream}{request.path_qs}"
        async with http.request(request.method, url, headers=head, data=body or None) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in DROPPED[1:]}
            response, seen = web.StreamResponse(status=answer.status, headers=kept), b""
            await response.prepare(request)
            async for data in answer.content.iter_any():
                await response.write(data)
                seen += data
                is_due = answer.content_type == "text/event-stream" and seen.count(b"\n\n") >= cut_after
                if cut in body and is_due and seen.endswith(b"\n\n"):
                    break
            return response

    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", forward)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, skip_auto_headers=AUTOMATIC) as http:
        yield port
        await runner.cleanup()
