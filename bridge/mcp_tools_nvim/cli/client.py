"""An MCP client for one command."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from .. import __version__
from ..relay.bridge_client import SESSION, VERSION, BridgeClient
from .show import CommandError

PROTOCOL = "2025-11-25"
END_SECONDS = 2.0
MAX_PAGES = 1000

Listener = Callable[[str, dict[str, Any]], None]
"""Called with method and parameters of each notification."""


class RequestError(CommandError):
    """The bridge answered with an error; `name` is our own error code, if it has one."""

    def __init__(self, text: str, name: str | None = None) -> None:
        super().__init__(text)
        self.name = name


class McpClient:
    """A session: `with McpClient(bridge) as client: client.request("tools/list")`."""

    def __init__(self, endpoint: BridgeClient) -> None:
        self._endpoint = endpoint
        self._headers: dict[str, str] = {}
        self._ids = itertools.count(1)
        self.instructions = ""

    def __enter__(self) -> McpClient:
        info = {"name": "mcp-tools", "version": __version__}
        params = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": info}
        result = self.request("initialize", params)
        self._headers[VERSION] = result["protocolVersion"]
        self.instructions = result.get("instructions", "")
        self._notify("notifications/initialized")
        return self

    def __exit__(self, *_: object) -> None:
        if SESSION in self._headers:
            self._endpoint.delete(self._headers, END_SECONDS)
        self._endpoint.close()

    def request(
        self, method: str, params: dict[str, Any] | None = None, listener: Listener | None = None
    ) -> dict[str, Any]:
        """Sends a request and waits for the result. Ctrl-C cancels it.

        Raises:
            RequestError: the answer is an error, or there is none.
        """
        id_ = next(self._ids)
        message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}
        try:
            with self._endpoint.post(json.dumps(message).encode(), self._headers) as reply:
                if session := reply.header(SESSION):
                    self._headers[SESSION] = session
                for line in reply.messages():
                    answer = json.loads(line)
                    if answer.get("id") == id_ and "method" not in answer:
                        return self._result(answer)
                    if "error" in answer and answer.get("id") is None:  # the id could not be read
                        return self._result(answer)
                    if "method" in answer and "id" not in answer and listener is not None:
                        listener(answer["method"], answer.get("params") or {})
                raise RequestError(f"{method} was not answered (HTTP {reply.status})")
        except KeyboardInterrupt:
            self._notify("notifications/cancelled", {"requestId": id_, "reason": "interrupted"})
            raise
        except OSError as error:
            raise RequestError(f"the connection to the editor broke: {error}") from error

    def pages(self, method: str, key: str) -> Iterator[dict[str, Any]]:
        """Yields all entries of a list."""
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            result = self.request(method, {} if cursor is None else {"cursor": cursor})
            yield from result.get(key, [])
            cursor = result.get("nextCursor")
            if cursor is None:
                return

    def _notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        try:
            with self._endpoint.post(json.dumps(message).encode(), self._headers, END_SECONDS) as reply:
                reply.text()
        except OSError:
            pass

    @staticmethod
    def _result(answer: dict[str, Any]) -> dict[str, Any]:
        if (error := answer.get("error")) is not None:
            raise _refusal(error)
        result: dict[str, Any] = answer["result"]
        return result


def _refusal(error: dict[str, Any]) -> RequestError:
    """Returns the error without what its data repeats: message and code."""
    message, data = error.get("message"), error.get("data")
    name = data.get("code") if isinstance(data, dict) else None
    if isinstance(data, dict):
        data = {key: value for key, value in data.items() if key != "code" and value != message}
    more = f"\n{json.dumps(data, indent=2, ensure_ascii=False)}" if data else ""
    return RequestError(f"{message} ({f'{name}, ' if name else 'code '}{error.get('code')}){more}", name)
