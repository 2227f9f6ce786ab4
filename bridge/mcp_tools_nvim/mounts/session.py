"""The session with a mounted server: the SDK's, with deadlines and with bounded, validated lists."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from .. import __version__
from .outcomes import unreserved

logger = logging.getLogger(__name__)

UNTIMED = ("tools/call", "resources/read", "prompts/get", "completion/complete", "subscriptions/listen")
"""Methods without a deadline here: Neovim's calls have one."""
LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Method → the field with its items."""
MAX_ITEMS = 5000
"""Maximum items of one list."""
MAX_BYTES = 2 * 1024 * 1024
"""Maximum size of the items of one list as JSON, which Neovim reads."""
MAX_FAULTS = 50
"""Maximum invalid items reported of one list."""
MAX_REQUESTS = 100
"""Maximum concurrent requests of a server; more are ignored."""
MAX_UNREAD = 32 * 1024 * 1024
"""Maximum bytes that a server has not read; above it no more requests are sent."""
MAX_FAULT = 300
"""Maximum characters of a fault's description."""
MAX_PAGES = 100
"""Maximum pages of one list."""
MAX_NAME = 100
"""Maximum characters of a server's name and version."""
MAX_ROUNDS = 10
"""Maximum consecutive questions of one call."""
QUESTIONS: tuple[tuple[str, str, str, Any], ...] = (
    ("elicitation", "elicitation_callback", "elicitation/create", types.ElicitResult),
    ("sampling", "sampling_callback", "sampling/createMessage", types.CreateMessageResult),
    ("roots", "list_roots_callback", "roots/list", types.ListRootsResult),
)
"""Permission, the SDK's callback, method and result of each question that a server may ask."""
_REQUESTS: dict[str, Any] = {
    "resources/list": types.ListResourcesRequest,
    "resources/templates/list": types.ListResourceTemplatesRequest,
    "prompts/list": types.ListPromptsRequest,
}
_RAW: TypeAdapter[Any] = TypeAdapter(dict[str, Any])

Item = dict[str, Any]
ForwardQuestion = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


CLOSED_ERRORS = (
    (types.CONNECTION_CLOSED, "Connection closed"),
    (types.INVALID_REQUEST, "Session terminated"),
)
"""Errors of the SDK for a closed connection; servers use the same codes with other messages."""


def is_closed(fault: MCPError) -> bool:
    """Whether the error means a closed connection."""
    return (fault.error.code, fault.error.message) in CLOSED_ERRORS


def _is_text(raw: dict[str, Any]) -> bool:
    """Whether a result consists of text only, so that it needs no validation."""
    content = raw.get("content")
    return (
        type(content) is list
        and raw.keys() <= {"content", "isError"}
        and type(raw.get("isError", False)) is bool
        and all(
            type(block) is dict
            and block.keys() == {"type", "text"}
            and block["type"] == "text"
            and type(block["text"]) is str
            for block in content
        )
    )


class Dispatcher(JSONRPCDispatcher[Any]):
    """The SDK's dispatcher with deadlines, validated lists, and a limit of concurrent server requests.

    Args:
        streams: the transport's streams.
        patience: deadline in seconds of methods not in UNTIMED.
    """

    def __init__(self, streams: tuple[Any, Any], patience: float) -> None:
        super().__init__(*streams)
        self._patience = patience
        self._write_stream = streams[1]
        self._open_requests = 0
        self.version = "2025-11-25"
        self.begin_list()

    def begin_list(self) -> None:
        """Starts to collect the items of a new list."""
        self.items: list[Item] = []
        self.faults: list[str] = []
        self.is_full = False
        self._room = MAX_BYTES

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        """Sends a request; see the SDK."""
        unread = getattr(self._write_stream, "unread", 0)
        if unread > MAX_UNREAD:
            raise MCPError(
                types.INTERNAL_ERROR, f"the server does not read its input: {unread} bytes are unsent"
            )
        opts = opts or {}
        if method not in UNTIMED:
            opts.setdefault("timeout", self._patience)
        raw = await super().send_raw_request(method, params, opts, **more)
        if method in LISTS and isinstance(raw.get(LISTS[method]), list):
            raw = raw | {LISTS[method]: self._valid_items(method, raw)}
        return raw

    async def _dispatch_request(self, req: types.JSONRPCRequest, *more: Any) -> None:
        if self._open_requests < MAX_REQUESTS:
            self._open_requests += 1
            await super()._dispatch_request(req, *more)

    async def _handle_request(self, *args: Any) -> None:
        try:
            await super()._handle_request(*args)
        finally:
            self._open_requests -= 1

    def _valid_items(self, method: str, raw: dict[str, Any]) -> list[Item]:
        good: list[Item] = []
        for item in raw[LISTS[method]]:
            if len(self.items) + len(good) >= MAX_ITEMS or len(self.faults) >= MAX_FAULTS:
                self.is_full = True
                break
            try:
                methods.validate_server_result(method, self.version, raw | {LISTS[method]: [item]})
            except ValidationError as fault:
                first = fault.errors()[0]
                field = ".".join(str(part) for part in first["loc"][2:]) or "(root)"
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


