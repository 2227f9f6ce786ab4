"""MCP methods → editor verbs: the SDK server of the bridge, with nothing in it that knows a tool by name.

Receives: MCP requests, typed by the SDK. Sends: verbs to the editor and calls to `calls.py`; outcomes become
results, errors become JSON-RPC here and nowhere else. Does not know about: HTTP.
Resources, prompts and completion are added beside the tools: one `Listing`, one handler each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from . import __version__, jsonrpc
from .arguments import number_faults
from .calls import Calls
from .editor import Editor
from .errors import Code
from .kernel import Context, connection_of, dispatch_of, requested_log_levels
from .listing import CursorError, Definitions, Listing, ListingError, page
from .model import CallRequest, ClientInfo, Outcome, Progress, Settings, ToolError
from .results import error_details, tool_result

NAME = "mcp-tools.nvim"
DEFAULT_LOG_LEVEL = "info"
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_LOG_ALIASES = {"trace": "debug", "warn": "warning", "fatal": "critical"}

CHANGE_DELAY_SECONDS = 0.05
"""Registrations come in bursts; one announcement for all of them."""

_CACHED_PAGES = 64
_LIST_ENVELOPE: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class BridgeServer(Server[Any]):
    """The SDK's server, but it announces that its list of tools changes."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """What `initialize` answers with."""
        changes = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changes, experimental_capabilities, extensions)


class Tools:
    """`tools/list` and `tools/call`."""

    def __init__(self, editor: Editor, calls: Calls) -> None:
        self.listing = Listing(editor, "tools")
        self._calls = calls
        self._pages: dict[tuple[str, str | None], tuple[HandlerResult, bytes]] = {}
        self._pages_of: Definitions | None = None
        self._schemas: dict[str, dict[str, Any]] = {}
        self._schemas_of: Definitions | None = None

    async def list(self, context: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        """One page of definitions. `cached_pages` has just refreshed them."""
        definitions = self.listing.current or await self._refresh()
        try:
            items, following = page(definitions, params.cursor)
        except CursorError as failure:
            raise MCPError(jsonrpc.INVALID_PARAMS, str(failure)) from None
        return _LIST_ENVELOPE | {"tools": items} | ({"nextCursor": following} if following else {})

    async def cached_pages(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: a page is checked and shaped once per revision and version, then repeated as bytes."""
        cursor = (ctx.params or {}).get("cursor")
        ready = connection_of(ctx).initialize_accepted
        if ctx.method != "tools/list" or not ready or not isinstance(cursor, str | None):
            return await call_next(ctx)
        definitions = await self._refresh()
        if definitions is not self._pages_of or len(self._pages) >= _CACHED_PAGES:
            self._pages, self._pages_of = {}, definitions
        key = (ctx.protocol_version, cursor)
        if key not in self._pages:
            result = await call_next(ctx)
            self._pages[key] = (result, jsonrpc.dumps(result))
        result, encoded = self._pages[key]
        if (dispatch := dispatch_of(ctx)) is not None:
            dispatch.encoded = encoded
        return result

    async def call(self, context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        """Runs a tool. What goes wrong in it is a result; what is wrong with the request is an error."""
        arguments = params.arguments or {}
        if faults := number_faults(arguments):
            text = "; ".join(f"{fault.field}: {fault.message}" for fault in faults[:5])
            return tool_result(Outcome("failed", error=ToolError(Code.VALIDATION_ERROR, text, faults)))
        client, capabilities = _who(context)
        session = connection_of(context).session_id
        observer = Observer(context, params.name)
        try:
            outcome = await self._calls.run(
                CallRequest(params.name, arguments, client, session, capabilities), observer
            )
        finally:
            await observer.finish()
        if outcome.error is not None and outcome.error.code == Code.UNKNOWN_TOOL:
            raise MCPError(jsonrpc.INVALID_PARAMS, outcome.error.message, error_details(outcome.error))
        return tool_result(outcome)

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool that asks for parameter headers; None for others: none can be wrong there."""
        definitions = self.listing.current
        if definitions is not self._schemas_of:
            self._schemas_of = definitions
            self._schemas = {}
            if definitions is not None and "x-mcp-header" in definitions.text:
                self._schemas = {item["name"]: item.get("inputSchema", {}) for item in definitions.items}
        return self._schemas.get(name)

    async def _refresh(self) -> Definitions:
        try:
            return await self.listing.refresh()
        except ListingError as failure:
            raise MCPError(jsonrpc.INTERNAL_ERROR, str(failure), {"code": str(failure.code)}) from failure


class Observer:
    """Sends a call's progress and log to the client that made it."""

    def __init__(self, context: Context, logger: str) -> None:
        self._context = context
        self._logger = logger
        self._dispatch = dispatch_of(context)
        self._sending: list[asyncio.Task[None]] = []

    def progress(self, progress: Progress) -> None:
        """Sends progress, if the client gave a token for it."""
        if self._dispatch is not None:
            self._dispatch.send_progress(progress.done, progress.total, progress.message)
        else:
            session = self._context.session
            self._spawn(session.report_progress(progress.done, progress.total, progress.message))

    def log(self, level: str, data: Any) -> None:
        """Sends a log message, if the client wants its level."""
        name = _LOG_ALIASES.get(level, level)
        if not self._wanted(name if name in LOG_LEVELS else DEFAULT_LOG_LEVEL):
            return
        message = {
            "level": name if name in LOG_LEVELS else DEFAULT_LOG_LEVEL,
            "logger": self._logger,
            "data": data,
        }
        if self._dispatch is not None:
            self._dispatch.send("notifications/message", message)
        else:
            params = types.LoggingMessageNotificationParams.model_validate(message)
            notification = types.LoggingMessageNotification(params=params)
            request_id = self._context.request_id
            self._spawn(self._context.session.send_notification(notification, related_request_id=request_id))

    async def finish(self) -> None:
        """Waits until everything is sent; only another front than ours has anything to wait for."""
        if self._sending:
            await asyncio.gather(*self._sending)

    def _wanted(self, level: str) -> bool:
        levels = requested_log_levels(self._context)
        if levels is not None:
            return level in levels
        least = connection_of(self._context).state.get("log_level", DEFAULT_LOG_LEVEL)
        return LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)

    def _spawn(self, sending: Any) -> None:
        self._sending.append(asyncio.get_running_loop().create_task(sending))


class Announcer:
    """Tells every client that a list changed: sessions by `broadcast`, subscription streams by the bus."""

    def __init__(self, broadcast: Callable[[str], None]) -> None:
        self.bus = InMemorySubscriptionBus()
        self._broadcast = broadcast
        self._timer: asyncio.TimerHandle | None = None
        self._publishing: asyncio.Task[None] | None = None

    def changed(self, kind: str, revision: int) -> None:
        """The editor's event; kinds that are not advertised are nobody's business."""
        if kind == "tools" and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHANGE_DELAY_SECONDS, self._announce)

    def stop(self) -> None:
        """Nothing more is announced."""
        if self._timer is not None:
            self._timer.cancel()

    def _announce(self) -> None:
        self._timer = None
        self._broadcast("notifications/tools/list_changed")
        publishing = self.bus.publish(ToolsListChanged())
        self._publishing = asyncio.get_running_loop().create_task(publishing)


