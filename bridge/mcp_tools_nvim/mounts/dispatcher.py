"""Requests to a server, by the SDK's dispatcher: with deadlines, and lists of bounded size.

Receives: requests of the session. Sends: raw results.
Does not know about: what a request is for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp import MCPError
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import INTERNAL_ERROR, JSONRPCRequest, methods
from pydantic import ValidationError

Item = dict[str, Any]

UNTIMED = ("tools/call", "resources/read", "prompts/get", "completion/complete", "subscriptions/listen")
"""Their deadlines are those of the calls here."""
LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Method → the field of its items."""
MAX_ITEMS = 5000
"""Of one list; a server that never ends it must not fill the editor."""
MAX_BYTES = 2 * 1024 * 1024
"""Of the items of one list as JSON: the editor reads it at once."""
MAX_FAULTS = 50
"""That are told of one list."""
MAX_ASKED = 100
"""Requests of a server that are looked at together; nobody answers more."""
MAX_UNREAD = 32 * 1024 * 1024
"""Bytes that a server has not read yet, up to which it is sent more requests."""
MAX_FAULT = 300
"""Characters of one that is told."""


class Dispatcher(JSONRPCDispatcher[Any]):
    """Requests with deadlines; lists without the items that are none; not too many questions at a time.

    Args:
        streams: of the transport.
        patience: seconds for all but what a call waits for.
    """

    def __init__(self, streams: tuple[Any, Any], patience: float) -> None:
        super().__init__(*streams)
        self._patience = patience
        self._way = streams[1]
        self._asked = 0
        self.version = "2025-11-25"
        self.begin_list()

    def begin_list(self) -> None:
        """What comes from now on belongs to a new list."""
        self.items: list[Item] = []
        self.faults: list[str] = []
        self.is_full = False
        self._room = MAX_BYTES

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        """As the SDK's."""
        unread = getattr(self._way, "unread", 0)
        if unread > MAX_UNREAD:
            raise MCPError(INTERNAL_ERROR, f"the server does not read what it is sent: {unread} bytes wait")
        opts = opts or {}
        if method not in UNTIMED:
            opts.setdefault("timeout", self._patience)
        raw = await super().send_raw_request(method, params, opts, **more)
        if method in LISTS and isinstance(raw.get(LISTS[method]), list):
            raw = raw | {LISTS[method]: self._sift(method, raw)}
        return raw

    async def _dispatch_request(self, req: JSONRPCRequest, *more: Any) -> None:
        if self._asked < MAX_ASKED:
            self._asked += 1
            await super()._dispatch_request(req, *more)

    async def _handle_request(self, *args: Any) -> None:
        try:
            await super()._handle_request(*args)
        finally:
            self._asked -= 1

    def _sift(self, method: str, raw: dict[str, Any]) -> list[Item]:
        good: list[Item] = []
        for item in raw[LISTS[method]]:
            if len(self.items) + len(good) >= MAX_ITEMS or len(self.faults) >= MAX_FAULTS:
                self.is_full = True
                break
            try:
                methods.validate_server_result(method, self.version, raw | {LISTS[method]: [item]})
            except ValidationError as fault:
                first = fault.errors()[0]
                field = ".".join(str(part) for part in first["loc"][2:]) or "it"
                name = item.get("name") if isinstance(item, dict) else None
                self.faults.append(f"{method}: {str(name)[:80]}: {field}: {first['msg']}"[:MAX_FAULT])
                continue
            self._room -= len(json.dumps(item))
            if self._room < 0:
                self.is_full = True
                break
            good.append(item)
        self.items += good
        return good
