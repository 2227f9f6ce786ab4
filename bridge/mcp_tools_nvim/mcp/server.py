"""Builds the SDK server of the bridge from the handlers of all methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ListenHandler

from .. import __version__
from ..calls.runner import Calls
from ..neovim import Editor
from ..values import ServerInfo, Settings
from .execute import set_log_level
from .fast_path import FastPath
from .inputs import RequestStates
from .list_changed import Announcer, Broadcast
from .methods import Prompts, Resources, Tools
from .pages import Lists
from .subscriptions import Subscriptions

NAME = "mcp-tools.nvim"


class BridgeServer(Server[Any]):
    """The SDK's server, with `listChanged` capabilities and a cached server stamp."""

    @cached_property
    def _stamp(self) -> dict[str, Any]:
        return super().server_info_stamp

    @property
    def server_info_stamp(self) -> dict[str, Any]:
        """Name and version, contained in every result of the stateless era. A copy for each caller."""
        return dict(self._stamp)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Returns the options of `initialize`."""
        changes = notification_options or NotificationOptions(True, True, True)
        return super().create_initialization_options(changes, experimental_capabilities, extensions)


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
        editor: Editor,
        calls: Calls,
        settings: Settings,
        broadcast: Broadcast,
        token: str,
        boot: str,
        server_info: Callable[[str], ServerInfo | None] = lambda agent: None,
    ) -> None:
        self._server_info = server_info
        self._agent_servers: dict[ServerInfo, BridgeServer] = {}
        self.legs = RequestStates(token, boot, max(1.0, settings.limits.parked / 1000))
        self.tools = Tools(editor, calls, settings.tool_prefix)
        self.announcer = Announcer(broadcast, self.tools.scoped)
        self.listen = ListenHandler(self.announcer.bus)
        self.resources = Resources(editor, calls, settings.limits)
        self.prompts = Prompts(editor, calls)
        sessions = settings.limits.sessions
        self.subscriptions = Subscriptions(editor, self.announcer.publish, self.listen, sessions)
        editor.on_changed(self.announcer.changed)
        self.server = self._build(settings.instructions)
        self.fast = FastPath(calls, self.server.server_info_stamp)

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
        server.middleware.clear()  # removes the SDK's tracing, which takes 11 µs per call and is not used
        self.legs.install(server)
        lists = {
            "tools/list": self.tools.pages,
            "resources/list": self.resources.fixed,
            "resources/templates/list": self.resources.templates,
            "prompts/list": self.prompts.pages,
        }
        Lists(lists).install(server)
        add, subscriptions = server.add_request_handler, self.subscriptions
        add("tools/call", types.CallToolRequestParams, self.tools.call)
        add("resources/read", types.ReadResourceRequestParams, self.resources.read)
        add("resources/subscribe", types.SubscribeRequestParams, subscriptions.subscribe)
        add("resources/unsubscribe", types.UnsubscribeRequestParams, subscriptions.unsubscribe)
        add("prompts/get", types.GetPromptRequestParams, self.prompts.get)
        add("completion/complete", types.CompleteRequestParams, self.prompts.complete)
        add("logging/setLevel", types.SetLevelRequestParams, set_log_level)
        return server
