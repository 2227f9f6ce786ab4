"""Builds the SDK server of the bridge from the handlers of all methods; notifies clients of changed lists."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)

from .. import __version__
from ..calls.runner import Calls
from ..errors import EditorError
from ..neovim.nvim import NvimEditor
from ..values import ServerInfo, Settings, View
from .dispatch import RequestContext, dispatch_of, view_of
from .fast_path import FastPath
from .inputs import RequestStates, set_log_level
from .methods import Prompts, Resources, Tools
from .pages import DefinitionList, Lists
from .skills import EXTENSION as SKILLS_EXTENSION
from .skills import Skills
from .subscriptions import Subscriptions
from .tasks import EXTENSION as TASKS_EXTENSION
from .tasks import Tasks

CHANGE_DELAY_SECONDS = 0.05
"""Changes within this time are announced together: registrations come in bursts."""

INSTRUCTIONS_SECONDS = 1.0
"""Maximum wait for the instructions of a scope."""

TOOLS_CHANGED = "notifications/tools/list_changed"

_ANNOUNCED: dict[str, tuple[str, ServerEvent]] = {
    "tools": (TOOLS_CHANGED, ToolsListChanged()),
    "resources": ("notifications/resources/list_changed", ResourcesListChanged()),
    "templates": ("notifications/resources/list_changed", ResourcesListChanged()),
    "prompts": ("notifications/prompts/list_changed", PromptsListChanged()),
}


Broadcast = Callable[[str, Callable[[View], bool] | None], None]
"""Sends a notification without parameters to the sessions that a function selects; None = all."""


class Announcer:
    """Notifies clients of changed lists.

    Args:
        broadcast: notifies sessions.
        scoped: returns the lists of tools for clients with a scope.
    """

    def __init__(self, broadcast: Broadcast, scoped: Callable[[], dict[View, DefinitionList]]) -> None:
        self.bus = InMemorySubscriptionBus()
        self._broadcast = broadcast
        self._scoped = scoped
        self._pending: dict[str, ServerEvent] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._publishing: set[asyncio.Task[None]] = set()

    def changed(self, kind: str, revision: int) -> None:
        """Handles Neovim's event `changed`; ignores kinds that have no notification."""
        if kind not in _ANNOUNCED:
            return
        method, event = _ANNOUNCED[kind]
        self._pending[method] = event
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHANGE_DELAY_SECONDS, self._announce)

    def publish(self, event: ServerEvent) -> None:
        """Sends an event to the streams that listen for it."""
        self._spawn(self.bus.publish(event))

    def stop(self) -> None:
        """Cancels pending notifications."""
        if self._timer is not None:
            self._timer.cancel()

    def _announce(self) -> None:
        self._timer = None
        pending, self._pending = self._pending, {}
        for method, event in pending.items():
            self._announce_to_sessions(method)
            self.publish(event)

    def _announce_to_sessions(self, method: str) -> None:
        scoped = self._scoped() if method == TOOLS_CHANGED else {}
        self._broadcast(method, (lambda view: view not in scoped) if scoped else None)
        for view, listing in scoped.items():
            self._spawn(self._announce_if_changed(view, listing))

    async def _announce_if_changed(self, view: View, listing: DefinitionList) -> None:
        if await listing.has_changed():
            self._broadcast(TOOLS_CHANGED, lambda other: other == view)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        publishing = asyncio.get_running_loop().create_task(work)
        self._publishing.add(publishing)
        publishing.add_done_callback(self._publishing.discard)


NAME = "mcp-tools.nvim"


class BridgeServer(Server[Any]):
    """The SDK's server, with `listChanged` capabilities."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Returns the options of `initialize`."""
        changes = notification_options or NotificationOptions(True, True, True)
        in_sessions = {name: value for name, value in self.extensions.items() if name != TASKS_EXTENSION}
        return super().create_initialization_options(
            changes, experimental_capabilities, extensions or in_sessions
        )


