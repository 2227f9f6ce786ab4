"""The router of companions: the guards of their endpoints, and which transport serves a request.

The guards are stricter than those of the main token: no agent is a web page, so none has an Origin.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from aiohttp import hdrs, web

from .. import jsonrpc
from ..http.app import Handler, answer_expectation
from ..http.endpoints import Front
from ..http.guards import Guard, refusal
from ..http.guards.host import HostGuard
from ..http.guards.size import SizeGuard
from ..http.guards.types import AcceptGuard, JsonGuard
from ..http.response import json_response
from ..http.streamable import SESSION_HEADER, StreamableHttp, fault_response
from ..values import Endpoint, ServerInfo
from .registrations import Registration, Registrations, Values
from .websocket import WebSockets

PATHS = ("/", "/mcp")

GENERIC_NAMES = ("", "streamable-http-client")
"""What agents call themselves that do not set a name: Gemini CLI and Qwen Code."""

CONTAINER_HOST = "host.docker.internal"
"""What an agent in a container calls the machine that it believes its editor to be on."""


class Endpoints:
    """The endpoints of all agents, and which of them a request opens."""

    def __init__(self, endpoints: Iterable[Endpoint] = ()) -> None:
        self._by_name: dict[str, Endpoint] = {}
        self.set(endpoints)

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(list(self._by_name.values()))

    def set(self, endpoints: Iterable[Endpoint]) -> None:
        """From now on these are all."""
        self._by_name = {endpoint.name: endpoint for endpoint in endpoints}

    def server_info(self, companion: str) -> ServerInfo | None:
        """What the agent of a companion is told that it has found."""
        endpoint = self._by_name.get(companion)
        return None if endpoint is None else endpoint.server

    def opened_by(self, values: Values, unix: str | None = None) -> Endpoint | None:
        """The endpoint whose token a request shows; takes equally long for every wrong one.

        Args:
            values: the headers of the request.
            unix: name of the endpoint whose socket it came by; without one it came to the port.
        """
        found = None
        for endpoint in self._by_name.values():
            here = unix == endpoint.name if endpoint.transport == "unix" else unix is None
            if holds(endpoint, values) and here:
                found = endpoint
        return found


def holds(endpoint: Endpoint, values: Values) -> bool:
    """Whether a request shows the token of an endpoint, once and as that endpoint wants it."""
    given = values(endpoint.header)
    if len(given) != 1:
        return False
    text = given[0].strip()
    scheme, _, secret = text.partition(" ") if endpoint.scheme is not None else ("", "", text)
    same = hmac.compare_digest(secret.strip().encode("utf-8", "surrogateescape"), endpoint.token.encode())
    return same and scheme.lower() == (endpoint.scheme or "").lower()


class AnyOriginGuard:
    """Refuses every browser."""

    def refuse(self, request: web.Request) -> web.Response | None:
        """403 for whatever Origin."""
        return refusal(403, "Origin is not allowed here") if hdrs.ORIGIN in request.headers else None


class CompanionRouter:
    """Serves the requests of agents.

    Args:
        front: has the sessions, and what else all transports share.
        endpoints: those of the moment.
        registrations: servers that have a token for sessions of their own.
        limit: bytes of a message.

    Attributes:
        ends: nobody is served any more.
    """

    def __init__(self, front: Front, endpoints: Endpoints, registrations: Registrations, limit: int) -> None:
        self.ends = False
        self._front = front
        self._endpoints = endpoints
        self._registrations = registrations
        self._http: dict[str | None, StreamableHttp] = {}
        self._websockets = WebSockets(front.sessions, front.loader, limit)
        size = SizeGuard(limit, front.bodies.refuse_larger)
        self._guards: list[Guard] = [HostGuard([CONTAINER_HOST]), AnyOriginGuard(), size]
        self._guards_of: dict[str, list[Guard]] = {
            "POST": [JsonGuard(), AcceptGuard("application/json", "text/event-stream")],
            "GET": [AcceptGuard("text/event-stream")],
            "DELETE": [],
        }

    def welcomes(self, request: web.Request, unix: str | None = None) -> Handler | None:
        """Who serves a request that shows the token of an endpoint.

        Args:
            request: its head is enough.
            unix: name of the endpoint whose socket it came by.
        """

        def values(name: str) -> Sequence[str]:
            return request.headers.getall(name, ())

        endpoint = self._endpoints.opened_by(values, unix)
        if endpoint is not None:
            return partial(self._serve, endpoint)
        registration = self._registrations.opened_by(values) if unix is None else None
        return None if registration is None else partial(self._serve_registered, registration)

    async def _serve(self, endpoint: Endpoint, request: web.Request) -> web.StreamResponse:
        if refused := self._refuse(request):
            return refused
        if endpoint.transport == "websocket":
            return await self._websockets.serve(request, endpoint)
        return await self._answer(request, self._transport(endpoint.name), endpoint.label)

    async def _serve_registered(self, registration: Registration, request: web.Request) -> web.StreamResponse:
        """A server that has a token of its own: it has the tools of a client, in its own sessions alone."""
        if refused := self._refuse(request):
            return refused
        token, id_ = registration.token, request.headers.get(SESSION_HEADER)
        if id_ is not None and id_ not in registration.sessions:
            return refusal(404, "Session not found; send initialize again")
        response = await self._answer(request, self._transport(None))
        opened = response.headers.get(SESSION_HEADER) if id_ is None else None
        if opened is not None and registration.token == token:
            registration.sessions.add(opened)
        elif opened is not None:  # the token was revoked meanwhile
            self._front.sessions.delete(opened)
        return response

    def _refuse(self, request: web.Request) -> web.Response | None:
        if self.ends:  # on a connection that was there before
            return refusal(503, "The bridge is about to end", Connection="close")
        for guard in self._guards:
            if refused := guard.refuse(request):
                return refused
        return None if request.path in PATHS else web.Response(status=404, text="Not Found")

    async def _answer(
        self, request: web.Request, http: StreamableHttp, label: str | None = None
    ) -> web.StreamResponse:
        if request.method not in self._guards_of:
            return refusal(405, "Method not allowed", Allow=",".join(sorted(self._guards_of)))
        for guard in self._guards_of[request.method]:
            if refused := guard.refuse(request):
                return refused
        await answer_expectation(request)
        if request.method == "POST":
            return await self._post(request, http, label)
        kernel = self._front.loader.kernel or await self._front.loader.load()
        if request.method == "GET":
            return await http.get(request, kernel)
        return await http.delete(request)

    def _transport(self, companion: str | None) -> StreamableHttp:
        """Returns the transport of an endpoint: it knows no sessions of others."""
        if companion not in self._http:
            front = self._front
            self._http[companion] = StreamableHttp(front.sessions, front.events, front.responses, companion)
        return self._http[companion]

    async def _post(
        self, request: web.Request, http: StreamableHttp, label: str | None
    ) -> web.StreamResponse:
        """Sessions only: without one nothing can be pushed."""
        data = await self._front.bodies.read(request)
        if not isinstance(data, bytes):
            return data
        body = jsonrpc.parse(data)
        if isinstance(body, jsonrpc.Fault):
            return fault_response(body)
        first = isinstance(body, jsonrpc.Request) and SESSION_HEADER not in request.headers
        if first and isinstance(body, jsonrpc.Request) and body.method != "initialize":
            # An agent that asks first which eras there are goes on with `initialize` after this.
            text = f"Method not found: {body.method[:100]}; send initialize first"
            return json_response(jsonrpc.dumps(jsonrpc.error(body.id, jsonrpc.METHOD_NOT_FOUND, text)))
        if first and isinstance(body, jsonrpc.Request) and label is not None:
            _give_name(body, label)
        kernel = self._front.loader.kernel or await self._front.loader.load()
        return await http.post(request, kernel, body)


def _give_name(initialize: jsonrpc.Request, label: str) -> None:
    """Names a client that has only the name of its SDK by the agent whose token it shows."""
    info = (initialize.params or {}).get("clientInfo")
    if isinstance(info, dict) and info.get("name") in GENERIC_NAMES:
        info["name"] = label
