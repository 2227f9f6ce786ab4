"""The kernel: serves the requests of both eras, with and without sessions, on the SDK.

It gets valid JSON-RPC messages, and returns results as dicts or a `Rejection`. Import it after `import_sdk`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, aclose_shielded, modern_error_data
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    decode_header_value,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    HEADER_MISMATCH,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    ClientCapabilities,
    Implementation,
    InitializeRequestParams,
)
from mcp_types.methods import validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from multidict import MultiMapping, istr
from pydantic import ValidationError

from .. import jsonrpc
from ..values import Scope
from . import fast_path, tasks
from .dispatch import Dispatch, KeyedPush, Requester, SendRequest, Standalone, declared_client
from .fast_path import FastPath, is_plain_call
from .server import Assembly

MAX_KEPT_IDENTITY = 16 * 1024
"""Maximum characters of a stateless client's identity that is cached."""

MAX_FIELDS = 5
"""Maximum invalid fields in an error: for an invalid union the SDK reports the fields of all its members."""

MAX_FIELD = 200
"""Maximum characters of a field's path in an error."""

_BATCH_VERSION = "2025-03-26"
_PRIMING_VERSION = "2025-11-25"

_ROUTING_HEADERS = tuple(map(istr, (MCP_PROTOCOL_VERSION_HEADER, MCP_METHOD_HEADER, MCP_NAME_HEADER)))

_LIFESPAN: dict[str, Any] = {}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a stateless request is refused."""

    status: int
    code: int
    message: str
    data: Any = None


class Peer:
    """The client of a session, as the SDK sees it.

    Attributes:
        connection: the SDK's connection; its id is the session's id for tools.
    """

    def __init__(
        self, server: Server[Any], fast: FastPath, key: str, push: KeyedPush, ask: SendRequest
    ) -> None:
        self.connection = Connection.for_loop(Standalone(push, ask), session_id=key)
        self._fast_path = fast
        options = server.create_initialization_options()
        self._runner = ServerRunner(server, self.connection, _LIFESPAN, init_options=options)

    @property
    def version(self) -> str:
        """The negotiated protocol version."""
        return self.connection.protocol_version

    @property
    def may_batch(self) -> bool:
        """Whether the client may send batches, which only one protocol version allows."""
        return self.version == _BATCH_VERSION

    @property
    def expects_priming(self) -> bool:
        """Whether the client accepts an empty event at the start of a stream."""
        return self.version >= _PRIMING_VERSION  # versions are dates

    @property
    def initialized(self) -> bool:
        """Whether the client may be sent notifications."""
        return self.connection.initialized.is_set()

    @property
    def identity(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Declared client information, and capabilities that are not too large; empty before `initialize`."""
        params = self.connection.client_params
        if params is None:
            return {}, {}
        client = params.client_info.model_dump(by_alias=True, mode="json", exclude_none=True)
        return client, declared_client(self.connection)[1]

    def revive(self, version: str, client: dict[str, Any], capabilities: dict[str, Any]) -> None:
        """Restores the state of a client that was initialized before a restart of the bridge.

        Raises:
            ValueError: the values are not valid.
        """
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise ValueError(f"unknown protocol version {version}")
        self.connection.client_params = InitializeRequestParams(
            protocol_version=version,
            client_info=Implementation.model_validate(client),
            capabilities=ClientCapabilities.model_validate(capabilities),
        )
        self.connection.protocol_version = version
        self.connection.initialized.set()

    def request(self, dispatch: Dispatch, request: jsonrpc.Request) -> Awaitable[dict[str, Any]]:
        """Serves a request; raises whatever the handler raises."""
        method, params = request.method, request.params
        if method == "initialize" and params is not None:
            params = well_formed(params)
        serve = partial(self._runner.on_request, dispatch, method, params)
        if (
            method == fast_path.METHOD
            and self.connection.initialize_accepted
            and params is not None
            and is_plain_call(params)
        ):
            return self._fast_path.run(Requester(self.connection, dispatch, params), serve)
        return serve()

    async def notified(self, notification: jsonrpc.Notification) -> None:
        """Serves a notification; never raises."""
        dispatch = Dispatch(None, notification.params)
        await self._runner.on_notify(dispatch, notification.method, notification.params)

    async def close(self) -> None:
        """Runs the clean-up functions that handlers added to the connection."""
        await aclose_shielded(self.connection)


