"""What a call asks its client for (elicitation, sampling, roots), in both eras.

A state names {life of the editor, call, question}. What cannot be opened or names nothing is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.dispatcher import CallOptions
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_types.methods import INPUT_REQUIRED_METHODS

from .. import jsonrpc
from ..calls.call import Observer
from ..calls.runner import Calls
from ..errors import Code
from ..values import CallRequest, Outcome, Parked
from .dispatch import Dispatch
from .request import Caller, Context, is_stateless

SLOW_METHODS = frozenset({"elicitation/create", "sampling/createMessage"})
"""A person types, a model thinks: they take as long as they take."""

_KEY_LABEL = b"mcp-tools.nvim request state 1"


class InputRequiredError(Exception):
    """Ends a leg through any handler; `Legs` makes the result of it."""

    def __init__(self, parked: Parked) -> None:
        super().__init__("the client has to come back with its answers")
        self.parked = parked


class Legs:
    """Middleware: seals and opens the states of the stateless era.

    Args:
        token: key and principal of the seal come from it.
        boot: of the editor.
        seconds: how long a state holds.
    """

    def __init__(self, token: str, boot: str, seconds: float) -> None:
        self._boot = boot
        # As for session ids; but clients, who all know the token, must not make it, and nobody misses it
        # afterwards: a call ends with the process that runs it.
        key = hmac.digest(_KEY_LABEL, secrets.token_bytes(32) + token.encode(), "sha256")
        holder = hashlib.sha256(token.encode()).hexdigest()
        security = RequestStateSecurity(keys=[key], ttl=seconds, bind_principal=lambda _: holder)
        self._seal = RequestStateBoundary(security, default_audience="mcp-tools.nvim")

    def install(self, server: Server[Any]) -> None:
        """Adds the middleware."""
        server.middleware.append(self._sealed)  # type: ignore[arg-type]  # any awaitable will do

    def _sealed(self, ctx: Context, call_next: CallNext) -> Awaitable[HandlerResult]:
        if ctx.method not in INPUT_REQUIRED_METHODS or not is_stateless(ctx):
            return call_next(ctx)  # no coroutine of its own: every call of a session passes here
        return self._seal(ctx, partial(self._leg, call_next))

    async def _leg(self, call_next: CallNext, ctx: Context) -> HandlerResult:
        state = _state(ctx.params or {})
        if state is not None and state["boot"] != self._boot:
            raise _expired()
        try:
            return await call_next(ctx)
        except InputRequiredError as required:
            parked = required.parked
            state = {"boot": self._boot, "task": parked.task_id, "seq": parked.inputs.seq}
            return {
                "resultType": "input_required",
                "inputRequests": parked.inputs.requests,
                "requestState": json.dumps(state),
            }


async def run_leg(calls: Calls, caller: Caller, request: CallRequest, observer: Observer) -> Outcome:
    """Runs a call of the stateless era, or goes on with it.

    Raises:
        InputRequiredError: it asks for something.
        MCPError: the state names no call, or the client lacks a capability.
    """
    answers = _answers(caller.params.get("inputResponses"))
    state = _state(caller.params)
    result: Outcome | Parked | None
    if state is None:
        result = await calls.run_leg(request, observer)
        if isinstance(result, Parked) and result.inputs.requests.keys() <= answers.keys():
            # The client knew what it would be asked for.
            result = await calls.resume(result.task_id, result.inputs.seq, answers, observer)
    else:
        result = await calls.resume(state["task"], state["seq"], answers, observer)
    if result is None:
        raise _expired()
    if isinstance(result, Parked):
        raise InputRequiredError(result)
    error = result.error
    if error is not None and error.code == Code.CAPABILITY_MISSING and error.required:
        required = {"requiredCapabilities": error.required}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, error.message, required)
    return result


async def ask(dispatch: Dispatch, seconds: float, requests: dict[str, Any]) -> dict[str, Any]:
    """Asks the client of a session for everything at once.

    Args:
        dispatch: of the client's own request, over whose stream it is asked.
        seconds: how long the client may take where no person or model answers.
        requests: `{key: {method, params?}}`.
    """
    answers = await asyncio.gather(*(_ask(dispatch, seconds, request) for request in requests.values()))
    return dict(zip(requests, answers, strict=True))


async def _ask(dispatch: Dispatch, seconds: float, request: dict[str, Any]) -> dict[str, Any]:
    method = request["method"]
    options: CallOptions = {} if method in SLOW_METHODS else {"timeout": seconds}
    try:
        return {"result": await dispatch.send_raw_request(method, request.get("params") or None, options)}
    except MCPError as refusal:
        return {"error": refusal.error.model_dump(mode="json", exclude_none=True)}
    except TimeoutError:
        text = f"no answer within {seconds:g} s"
        return {"error": {"code": jsonrpc.REQUEST_TIMEOUT, "message": text}}


def _state(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a state says that was opened, hence is our own."""
    text = params.get("requestState")
    state: dict[str, Any] | None = None if text is None else json.loads(text)
    return state


def _answers(given: Any) -> dict[str, Any]:
    return {key: {"result": value} for key, value in given.items()} if isinstance(given, dict) else {}


def _expired() -> MCPError:
    # The same words as for a seal that does not open.
    text, data = "Invalid or expired requestState", {"reason": "invalid_request_state"}
    return MCPError(jsonrpc.INVALID_PARAMS, text, data)
