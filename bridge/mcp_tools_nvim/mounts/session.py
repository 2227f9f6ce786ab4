"""The session with a mounted server: the SDK's, with deadlines for all but calls and lists of bounded size.

Items of a list that are not valid are left out.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
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
MAX_PAGES = 100
"""Of one list."""
MAX_NAME = 100
"""Characters of what a server calls itself."""
MAX_ROUNDS = 10
"""Questions that one call may come back with, one after the other."""
_REQUESTS: dict[str, Any] = {
    "tools/list": types.ListToolsRequest,
    "resources/list": types.ListResourcesRequest,
    "resources/templates/list": types.ListResourceTemplatesRequest,
    "prompts/list": types.ListPromptsRequest,
}
_RAW: TypeAdapter[Any] = TypeAdapter(dict[str, Any])

Item = dict[str, Any]
Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


GONE = ((types.CONNECTION_CLOSED, "Connection closed"), (types.INVALID_REQUEST, "Session terminated"))
"""The SDK's words for a connection that is gone; servers use these codes for errors of their own."""


def is_closed(fault: MCPError) -> bool:
    """Is the connection gone?"""
    return (fault.error.code, fault.error.message) in GONE


def _is_text(raw: dict[str, Any]) -> bool:
    """Is it a result of nothing but text, in which nothing can be wrong?"""
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
            raise MCPError(
                types.INTERNAL_ERROR, f"the server does not read what it is sent: {unread} bytes wait"
            )
        opts = opts or {}
        if method not in UNTIMED:
            opts.setdefault("timeout", self._patience)
        raw = await super().send_raw_request(method, params, opts, **more)
        if method in LISTS and isinstance(raw.get(LISTS[method]), list):
            raw = raw | {LISTS[method]: self._sift(method, raw)}
        return raw

    async def _dispatch_request(self, req: types.JSONRPCRequest, *more: Any) -> None:
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


def _call_request(**params: Any) -> types.CallToolRequest:
    return types.CallToolRequest(params=types.CallToolRequestParams(**params))


