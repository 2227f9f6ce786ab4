"""Routes requests of terminal agents: matches tokens, applies guards, chooses the transport.

The guards are stricter than those of the main token: agents are not web pages, so no Origin is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from aiohttp import hdrs, web

from .. import jsonrpc
from ..http import guards
from ..http.app import Handler, answer_expectation
from ..http.handlers import Handlers
from ..http.response import json_response
from ..http.streamable import SESSION_HEADER, StreamableHttp, fault_response
from ..values import AgentEndpoint, ServerInfo
from .registrations import OwnToken, Registrations, digest_of
from .websocket import WebSockets

PATHS = ("/", "/mcp")

GENERIC_NAMES = ("", "streamable-http-client")
"""Client names of agents that set none: Gemini CLI and Qwen Code."""

CONTAINER_HOST = "host.docker.internal"
"""The name by which an agent in a container reaches its host."""


class Endpoints:
    """The endpoints of all agents, and the match of a request to one of them."""

    def __init__(self) -> None:
        self._by_name: dict[str, AgentEndpoint] = {}

    def __iter__(self) -> Iterator[AgentEndpoint]:
        return iter(list(self._by_name.values()))

    def set(self, endpoints: Iterable[AgentEndpoint]) -> None:
        """Replaces all endpoints."""
        self._by_name = {endpoint.name: endpoint for endpoint in endpoints}

    def server_info(self, agent: str) -> ServerInfo | None:
        """Returns the server information that an agent gets, by its name."""
        endpoint = self._by_name.get(agent)
        return None if endpoint is None else endpoint.server

    def find_by_token(self, values: guards.HeaderValues, unix: str | None = None) -> AgentEndpoint | None:
        """Returns the endpoint whose token a request has, in constant time for wrong tokens.

        Args:
            values: the headers of the request.
            unix: name of the endpoint whose unix socket got the request; None for the port.
        """
        found = None
        for endpoint in self._by_name.values():
            here = unix == endpoint.name if endpoint.transport == "unix" else unix is None
            if guards.has_token(values, endpoint.header, endpoint.scheme, endpoint.token) and here:
                found = endpoint
        return found


def any_origin_guard(request: web.Request) -> web.Response | None:
    """Returns 403 for any Origin, which only browsers send."""
    return guards.refusal(403, "Origin is not allowed here") if hdrs.ORIGIN in request.headers else None


class AgentRouter:
    """Serves the requests of agents.

    Args:
        handlers: the parts that all transports share.
        endpoints: the current endpoints.
        registrations: OpenCode servers and agents over ACP, which have tokens of their own.
        limit: maximum bytes of a message.

    Attributes:
        ends: the bridge is ending; all requests are refused.
    """

    def __init__(
        self, handlers: Handlers, endpoints: Endpoints, registrations: Registrations, limit: int
    ) -> None:
        self.ends = False
        self._handlers = handlers
        self._endpoints = endpoints
        self._registrations = registrations
        self._http: dict[str, StreamableHttp] = {}
        self._websockets = WebSockets(handlers.sessions, handlers.loader, limit)
        self._guards = [guards.host_guard([CONTAINER_HOST]), any_origin_guard, handlers.bodies.refuse]
        self._guards_of: dict[str, list[guards.Guard]] = {
            "POST": [guards.json_guard, guards.accept_guard("application/json", "text/event-stream")],
            "GET": [guards.accept_guard("text/event-stream")],
            "DELETE": [],
        }

    def match(self, request: web.Request, unix: str | None = None) -> Handler | None:
        """Returns the handler of a request with the token of an agent; None for other requests.

        Args:
            request: the request; only its head is needed.
            unix: name of the endpoint whose unix socket got the request.
        """
        values = guards.header_values(request)
        endpoint = self._endpoints.find_by_token(values, unix)
        if endpoint is not None:
            return partial(self._serve, endpoint)
        holder = self._registrations.find_by_token(values) if unix is None else None
        return None if holder is None else partial(self._serve_holder, holder, holder.token)

    async def _serve(self, endpoint: AgentEndpoint, request: web.Request) -> web.StreamResponse:
        if refused := self._refuse(request):
            return refused
        if endpoint.transport == "websocket":
            return await self._websockets.serve(request, endpoint)
        return await self._answer(request, self._transport(endpoint.name), endpoint.label)

    async def _serve_holder(self, holder: OwnToken, token: str, request: web.Request) -> web.StreamResponse:
        """Serves the holder of an own token: it has the tools of any client, but only its own sessions."""
        if refused := self._refuse(request):
            return refused
        handlers, digest = self._handlers, digest_of(token)
        http = StreamableHttp(handlers.sessions, handlers.events, handlers.responses, None, digest)
        response = await self._answer(request, http)
        if holder.token != token:  # it was revoked meanwhile; the request may have opened a session
            handlers.sessions.delete_of_token(digest)
        return response

    def _refuse(self, request: web.Request) -> web.Response | None:
        if self.ends:  # on an older connection
            return guards.refusal(503, "The bridge is shutting down", Connection="close")
        if (refused := guards.refused_by(self._guards, request)) is not None:
            return refused
        return None if request.path in PATHS else web.Response(status=404, text="Not Found")

    async def _answer(
        self, request: web.Request, http: StreamableHttp, label: str | None = None
    ) -> web.StreamResponse:
        if request.method not in self._guards_of:
            return guards.refusal(405, "Method not allowed", Allow=",".join(sorted(self._guards_of)))
        if (refused := guards.refused_by(self._guards_of[request.method], request)) is not None:
            return refused
        await answer_expectation(request)
        if request.method == "POST":
            return await self._post(request, http, label)
        kernel = await self._handlers.loader.load()
        if request.method == "GET":
            return await http.get(request, kernel)
        return await http.delete(request)

    def _transport(self, agent: str) -> StreamableHttp:
        """Returns the transport of an endpoint, which accepts its sessions only."""
        if agent not in self._http:
            handlers = self._handlers
            self._http[agent] = StreamableHttp(handlers.sessions, handlers.events, handlers.responses, agent)
        return self._http[agent]

    async def _post(
        self, request: web.Request, http: StreamableHttp, label: str | None
    ) -> web.StreamResponse:
        """Serves a POST; requires a session, which notifications need."""
        data = await self._handlers.bodies.read(request)
        if not isinstance(data, bytes):
            return data
        body = jsonrpc.parse(data)
        if isinstance(body, jsonrpc.Fault):
            return fault_response(body)
        first = isinstance(body, jsonrpc.Request) and SESSION_HEADER not in request.headers
        if first and isinstance(body, jsonrpc.Request) and body.method != "initialize":
            # An agent that tries `server/discover` first continues with `initialize` after this error.
            text = f"Method not found: {body.method[:100]}; send initialize first"
            return json_response(jsonrpc.dumps(jsonrpc.error(body.id, jsonrpc.METHOD_NOT_FOUND, text)))
        if first and isinstance(body, jsonrpc.Request) and label is not None:
            _give_name(body, label)
        kernel = await self._handlers.loader.load()
        return await http.post(request, kernel, body)


def _give_name(initialize: jsonrpc.Request, label: str) -> None:
    """Replaces the client name of an SDK by the label of the agent."""
    info = (initialize.params or {}).get("clientInfo")
    if isinstance(info, dict) and info.get("name") in GENERIC_NAMES:
        info["name"] = label
