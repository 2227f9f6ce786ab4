"""Opens the endpoints of terminal agents and reports their sessions to Neovim."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .. import __version__, jsonrpc
from ..instances.proof import lsp_token
from ..neovim.nvim import NvimEditor
from ..rate_limit import TokenBucket
from ..sessions.registry import Sessions
from ..sessions.session import MAX_NOTICE, Session
from ..values import AgentEndpoint, Hello, ServerInfo
from .hooks import Hooks
from .registrations import Registrations
from .router import AgentRouter, Endpoints
from .unix import UnixSockets

if TYPE_CHECKING:
    from ..http.app import App

FLUSH_SECONDS = 0.05
"""Time for agents to read the last notification, such as the rejection of a proposal."""

NOTICES_PER_SECOND, NOTICES_AT_ONCE = 20, 100
"""Limits of notifications from one agent: they take time on Neovim's main thread."""

LSP = "lsp"
"""Name of the endpoint of `mcp-tools lsp`, which is always open; see lua/mcp-tools/agents/lsp.lua."""

logger = logging.getLogger(__name__)


class Agents:
    """Opens and closes the endpoints of terminal agents as Neovim requests.

    Args:
        editor: names the endpoints.
        hello: names the endpoints and the token of hooks.
        token: the bearer token of clients.
        hide: receives each token, which must not be logged.
        app: serves the endpoints at its port.
    """

    def __init__(
        self, editor: NvimEditor, hello: Hello, token: str, hide: Callable[[str], None], app: App
    ) -> None:
        self._editor = editor
        self._wanted = hello.endpoints
        self._lsp = AgentEndpoint(
            LSP,
            lsp_token(token),
            "http",
            "authorization",
            ServerInfo("mcp-tools.nvim", __version__),
            scheme="bearer",
        )
        self._hide = hide
        self.endpoints = Endpoints()
        handlers = app.handlers
        self._sessions = handlers.sessions
        self._sessions.watcher = SessionEvents(editor, self._sessions)
        handlers.server_info = self.endpoints.server_info
        self._registrations = Registrations(editor, hide, self._sessions)
        hooks = Hooks(editor, hello, hide, handlers.bodies)
        router = self._router = AgentRouter(handlers, self.endpoints, self._registrations, app.body_limit)
        self._sockets = UnixSockets(router.match, app.body_limit)
        app.match_agent = lambda request: hooks.match(request) or router.match(request)
        self._work: asyncio.Task[None] | None = None
        self._again = False
        editor.on("endpoints", self._changed)

    async def open(self) -> None:
        """Opens the wanted endpoints and reports which are open."""
        while True:
            self._again = False
            await self._open(self._wanted)
            if not self._again:
                return

    async def disconnect(self) -> None:
        """Disconnects all agents when the bridge ends, without answering their requests.

        An answer would reject open proposals; without one the user can still decide in the agent's terminal.
        Agents reconnect within milliseconds, so new connections are refused first: an agent that got one
        would believe that it is connected.
        """
        if self._work is not None:
            self._work.cancel()
        await self._registrations.close()
        self._router.ends = True
        await self._sockets.stop_listening()
        if any(self._sessions.of_agent(endpoint.name) for endpoint in self.endpoints):
            await asyncio.sleep(FLUSH_SECONDS)
        self._sessions.disconnect_agents()

    async def close(self) -> None:
        """Closes the sockets."""
        if self._work is not None:
            self._work.cancel()
        await self._sockets.close()

    def _changed(self, endpoints: tuple[AgentEndpoint, ...]) -> None:
        if self._router.ends:
            return
        self._wanted, self._again = endpoints, True
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self.open())

    async def _open(self, endpoints: tuple[AgentEndpoint, ...]) -> None:
        for endpoint in (self._lsp, *endpoints):
            self._hide(endpoint.token)
        known = set(self.endpoints) - {self._lsp}
        self.endpoints.set((self._lsp, *endpoints))
        for gone in known - set(endpoints):
            for session in self._sessions.of_agent(gone.name):
                self._sessions.drop(session)
        await self._sockets.keep({endpoint.socket for endpoint in endpoints if endpoint.socket is not None})
        failed: dict[str, str] = {}
        for endpoint in endpoints:
            if endpoint.transport == "unix":
                try:
                    await self._sockets.open(endpoint)
                except OSError as fault:
                    failed[endpoint.name] = str(fault)
                    logger.warning("the endpoint of %s is not open: %s", endpoint.name, fault)
        if known or endpoints:
            open_ = [endpoint.name for endpoint in endpoints if endpoint.name not in failed]
            self._editor.report("endpoints", {"open": open_, "failed": failed})


class SessionEvents:
    """Reports sessions of agents and their notifications to Neovim, and sends them its notifications."""

    def __init__(self, editor: NvimEditor, sessions: Sessions) -> None:
        self._editor = editor
        self._sessions = sessions
        self._notices: WeakKeyDictionary[Session, TokenBucket] = WeakKeyDictionary()
        editor.on("push", self._push)

    def opened(self, session: Session) -> None:
        """Reports a session that can receive notifications."""
        client, _ = session.peer.identity
        name, version = str(client.get("name", ""))[:200], str(client.get("version", ""))[:200]
        self._report("opened", session, client=name, version=version)

    def notified(self, session: Session, method: str, params: Mapping[str, Any] | None) -> None:
        """Reports a notification outside MCP; those above the rate limit are dropped."""
        now = time.monotonic()
        fresh = TokenBucket(NOTICES_PER_SECOND, NOTICES_AT_ONCE, now)
        if self._notices.setdefault(session, fresh).take(now):
            logger.debug("dropped a notification of an agent: too many per second")
            return
        text = jsonrpc.dumps(params or {})
        if len(text) + len(method) > MAX_NOTICE:
            logger.warning("dropped a notification of an agent: %d bytes", len(text))
            return
        self._report("notified", session, method=method, params=text.decode())

    def left(self, session: Session) -> None:
        """Reports a session that has ended."""
        self._report("left", session)

    def _report(self, event: str, session: Session, **more: str) -> None:
        data = {"agent": session.agent, "session": session.key, **more}
        self._editor.agent_event(event, data)

    def _push(self, agent: str, session: str | None, method: str, params: str, latest: bool) -> None:
        text = params.encode()
        for each in self._sessions.of_agent(agent):
            if session is None or each.key == session:
                each.notify_with(method, text, latest=latest)
