"""Requests of clients of the stateless era (2026-07-28), and what their HTTP requests need.

A request carries the protocol version in `_meta`, and no `initialize` comes before it. The relay opens a
session for its client all the same: the bridge knows the client by it, and each request names it in a header.
"""

from __future__ import annotations

import base64
import json
import os
import threading
from typing import Any

from .bridge_client import CLAUDE, VERSION, Flight
from .offline import STATELESS_VERSION, VERSIONS

_META = "io.modelcontextprotocol/"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_LISTS = ("tools", "resources", "prompts")
_NAMES = {"name", "uri", "taskId"}
"""Parameters that name what a request is about; no method has two of them."""


def is_opening(message: Any) -> bool:
    """Returns whether a client is served in the stateless era from this request on, its first one.

    The probe of a client without tasks is refused, after which it opens a session. It loses nothing by that,
    and is notified of changed lists without asking.
    """
    if not isinstance(_meta(message).get(_META + "protocolVersion"), str):
        return False
    capabilities = _meta(message).get(_META + "clientCapabilities")
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    has_tasks = isinstance(extensions, dict) and _META + "tasks" in extensions
    return has_tasks or message["method"] != "server/discover"


def opening(message: Any) -> bytes:
    """Returns the `initialize` of the session that the relay opens for the client of a request.

    It declares no capabilities, so that the bridge asks the relay nothing.
    """
    declared = _meta(message).get(_META + "clientInfo")
    info = declared if isinstance(declared, dict) else {}
    name, version = info.get("name"), info.get("version")
    if not isinstance(name, str):
        name = "claude-code" if CLAUDE in os.environ else "unknown"
    client = {"name": name, "version": version if isinstance(version, str) else ""}
    params = {"protocolVersion": VERSIONS[-1], "capabilities": {}, "clientInfo": client}
    return json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode()


def flight_of(message: Any) -> Flight:
    """Returns the flight of a request, with the headers that repeat fields of it."""
    method = message["method"] if isinstance(message, dict) else ""  # the bridge refuses batches
    version = _meta(message).get(_META + "protocolVersion", STATELESS_VERSION)
    headers = {VERSION: _encode(version), "Mcp-Method": _encode(method)}
    for field in _NAMES & _params(message).keys():
        headers["Mcp-Name"] = _encode(_params(message)[field])
    return Subscription(message, headers) if method == "subscriptions/listen" else Flight(headers)


class Subscription(Flight):
    """A `subscriptions/listen` in flight, which outlives the bridge.

    Attributes:
        wake: set when the bridge can be reached, or not any more, and when the stream ends for good.
        connected: the bridge serves the stream.
    """

    def __init__(self, message: dict[str, Any], headers: dict[str, str]) -> None:
        super().__init__(headers)
        self.wake = threading.Event()
        self.connected = False
        self._acknowledged = False
        self._id = message["id"]
        wanted = _params(message).get("notifications")
        wanted = wanted if isinstance(wanted, dict) else {}
        self._lists = [name for name in _LISTS if wanted.get(f"{name}ListChanged") is True]

    def cancel(self) -> None:
        """Ends the stream for good."""
        super().cancel()
        self.wake.set()

    def on_line(self, line: bytes) -> list[bytes]:
        """Returns what the client gets for a line from the bridge."""
        try:
            message = json.loads(line)
            is_answer = message.get("id") == self._id and "method" not in message
        except (ValueError, AttributeError):
            return []  # an HTTP error without a message
        if is_answer:
            if self._acknowledged or "error" not in message:
                return []
            self.cancel()
            return [line]
        if message.get("method") != _ACKNOWLEDGED:
            return [line]
        self.connected = True
        if self._acknowledged:
            return self._changed()
        self._acknowledged = True
        return [line]

    def on_missing(self) -> list[bytes]:
        """Returns what the client gets when no bridge can be reached."""
        was_connected, self.connected = self.connected, False
        if self._acknowledged:
            return self._changed() if was_connected else []
        self._acknowledged = True
        wanted = {f"{name}ListChanged": True for name in self._lists}
        return [self._notification(_ACKNOWLEDGED, notifications=wanted)]

    def _changed(self) -> list[bytes]:
        return [self._notification(f"notifications/{name}/list_changed") for name in self._lists]

    def _notification(self, method: str, **params: Any) -> bytes:
        params["_meta"] = {_META + "subscriptionId": self._id}
        return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


def _params(message: Any) -> dict[str, Any]:
    params = message.get("params") if isinstance(message, dict) else None
    return params if isinstance(params, dict) else {}


def _meta(message: Any) -> dict[str, Any]:
    meta = _params(message).get("_meta")
    return meta if isinstance(meta, dict) else {}


def _encode(value: Any) -> str:
    """Returns a header value; Base64 for what a header cannot carry as it is."""
    text = str(value)
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="