class Assembly:
    """The server and what its owner needs beside it.

    Args:
        editor: asked for definitions.
        calls: runs tools.
        settings: the instructions for clients.
        broadcast: sends a notification without parameters to every session.
    """

    def __init__(
        self, editor: Editor, calls: Calls, settings: Settings, broadcast: Callable[[str], None]
    ) -> None:
        self.tools = Tools(editor, calls)
        self.announcer = Announcer(broadcast)
        self.listen = ListenHandler(self.announcer.bus)
        editor.on_changed(self.announcer.changed)
        self.server = build_server(self.tools, self.listen, settings.instructions)

    def stop(self) -> None:
        """Ends the subscription streams."""
        self.announcer.stop()
        self.listen.close()


def build_server(tools: Tools, listen: ListenHandler, instructions: str) -> BridgeServer:
    """The SDK server. Capabilities follow from the handlers that it has."""
    server = BridgeServer(
        NAME,
        version=__version__,
        instructions=instructions or None,
        on_subscriptions_listen=listen,
        get_tool_input_schema=tools.input_schema,
    )
    server.middleware[:] = [
        tools.cached_pages
    ]  # the SDK's tracing costs 11 µs per call and has no exporter here
    server.add_request_handler("tools/list", types.PaginatedRequestParams, tools.list)
    server.add_request_handler("tools/call", types.CallToolRequestParams, tools.call)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _set_level)
    return server


async def _set_level(context: Context, params: types.SetLevelRequestParams) -> dict[str, Any]:
    connection_of(context).state["log_level"] = params.level
    return {}


def _who(context: Context) -> tuple[ClientInfo, dict[str, Any]]:
    connection = connection_of(context)
    known = connection.state.get("client")
    if known is None:
        params, declared = connection.client_params, connection.client_capabilities
        info = params.client_info if params is not None else None
        client = ClientInfo(info.name, info.version) if info is not None else ClientInfo("", "")
        capabilities = declared.model_dump(by_alias=True, mode="json", exclude_none=True) if declared else {}
        known = connection.state["client"] = (client, capabilities)
    identity: tuple[ClientInfo, dict[str, Any]] = known
    return identity