class _Client(NamedTuple):
    """A client without a session; `well_formed`: its identity passes the SDK's validation."""

    identity: tuple[str, Any, Any, str | None]
    connection: Connection
    runner: ServerRunner[Any]
    well_formed: bool


class Kernel:
    """Serves both eras on one SDK server.

    Args:
        assembly: the SDK server and its parts.

    Attributes:
        stop: ends the subscription streams.
    """

    handshake_versions = frozenset(HANDSHAKE_PROTOCOL_VERSIONS)
    dispatch = Dispatch
    rejection = Rejection

    def __init__(self, assembly: Assembly) -> None:
        self.server = assembly.server
        self.stop = assembly.stop
        self._assembly = assembly

    def connect(self, key: str, push: KeyedPush, ask: SendRequest, agent: str | None = None) -> Peer:
        """Creates the client of a new session; terminal agents have a server of their own."""
        server = self.server if agent is None else self._assembly.agent_server(agent)
        return Peer(server, self._assembly.fast, key, push, ask)

    async def route(
        self,
        request: jsonrpc.Request,
        headers: MultiMapping[str],
        scope: Scope | None = None,
        peer: Peer | None = None,
    ) -> InboundModernRoute | Rejection:
        """Validates the envelope and headers of a stateless request.

        With a `peer`, the request is from the relay, whose client sends no arguments in headers.
        """
        for header in _ROUTING_HEADERS:  # the SDK's function for this walks all headers
            if len(headers.getall(header, ())) > 1:
                return Rejection(400, HEADER_MISMATCH, f"{header} header appears more than once")
        params = request.params or {}
        body = {"method": request.method, "params": request.params}
        verdict = classify_inbound_request(body, headers=headers)  # `headers` is case-insensitive
        if isinstance(verdict, InboundLadderRejection):
            return _rejection(verdict)
        if request.method == fast_path.METHOD and peer is None:
            name, arguments = params.get("name"), params.get("arguments") or {}
            if isinstance(name, str) and isinstance(arguments, dict):  # the handler reports other types
                schema = await self._assembly.tools.schema(name, scope)
                if schema is not None:
                    mismatch = validate_mcp_param_headers(schema, arguments, headers)
                    return verdict if mismatch is None else _rejection(mismatch)
        if request.method in tasks.METHODS and _names_another_task(params, headers):
            text = f"{MCP_NAME_HEADER} header does not match the request body's 'taskId' parameter"
            return Rejection(400, HEADER_MISMATCH, text)
        return verdict

    def unserved_version(self, version: str) -> Rejection | None:
        """Returns the rejection of an unsupported stateless protocol version; else None."""
        rejection = unsupported_protocol_version_rejection(version)
        return None if rejection is None else _rejection(rejection)

    def serve(
        self, route: InboundModernRoute, peer: Peer | None, dispatch: Dispatch, request: jsonrpc.Request
    ) -> Awaitable[dict[str, Any]]:
        """Serves a stateless request; raises whatever the handler raises.

        With a `peer`, the client is that of the relay's session.
        """
        client = self._client(route, peer, {} if dispatch.store is None else dispatch.store)
        params = request.params
        serve = partial(client.runner.on_request, dispatch, request.method, params)
        if (
            request.method == fast_path.METHOD
            and client.well_formed
            and params is not None
            and is_plain_call(params)
            and LOG_LEVEL_META_KEY not in params["_meta"]
        ):
            return self._assembly.fast.run(Requester(client.connection, dispatch, params), serve)
        return serve()

    @staticmethod
    def error(id_: jsonrpc.RequestId, failure: Exception) -> dict[str, Any]:
        """Returns the answer to a request whose handler raised; unexpected errors are logged and hidden."""
        if isinstance(failure, ValidationError):
            return jsonrpc.error(id_, jsonrpc.INVALID_PARAMS, *_describe_invalid(failure))
        data = modern_error_data(failure)
        return jsonrpc.error(id_, data.code, data.message, data.data)

    @staticmethod
    def status_of(answer: dict[str, Any]) -> int:
        """Returns the HTTP status of a stateless answer."""
        return ERROR_CODE_HTTP_STATUS.get(answer["error"]["code"], 200) if "error" in answer else 200

    def _client(self, route: InboundModernRoute, peer: Peer | None, store: dict[str, Any]) -> _Client:
        """Returns the SDK's objects for a stateless client, cached while its identity stays the same.

        They need no clean-up after a request: handlers add such functions to sessions only.
        """
        key = None if peer is None else peer.connection.session_id
        identity = (route.protocol_version, route.client_info, route.client_capabilities, key)
        known: _Client | None = store.get("client")
        if known is not None and known.identity == identity:
            return known
        info = route.client_info
        if info is None and peer is not None:
            info = peer.identity[0]
        connection = Connection.from_envelope(route.protocol_version, info, route.client_capabilities)
        if peer is not None:
            connection.session_id, connection.exit_stack = key, peer.connection.exit_stack
        runner = ServerRunner(self.server, connection, _LIFESPAN)
        client = _Client(identity, connection, runner, _is_well_formed(route))
        if len(repr(identity)) <= MAX_KEPT_IDENTITY:
            store["client"] = client
        return client


