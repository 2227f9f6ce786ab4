"""What a handler may ask of its request: whose it is, by what version it came, how its client is told something.

Receives: the SDK's context. Sends: what hides in it; no other module looks there.
Does not know about: methods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp.server.connection import Connection, allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.dispatcher import CallOptions
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from .dispatch import Dispatch, Standalone

Context = ServerRequestContext[Any, Any]
"""What handlers and middleware are given."""


def connection_of(context: Context) -> Connection:
    """The client's connection: its session id, its capabilities, and a place to keep things."""
    return context.session._connection


def dispatch_of(context: Context) -> Dispatch | None:
    """Our own view of the message; None when another front (the SDK's, in tests) serves it."""
    return context.request if isinstance(context.request, Dispatch) else None


def scope_of(context: Context) -> dict[str, Any]:
    """A place to keep things as long as the client's session, or without one its connection."""
    dispatch = dispatch_of(context)
    if dispatch is not None and dispatch.scope is not None:
        return dispatch.scope
    return connection_of(context).state


def is_stateless(context: Context) -> bool:
    """Whether the request is of the era without sessions."""
    return context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS


def tell(
    connection: Connection, method: str, params: Mapping[str, Any], key: str
) -> asyncio.Task[None] | None:
    """Sends a session's client what belongs to no request; a task only with another front than ours."""
    if isinstance(connection.outbound, Standalone):
        connection.outbound.tell(method, params, key)
        return None
    return asyncio.get_running_loop().create_task(connection.notify(method, params))


async def request_client(
    context: Context, method: str, params: Mapping[str, Any] | None, seconds: float | None = None
) -> dict[str, Any]:
    """Asks the client of a session, over the stream of its request.

    Raises:
        MCPError: the client refused.
        TimeoutError: it did not answer in time.
    """
    options: CallOptions = {} if seconds is None else {"timeout": seconds}
    return await context.session._request_outbound.send_raw_request(method, params, options)


def requested_log_levels(context: Context) -> frozenset[str] | None:
    """The log levels that a stateless request asked for; None in a session, which has a level of its own."""
    if not is_stateless(context):
        return None
    return frozenset(allowed_log_levels(context.protocol_version, context.meta))