@dataclass(slots=True)
class Instructions:
    """Gives clients with a scope the instructions for the tools that they see.

    Args:
        editor: composes the instructions.
        tools: the lists of tools.
        clients: names of clients whose tools the options limit.
    """

    _editor: NvimEditor
    _tools: Tools
    _clients: Collection[str]

    def middleware(self, ctx: RequestContext, call_next: CallNext) -> Awaitable[HandlerResult]:
        """Changes the results of `initialize` and `server/discover`."""
        if ctx.method == "initialize":  # the connection has no client name yet
            info = (ctx.params or {}).get("clientInfo")
            client = info.get("name") if isinstance(info, dict) else ""
            view = View(client if isinstance(client, str) else "", dispatch_of(ctx).scope)
        elif ctx.method == "server/discover":
            view = view_of(ctx)
        else:
            return call_next(ctx)
        is_scoped = view.scope is not None or view.client in self._clients
        return self._replaced(ctx, call_next, view) if is_scoped else call_next(ctx)

    async def _replaced(self, ctx: RequestContext, call_next: CallNext, view: View) -> HandlerResult:
        result = await call_next(ctx)
        # Without an answer, the instructions for all tools are returned.
        with contextlib.suppress(EditorError, TimeoutError):
            async with asyncio.timeout(INSTRUCTIONS_SECONDS):
                names = await self._tools.names(view)
                if isinstance(result, dict) and names is not None:
                    return {**result, "instructions": await self._editor.instructions(names)}
        return result


class Assembly:
    """The server and its parts.

    Args:
        editor: has the definitions.
        calls: runs tools and other handlers in Neovim.
        settings: instructions for clients, and limits.
        broadcast: sends a notification without parameters to sessions.
        token: the token of clients.
        boot: id of the run of Neovim.
        server_info: returns the server information that an agent gets, by its name.
    """

    def __init__(
        self,
        editor: NvimEditor,
        calls: Calls,
        settings: Settings,
        broadcast: Broadcast,
        token: str,
        boot: str,
        server_info: Callable[[str], ServerInfo | None] = lambda agent: None,
    ) -> None:
        self._server_info = server_info
        self._agent_servers: dict[ServerInfo, BridgeServer] = {}
        self._states = RequestStates(token, boot, max(1.0, settings.limits.parked / 1000))
        self._tasks = Tasks(calls, settings.limits.task_after / 1000)
        self.tools = Tools(editor, calls, settings.tool_prefix, self._tasks)
        self.announcer = Announcer(broadcast, self.tools.scoped)
        self.listen = ListenHandler(self.announcer.bus)
        self._skills = Skills(settings.instructions)
        self.resources = Resources(editor, calls, settings.limits, self._skills)
        self.prompts = Prompts(editor, calls)
        sessions = settings.limits.sessions
        self.subscriptions = Subscriptions(editor, self.announcer.publish, self.listen, sessions)
        editor.on("changed", self.announcer.changed)
        self._instructions = Instructions(editor, self.tools, settings.scoped_clients)
        self.server = self._build(settings.instructions)
        self.fast = FastPath(calls, self.server.server_info_stamp, self._tasks)

    def stop(self) -> None:
        """Ends the subscription streams."""
        self.announcer.stop()
        self.listen.close()

    def agent_server(self, agent: str) -> BridgeServer:
        """Returns the server of a terminal agent, which has tools only."""
        info = self._server_info(agent) or ServerInfo(NAME, __version__)
        server = self._agent_servers.get(info)
        if server is None:
            server = BridgeServer(info.name, version=info.version, title=info.title)
            server.middleware.clear()
            Lists({"tools/list": self.tools.pages}).install(server)
            server.add_request_handler("tools/call", types.CallToolRequestParams, self.tools.call)
            self._agent_servers[info] = server
        return server

    def _build(self, instructions: str) -> BridgeServer:
        """Builds the SDK server. Its handlers determine the capabilities."""
        server = BridgeServer(
            NAME,
            version=__version__,
            instructions=instructions or None,
            on_subscriptions_listen=self.subscriptions.listen,
            get_tool_input_schema=self.tools.input_schema,
        )
        # Without the SDK's tracing, which takes 11 µs per call. Middleware may return any awaitable.
        server.middleware[:] = [self._states.middleware, self._instructions.middleware]  # type: ignore[list-item]
        lists = {
            "tools/list": self.tools.pages,
            "resources/list": self.resources.fixed,
            "resources/templates/list": self.resources.templates,
            "prompts/list": self.prompts.pages,
        }
        Lists(lists).install(server)
        self._tasks.install(server)
        self._skills.install(server)
        server.extensions.update({TASKS_EXTENSION: {}, SKILLS_EXTENSION: {}})
        add, subscriptions = server.add_request_handler, self.subscriptions
        add("tools/call", types.CallToolRequestParams, self.tools.call)
        add("resources/read", types.ReadResourceRequestParams, self.resources.read)
        add("resources/subscribe", types.SubscribeRequestParams, subscriptions.subscribe)
        add("resources/unsubscribe", types.UnsubscribeRequestParams, subscriptions.unsubscribe)
        add("prompts/get", types.GetPromptRequestParams, self.prompts.get)
        add("completion/complete", types.CompleteRequestParams, self.prompts.complete)
        add("logging/setLevel", types.SetLevelRequestParams, set_log_level)
        return server
