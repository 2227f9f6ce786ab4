"""Functions for handlers: the client of a request, its protocol version, and notifications to it."""

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

RequestContext = ServerRequestContext[Any, Any]
"""The context that handlers and middleware get."""

logger = logging.getLogger(__name__)

_HANDSHAKE_VERSIONS = frozenset(HANDSHAKE_PROTOCOL_VERSIONS)


class Caller(NamedTuple):
    """The client of one request: its connection, the way back to it, and the request's parameters."""

    connection: Connection
    dispatch: Dispatch
    params: Mapping[str, Any]

    @property
    def is_stateless(self) -> bool:
        """Whether the request is of the stateless era."""
        return self.connection.protocol_version not in _HANDSHAKE_VERSIONS

    def log_levels(self) -> frozenset[str] | None:
        """Returns the log levels that a stateless request asked for; None in a session, which has its own."""
        if not self.is_stateless:
            return None
        return frozenset(allowed_log_levels(self.connection.protocol_version, self.params.get("_meta")))


def caller_of(context: RequestContext) -> Caller:
    """Returns the client of a request."""
    return Caller(sdk_connection(context), dispatch_of(context), context.params or {})


def sdk_connection(context: RequestContext) -> Connection:
    """Returns the SDK's connection of the client, with its session id, capabilities and state."""
    return context.session._connection


def who(connection: Connection) -> tuple[ClientInfo, dict[str, Any]]:
    """Returns the client and its declared capabilities, without those that are too large."""
    known: tuple[ClientInfo, dict[str, Any]] | None = connection.state.get("client")
    if known is None:
        params, declared = connection.client_params, connection.client_capabilities
        info = params.client_info if params is not None else None
        # Neovim keeps these names as long as it runs.
        name, version = (info.name, info.version) if info is not None else ("", "")
        client = ClientInfo(name[:MAX_CLIENT_NAME], version[:MAX_CLIENT_NAME])
        dumped = declared.model_dump(by_alias=True, mode="json", exclude_none=True) if declared else {}
        capabilities = {place: value for place, value in dumped.items() if fits(value)}
        if len(capabilities) < len(dumped):
            logger.info("ignored capabilities of %.80r that are too large", client.name)
        known = connection.state["client"] = (client, capabilities)
    return known


def view_of(context: RequestContext) -> View:
    """Returns what determines the client's list of tools."""
    return View(who(sdk_connection(context))[0].name, dispatch_of(context).within)


def dispatch_of(context: RequestContext) -> Dispatch:
    """Returns the message of a request and the way back to its client."""
    return cast(Dispatch, context.request)


def session_store(context: RequestContext) -> dict[str, Any]:
    """Returns the dict that lives as long as the client's session, or without one its connection."""
    store = dispatch_of(context).store
    return sdk_connection(context).state if store is None else store


def is_stateless(context: RequestContext) -> bool:
    """Whether the request is of the era without sessions."""
    return context.protocol_version not in _HANDSHAKE_VERSIONS


def notify_client(connection: Connection, method: str, params: Mapping[str, Any], key: str) -> None:
    """Sends a session's client a notification that belongs to no request; never waits."""
    cast(Standalone, connection.outbound).notify_client(method, params, key)
