"""The endpoint of agents' hooks (relay/hook.py): passes events on to Neovim and returns text for the model.

Its token is only for this endpoint: it calls no tools and opens no sessions.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from aiohttp import web

from .. import jsonrpc
from ..errors import EditorError
from ..http.guards import has_token, header_values, host_guard, json_guard, refusal, refused_by
from ..http.response import json_response
from ..neovim.nvim import NvimEditor
from ..values import Hello
from .router import any_origin_guard

if TYPE_CHECKING:
    from ..http.app import Handler
    from ..http.handlers import Bodies

PATH = "/hook"
EVENTS = ("session", "prompt", "continue", "edit", "search")
PENDING_WITHIN = 1.5
"""Seconds for diagnostics."""
MAX_PENDING = 32
MAX_TEXT, MAX_PATHS = 4096, 50


class Hooks:
    """Answers the requests with the token of hooks.

    Args:
        editor: the connection to Neovim.
        hello: names the token, and the time for Neovim to answer: without an answer it is blocked.
        hide: receives each token, which must not be logged.
        bodies: reads bodies of requests.
    """

    def __init__(self, editor: NvimEditor, hello: Hello, hide: Callable[[str], None], bodies: Bodies) -> None:
        self._editor = editor
        self._hide = hide
        self._start_within = hello.settings.limits.hook / 1000
        self._set_token(hello.hook_token or "")
        self._ids = map(str, count(1))
        self._pending: dict[str, asyncio.Future[str]] = {}
        self._bodies = bodies
        self._guards = [host_guard(()), any_origin_guard, json_guard, bodies.refuse]
        editor.on("hook_token", self._set_token)
        editor.on("hook", self._answer)

    def match(self, request: web.Request) -> Handler | None:
        """Returns the handler of a request with the token; None for other requests."""
        return (
            self._serve if has_token(header_values(request), "authorization", "bearer", self._token) else None
        )

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if request.path != PATH or request.method != "POST":
            return web.Response(status=404, text="Not Found")
        if (refused := refused_by(self._guards, request)) is not None:
            return refused
        data = await self._bodies.read(request)
        if not isinstance(data, bytes):
            return data
        event = _event(data)
        if event is None:
            return refusal(400, "not an event of a hook")
        return json_response(jsonrpc.dumps({"text": await self._ask(event)}))

    async def _ask(self, event: dict[str, Any]) -> str:
        if len(self._pending) >= MAX_PENDING:
            return ""
        event_id = next(self._ids)
        late: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._pending[event_id] = late
        try:
            reply = await self._editor.hook(event_id, event, self._start_within)
            if not reply.pending:
                return reply.text
            async with asyncio.timeout(PENDING_WITHIN):
                return await late
        except (EditorError, TimeoutError):
            return ""
        finally:
            del self._pending[event_id]

    def _answer(self, event_id: str, text: str) -> None:
        late = self._pending.get(event_id)
        if late is not None and not late.done():
            late.set_result(text)

    def _set_token(self, token: str) -> None:
        self._token = token
        if token:
            self._hide(token)


def _event(data: bytes) -> dict[str, Any] | None:
    """Returns the known fields of an event; None if it is not valid."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or body.get("event") not in EVENTS:
        return None
    names = ("event", "agent", "session", "word")
    event: dict[str, Any] = {name: body.get(name, "") for name in names}
    paths = body.get("paths", [])
    event["paths"] = paths[:MAX_PATHS] if isinstance(paths, list) else None
    texts = [*(event[name] for name in names), *(event["paths"] or ())]
    valid = event["paths"] is not None and all(isinstance(t, str) and len(t) <= MAX_TEXT for t in texts)
    return event if valid else None
