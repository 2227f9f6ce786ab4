"""What a handler may ask of its request: who made it, its version, and how to notify its client."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from mcp.server.connection import Connection, allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from ..calls.arguments import fits
from ..values import MAX_CLIENT_NAME, ClientInfo, View
from .dispatch import Dispatch, Standalone

Context = ServerRequestContext[Any, Any]
"""What handlers and middleware are given."""

logger = logging.getLogger(__name__)

_HANDSHAKE_VERSIONS = frozenset(HANDSHAKE_PROTOCOL_VERSIONS)


class Caller(NamedTuple):
    """The client of one request: what stays of it, the way back, and what the request said."""

    connection: Connection
    dispatch: Dispatch
    params: Mapping[str, Any]

    @property
    def is_stateless(self) -> bool:
        """Whether the request is of the era without sessions."""
        return self.connection.protocol_version not in _HANDSHAKE_VERSIONS

    def log_levels(self) -> frozenset[str] | None:
        """The levels that a stateless request asked for; None in a session, which has a level of its own."""
        if not self.is_stateless:
            return None
        return frozenset(allowed_log_levels(self.connection.protocol_version, self.params.get("_meta")))


def caller_of(context: Context) -> Caller:
    """Who made the request."""
    return Caller(connection_of(context), dispatch_of(context), context.params or {})


def connection_of(context: Context) -> Connection:
    """The client's connection: its session id, its capabilities, and a place to keep things."""
    return context.session._connection


def who(connection: Connection) -> tuple[ClientInfo, dict[str, Any]]:
    """The client and its capabilities, as it declared them, without those that are too large to be any."""
    known: tuple[ClientInfo, dict[str, Any]] | None = connection.state.get("client")
    if known is None:
        params, declared = connection.client_params, connection.client_capabilities
        info = params.client_info if params is not None else None
        # The editor keeps these names, for as long as it runs.
        name, version = (info.name, info.version) if info is not None else ("", "")
        client = ClientInfo(name[:MAX_CLIENT_NAME], version[:MAX_CLIENT_NAME])
        dumped = declared.model_dump(by_alias=True, mode="json", exclude_none=True) if declared else {}
        capabilities = {place: value for place, value in dumped.items() if fits(value)}
        if len(capabilities) < len(dumped):
            logger.info("%.80r declares more than anybody reads; that counts as absent", client.name)
        known = connection.state["client"] = (client, capabilities)
    return known


def view_of(context: Context) -> View:
    """Whose list of tools the request is about."""
    return View(who(connection_of(context))[0].name, dispatch_of(context).within)


def dispatch_of(context: Context) -> Dispatch:
    """The message as it came, and the way back to its client."""
    return cast(Dispatch, context.request)


def scope_of(context: Context) -> dict[str, Any]:
    """A place to keep things as long as the client's session, or without one its connection."""
    scope = dispatch_of(context).scope
    return connection_of(context).state if scope is None else scope


def is_stateless(context: Context) -> bool:
    """Whether the request is of the era without sessions."""
    return context.protocol_version not in _HANDSHAKE_VERSIONS


def tell(connection: Connection, method: str, params: Mapping[str, Any], key: str) -> None:
    """Sends a session's client what belongs to no request; never waits."""
    cast(Standalone, connection.outbound).tell(method, params, key)
