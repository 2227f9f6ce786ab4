"""Runs a handler in the editor for the client of a request."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any

from ..calls.runner import Calls
from ..values import CallKind, CallRequest, Outcome
from . import inputs
from .observer import Observer
from .request import Caller, who


def run(
    calls: Calls, caller: Caller, name: str, arguments: dict[str, Any], kind: CallKind = "tool"
) -> Awaitable[Outcome]:
    """The outcome of a handler. (No coroutine of its own: every call passes here.)"""
    connection = caller.connection
    client, capabilities = who(connection)
    request = CallRequest(
        name, arguments, client, connection.session_id, capabilities, kind, scope=caller.dispatch.within
    )
    observer = Observer(caller, name)
    if kind == "completion":
        return calls.run(request, observer)  # has nothing to ask for
    if caller.is_stateless:
        return inputs.run_leg(calls, caller, request, observer)
    return calls.run(request, observer, partial(inputs.ask, caller.dispatch, calls.answer_within))