def well_formed(params: dict[str, Any]) -> dict[str, Any]:
    """Returns the parameters without malformed extensions, which the SDK would refuse."""
    capabilities = params.get("capabilities")
    if not isinstance(capabilities, dict):
        return params
    kept = dict(capabilities)
    for member in ("extensions", "experimental"):
        if member not in kept:
            continue
        declared = kept[member]
        if not isinstance(declared, dict):
            logger.info("ignored the client's capabilities.%s: not an object", member)
            del kept[member]
        elif malformed := [name for name, value in declared.items() if not isinstance(value, dict)]:
            names = ", ".join(map(ascii, malformed))[:200]
            logger.info("ignored malformed members of the client's capabilities.%s: %s", member, names)
            kept[member] = {name: value for name, value in declared.items() if isinstance(value, dict)}
    return params if kept == capabilities else {**params, "capabilities": kept}


def _describe_invalid(failure: ValidationError) -> tuple[str, dict[str, Any]]:
    """Returns the message and data of the error for invalid parameters."""
    faults = [
        {"field": _field(fault["loc"]), "message": fault["msg"]}
        for fault in failure.errors(include_url=False, include_context=False, include_input=False)[
            :MAX_FIELDS
        ]
    ]
    text = "; ".join(f"{fault['field']}: {fault['message']}" for fault in faults)
    return f"Invalid request parameters: {text}", {"errors": faults}


def _field(location: tuple[int | str, ...]) -> str:
    parts = location[1:] if location[:1] == ("params",) else location
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return path.removeprefix(".")[:MAX_FIELD] or "(root)"


def _names_another_task(params: Mapping[str, Any], headers: MultiMapping[str]) -> bool:
    id_ = params.get("taskId")
    return id_ is not None and decode_header_value(headers.get(MCP_NAME_HEADER)) != id_


def _rejection(verdict: InboundLadderRejection) -> Rejection:
    status = ERROR_CODE_HTTP_STATUS.get(verdict.code, 200)
    return Rejection(status, verdict.code, verdict.message, verdict.data)


def _is_well_formed(route: InboundModernRoute) -> bool:
    meta = {
        PROTOCOL_VERSION_META_KEY: route.protocol_version,
        CLIENT_INFO_META_KEY: route.client_info,
        CLIENT_CAPABILITIES_META_KEY: route.client_capabilities,
    }
    try:
        validate_client_request(fast_path.METHOD, route.protocol_version, {"name": "", "_meta": meta})
    except ValidationError:
        return False
    return True