class MountSession:
    """An initialized session.

    Args:
        streams: the transport's streams.
        patience: deadline in seconds of methods not in UNTIMED.
        allow: what the server may ask: `sampling`, `elicitation`, `roots`.
        ask: passes a question on and returns the answer, or raises `MCPError`.
        on_notification: called with each notification.

    Attributes:
        sdk_session: the SDK's session.
    """

    def __init__(
        self,
        streams: tuple[Any, Any],
        patience: float,
        allow: frozenset[str],
        ask: ForwardQuestion,
        on_notification: Callable[[Any], None],
    ) -> None:
        self._ask = ask
        self._on_notification = on_notification
        self._dispatcher = Dispatcher(streams, patience)
        callbacks: dict[str, Any] = {
            callback: partial(self._forward, method, result)
            for permission, callback, method, result in QUESTIONS
            if permission in allow
        }
        self.sdk_session = ClientSession(
            dispatcher=self._dispatcher,
            **callbacks,
            message_handler=self._on_event,
            client_info=types.Implementation(name="mcp-tools.nvim", version=__version__),
        )

    async def __aenter__(self) -> MountSession:
        await self.sdk_session.__aenter__()
        try:
            await self._handshake()
        except BaseException as fault:
            await self.sdk_session.__aexit__(type(fault), fault, fault.__traceback__)
            raise
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.sdk_session.__aexit__(*exc)

    async def _handshake(self) -> None:
        """Initializes the session; servers of the stateless era refuse that, and are discovered."""
        try:
            await self.sdk_session.initialize()
        except MCPError as error:
            if is_closed(error) or error.error.code == types.REQUEST_TIMEOUT:
                raise
            try:
                await self.sdk_session.discover()
            except MCPError:
                raise error from None
        self._dispatcher.version = self.protocol

    @property
    def protocol(self) -> str:
        """The negotiated protocol version."""
        return self.sdk_session.protocol_version or ""

    @property
    def is_modern(self) -> bool:
        """Whether the protocol is of the stateless era, in which changes are sent to listeners only."""
        return self.protocol in MODERN_PROTOCOL_VERSIONS

    def supports(self, method: str) -> bool:
        """Whether the server has this list."""
        capabilities = self.sdk_session.server_capabilities
        return getattr(capabilities, method.partition("/")[0], None) is not None

    @property
    def completes(self) -> bool:
        """Whether the server completes arguments."""
        capabilities = self.sdk_session.server_capabilities
        return capabilities is not None and capabilities.completions is not None

    @property
    def subscribes(self) -> bool:
        """Whether resources can be subscribed to; used in sessions only."""
        capabilities = self.sdk_session.server_capabilities
        resources = capabilities.resources if capabilities is not None else None
        return not self.is_modern and resources is not None and resources.subscribe is True

    async def subscribe(self, uri: str, wanted: bool) -> None:
        """Subscribes to changes of a resource, or unsubscribes."""
        method = "resources/subscribe" if wanted else "resources/unsubscribe"
        await self._dispatcher.send_raw_request(method, {"uri": uri})

    @property
    def server(self) -> str:
        """Name and version of the server."""
        info = self.sdk_session.server_info
        return f"{info.name} {info.version}"[:MAX_NAME] if info else ""

    async def list(self, method: str) -> tuple[list[Item], list[str]]:
        """Returns the valid items of a list, and descriptions of invalid ones."""
        self._dispatcher.begin_list()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
            if method == "tools/list":  # the SDK's method remembers what calls need
                cursor = (await self.sdk_session.list_tools(params=params)).next_cursor
            else:
                raw = await self.sdk_session.send_request(_REQUESTS[method](params=params), _RAW)
                cursor = raw.get("nextCursor")
            if cursor is None or self._dispatcher.is_full:
                break
        items, faults = self._dispatcher.items, self._dispatcher.faults
        if cursor is not None or self._dispatcher.is_full:
            faults.append(f"{method}: too long or too many invalid items; the first {len(items)} are used")
        return items, faults

    async def call(self, name: str, arguments: Any, progress: Any) -> dict[str, Any]:
        """Calls a tool. A text result in a session bypasses the SDK's models, a third of its cost."""
        params = {"name": name, "arguments": arguments}
        if self.is_modern:
            return await self.request(types.CallToolRequest, params, progress)
        raw = await self._dispatcher.send_raw_request("tools/call", params, {"on_progress": progress})
        if not _is_text(raw):
            methods.validate_server_result("tools/call", self.protocol, raw)
        return unreserved(raw) if "_meta" in raw else raw

    async def request(
        self, request: Callable[..., Any], params: dict[str, Any], progress: Any = None
    ) -> dict[str, Any]:
        """Sends a request, and answers questions until it returns a result.

        Args:
            request: class of the request.
            params: its parameters.
            progress: called with progress.
        """
        raw: dict[str, Any] = {}
        more: dict[str, Any] = {}
        for _ in range(MAX_ROUNDS):
            raw = await self.sdk_session.send_request(
                request(params=params | more), _RAW, progress_callback=progress
            )
            if raw.get("resultType") != "input_required":
                return unreserved(raw)
            needed = types.InputRequiredResult.model_validate(raw, by_name=False)
            answers = {}
            for key, question in (needed.input_requests or {}).items():
                meta = question.params.meta if question.params else None
                context = ClientRequestContext(session=self.sdk_session, request_id=key, meta=meta)
                answer = await self.sdk_session.dispatch_input_request(context, question)
                if isinstance(answer, types.ErrorData):
                    raise MCPError.from_error_data(answer)
                answers[key] = answer
            more = {"input_responses": answers or None, "request_state": needed.request_state}
        raise MCPError(types.INTERNAL_ERROR, f"the server asked more than {MAX_ROUNDS} questions")

    async def _forward(self, method: str, result: Any, _: Any, params: Any = None) -> Any:
        given = params.model_dump(by_alias=True, mode="json", exclude_none=True) if params else {}
        given.pop("_meta", None)
        try:
            return result.model_validate(await self._ask(method, given), by_name=False)
        except MCPError as error:
            return error.error
        except ValidationError as fault:
            return types.ErrorData(code=types.INTERNAL_ERROR, message=f"invalid answer: {fault.errors()[0]}")

    async def _on_event(self, message: Any) -> None:
        if not isinstance(message, Exception):
            self._on_notification(message)
