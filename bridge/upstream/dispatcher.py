"""Requests to a server, by the SDK's dispatcher: with deadlines, and lists without bad items.

Receives: requests of the session. Sends: raw results.
Does not know about: what a request is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import methods
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


class Dispatcher(JSONRPCDispatcher[Any]):
    """Requests with deadlines; lists without the items that are none.

    Args:
        streams: of the transport.
        patience: seconds for all but what a call waits for.
    """

    def __init__(self, streams: tuple[Any, Any], patience: float) -> None:
        super().__init__(*streams)
        self._patience = patience
        self.version = "2025-11-25"
        self.items: list[Item] = []
        self.faults: list[str] = []

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        """As the SDK's."""
        opts = opts or {}
        if method not in UNTIMED:
            opts.setdefault("timeout", self._patience)
        raw = await super().send_raw_request(method, params, opts, **more)
        if method in LISTS and isinstance(raw.get(LISTS[method]), list):
            raw = raw | {LISTS[method]: self._sift(method, raw)}
        return raw

    def _sift(self, method: str, raw: dict[str, Any]) -> list[Item]:
        good = []
        for item in raw[LISTS[method]]:
            try:
                methods.validate_server_result(method, self.version, raw | {LISTS[method]: [item]})
            except ValidationError as fault:
                first = fault.errors()[0]
                field = ".".join(str(part) for part in first["loc"][2:]) or "it"
                name = item.get("name") if isinstance(item, dict) else None
                self.faults.append(f"{method}: {str(name)[:80]}: {field}: {first['msg']}")
            else:
                good.append(item)
        self.items += good
        return good