class Session:
    """A session that has shaken hands.

    Args:
        streams: of the transport.
        patience: seconds for all but what a call waits for.
        allow: what the server may ask: `sampling`, `elicitation`, `roots`.
        ask: passes a question on; gives its answer, or raises `MCPError`.
        told: hears of notifications.
    """

    def __init__(
        self,
        streams: tuple[Any, Any],
        patience: float,
        allow: frozenset[str],
        ask: Ask,
        told: Callable[[Any], None],
    ) -> None:
        self._ask = ask
        self._told = told
        self._dispatcher = Dispatcher(streams, patience)
        callbacks: list[tuple[str, str, Any]] = [
            ("elicitation", "elicitation_callback", self._elicit),
            ("sampling", "sampling_callback", self._sample),
            ("roots", "list_roots_callback", self._roots),
        ]
        self._session = ClientSession(
            dispatcher=self._dispatcher,
            **{name: callback for right, name, callback in callbacks if right in allow},
            message_handler=self._hear,
            client_info=types.Implementation(name="mcp-tools.nvim", version=__version__),
        )

    async def __aenter__(self) -> Session:
        await self._session.__aenter__()
        try:
            await self._shake_hands()
        except BaseException as fault:
            await self._session.__aexit__(type(fault), fault, fault.__traceback__)
            raise
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._session.__aexit__(*exc)

    async def _shake_hands(self) -> None:
        """The handshake that every server knows; those that know only the newer way refuse it."""
        try:
            await self._session.initialize()
        except MCPError as refusal:
            if is_closed(refusal) or refusal.error.code == types.REQUEST_TIMEOUT:
                raise
            try:
                await self._session.discover()
            except MCPError:
                raise refusal from None
        self._dispatcher.version = self.protocol

    @property
    def protocol(self) -> str:
        """The revision that both speak."""
        return self._session.protocol_version or ""

    @property
    def is_modern(self) -> bool:
        """No session on the wire; changes are told to who listens."""
        return self.protocol in MODERN_PROTOCOL_VERSIONS

    @property
    def inner(self) -> ClientSession:
        """The SDK's."""
        return self._session

    def offers(self, method: str) -> bool:
        """Does the server have such lists?"""
        capabilities = self._session.server_capabilities
        return getattr(capabilities, method.partition("/")[0], None) is not None

    @property
    def completes(self) -> bool:
        """Does it complete arguments?"""
        capabilities = self._session.server_capabilities
        return capabilities is not None and capabilities.completions is not None

    @property
    def subscribes(self) -> bool:
        """Does the server tell of changes of single resources? Only in a session is it asked to."""
        capabilities = self._session.server_capabilities
        resources = capabilities.resources if capabilities is not None else None
        return not self.is_modern and resources is not None and resources.subscribe is True

    async def subscribe(self, uri: str, wanted: bool) -> None:
        """Hears of changes of a resource from now on, or no longer."""
        method = "resources/subscribe" if wanted else "resources/unsubscribe"
        await self._dispatcher.send_raw_request(method, {"uri": uri})

    @property
    def server(self) -> str:
        """What it calls itself."""
        info = self._session.server_info
        return f"{info.name} {info.version}"[:MAX_NAME] if info else ""

    async def list(self, method: str) -> tuple[list[Item], list[str]]:
        """All items of a list, and what was wrong with others."""
        self._dispatcher.begin_list()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
            if method == "tools/list":  # it remembers what a call needs
                cursor = (await self._session.list_tools(params=params)).next_cursor
            else:
                raw = await self._session.send_request(_REQUESTS[method](params=params), _RAW)
                cursor = raw.get("nextCursor")
            if cursor is None or self._dispatcher.is_full:
                break
        items, faults = self._dispatcher.items, self._dispatcher.faults
        if cursor is not None or self._dispatcher.is_full:
            faults.append(f"{method}: it is too long, or too much of it is wrong; {len(items)} are taken in")
        return items, faults

    async def call(self, name: str, arguments: Any, progress: Any) -> dict[str, Any]:
        """`tools/call`; in a session, and answered by text, without the SDK's models, a third of its cost."""
        if self.is_modern:
            return await self.request(_call_request, progress, name=name, arguments=arguments)
        params = {"name": name, "arguments": arguments}
        raw = await self._dispatcher.send_raw_request("tools/call", params, {"on_progress": progress})
        if not _is_text(raw):
            methods.validate_server_result("tools/call", self.protocol, raw)
        return unreserved(raw) if "_meta" in raw else raw

    async def request(
        self, request: Callable[..., Any], progress: Any = None, **params: Any
    ) -> dict[str, Any]:
        """Asks something, and goes through the questions that come back with it.

        Args:
            request: makes it of `params` and of answers.
            progress: hears of it.
            params: of the request.
        """
        raw: dict[str, Any] = {}
        more: dict[str, Any] = {}
        for _ in range(MAX_ROUNDS):
            raw = await self._session.send_request(
                request(**params, **more), _RAW, progress_callback=progress
            )
            if raw.get("resultType") != "input_required":
                return unreserved(raw)
            needed = types.InputRequiredResult.model_validate(raw, by_name=False)
            answers = {}
            for key, question in (needed.input_requests or {}).items():
                meta = question.params.meta if question.params else None
                context = ClientRequestContext(session=self._session, request_id=key, meta=meta)
                answer = await self._session.dispatch_input_request(context, question)
                if isinstance(answer, types.ErrorData):
                    raise MCPError.from_error_data(answer)
                answers[key] = answer
            more = {"input_responses": answers or None, "request_state": needed.request_state}
        raise MCPError(types.INTERNAL_ERROR, f"it asks more than {MAX_ROUNDS} times")

    async def _elicit(self, _: Any, params: Any) -> Any:
        return await self._passed_on("elicitation/create", params, types.ElicitResult)

    async def _sample(self, _: Any, params: Any) -> Any:
        return await self._passed_on("sampling/createMessage", params, types.CreateMessageResult)

    async def _roots(self, _: Any) -> Any:
        return await self._passed_on("roots/list", None, types.ListRootsResult)

    async def _passed_on(self, method: str, params: Any, result: Any) -> Any:
        given = params.model_dump(by_alias=True, mode="json", exclude_none=True) if params else {}
        given.pop("_meta", None)
        try:
            return result.model_validate(await self._ask(method, given), by_name=False)
        except MCPError as refusal:
            return refusal.error
        except ValidationError as fault:
            return types.ErrorData(
                code=types.INTERNAL_ERROR, message=f"an invalid answer: {fault.errors()[0]}"
            )

    async def _hear(self, message: Any) -> None:
        if not isinstance(message, Exception):
            self._told(message)
