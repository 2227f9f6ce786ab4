"""Runs calls in Neovim; sends their progress, log messages and questions to the client, in both eras.

In the stateless era, a sealed request state identifies the run of Neovim, the call and the question.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.dispatcher import CallOptions
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_types.methods import INPUT_REQUIRED_METHODS

from .. import jsonrpc
from ..calls.call import Observer
from ..calls.runner import Calls
from ..errors import Code
from ..values import CallKind, CallRequest, Outcome, Parked, Progress
from .dispatch import Dispatch, RequestContext, Requester, is_stateless, sdk_connection, sender_of
from .tasks import Tasks, declares_tasks

SLOW_METHODS = frozenset({"elicitation/create", "sampling/createMessage"})
"""Methods without a timeout: a user or a model answers them."""

_KEY_LABEL = b"mcp-tools.nvim request state 1"


class InputRequiredError(Exception):
    """A call needs answers. Passes through all handlers; `RequestStates` makes a result from it."""

    def __init__(self, parked: Parked) -> None:
        super().__init__("the client must send the request again with its answers")
        self.parked = parked


class TaskStartedError(Exception):
    """A call has become a task. Passes through all handlers; `RequestStates` returns the result."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__("the call has become a task")
        self.result = result


UNFINISHED = (InputRequiredError, TaskStartedError)
"""Exceptions for calls that have not ended."""


class RequestStates:
    """Middleware that seals and opens request states of the stateless era.

    Args:
        token: key and principal of the seal are derived from it.
        boot: id of the run of Neovim.
        seconds: how long a state is valid.
    """

    def __init__(self, token: str, boot: str, seconds: float) -> None:
        self._boot = boot
        # Random, since clients know the token and must not be able to make states. No state or call outlives
        # this process.
        key = hmac.digest(_KEY_LABEL, secrets.token_bytes(32) + token.encode(), "sha256")
        principal = hashlib.sha256(token.encode()).hexdigest()
        security = RequestStateSecurity(keys=[key], ttl=seconds, bind_principal=lambda _: principal)
        self._seal = RequestStateBoundary(security, default_audience="mcp-tools.nvim")

    def middleware(self, ctx: RequestContext, call_next: CallNext) -> Awaitable[HandlerResult]:
        """Opens and seals the request state of a request that may have one."""
        if ctx.method not in INPUT_REQUIRED_METHODS or not is_stateless(ctx):
            return call_next(ctx)  # not a coroutine itself, to save time on every call
        return self._seal(ctx, partial(self._resume_or_run, call_next))

    async def _resume_or_run(self, call_next: CallNext, ctx: RequestContext) -> HandlerResult:
        state = _state(ctx.params or {})
        if state is not None and state["boot"] != self._boot:
            raise _expired_error()
        try:
            return await call_next(ctx)
        except TaskStartedError as started:
            return started.result
        except InputRequiredError as required:
            parked = required.parked
            state = {"boot": self._boot, "task": parked.task_id, "seq": parked.inputs.seq}
            return {
                "resultType": "input_required",
                "inputRequests": parked.inputs.requests,
                "requestState": json.dumps(state),
            }


async def run_or_resume(
    calls: Calls, requester: Requester, request: CallRequest, observer: Observer, tasks: Tasks | None = None
) -> Outcome:
    """Runs or continues a call of the stateless era.

    Raises:
        InputRequiredError: the call asks its client a question.
        TaskStartedError: the call has become a task.
        MCPError: there is no call with this state, or the client lacks a capability.
    """
    answers = _answers(requester.params.get("inputResponses"))
    state = _state(requester.params)
    result: Outcome | Parked | dict[str, Any] | None
    running: Coroutine[Any, Any, Outcome | Parked | None]
    if state is not None:
        running = calls.resume(state["task"], state["seq"], answers, observer)
    elif answers:
        running = _run_with_answers(calls, request, answers, observer)
    else:
        running = calls.run_attempt(request, observer)
    if tasks is not None and declares_tasks(requester):
        result = await tasks.run(requester, running, None if state is None else state["task"])
    else:
        result = await running
    if isinstance(result, dict):
        raise TaskStartedError(result)
    if result is None:
        raise _expired_error()
    if isinstance(result, Parked):
        raise InputRequiredError(result)
    error = result.error
    if error is not None and error.code == Code.CAPABILITY_MISSING and error.required:
        required = {"requiredCapabilities": error.required}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, error.message, required)
    return result


async def _run_with_answers(
    calls: Calls, request: CallRequest, answers: dict[str, Any], observer: Observer
) -> Outcome | Parked | None:
    """Runs a call whose answers the client has sent in advance."""
    result: Outcome | Parked | None = await calls.run_attempt(request, observer)
    if isinstance(result, Parked) and result.inputs.requests.keys() <= answers.keys():
        result = await calls.resume(result.task_id, result.inputs.seq, answers, observer)
    return result


async def ask(dispatch: Dispatch, seconds: float, requests: dict[str, Any]) -> dict[str, Any]:
    """Sends all questions of a call to the client of a session and returns the answers.

    Args:
        dispatch: belongs to the client's request; the questions are sent over its stream.
        seconds: timeout of methods not in SLOW_METHODS.
        requests: `{key: {method, params?}}`.
    """
    answers = await asyncio.gather(*(_ask(dispatch, seconds, request) for request in requests.values()))
    return dict(zip(requests, answers, strict=True))


async def _ask(dispatch: Dispatch, seconds: float, request: dict[str, Any]) -> dict[str, Any]:
    method = request["method"]
    options: CallOptions = {} if method in SLOW_METHODS else {"timeout": seconds}
    try:
        return {"result": await dispatch.send_raw_request(method, request.get("params") or None, options)}
    except MCPError as mcp_error:
        return {"error": mcp_error.error.model_dump(mode="json", exclude_none=True)}
    except TimeoutError:
        text = f"no answer within {seconds:g} s"
        return {"error": {"code": jsonrpc.REQUEST_TIMEOUT, "message": text}}


def _state(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the contents of a request state, which the middleware has verified."""
    text = params.get("requestState")
    state: dict[str, Any] | None = None if text is None else json.loads(text)
    return state


def _answers(given: Any) -> dict[str, Any]:
    return {key: {"result": value} for key, value in given.items()} if isinstance(given, dict) else {}


def _expired_error() -> MCPError:
    # The same message as the SDK's for an invalid seal.
    text, data = "Invalid or expired requestState", {"reason": "invalid_request_state"}
    return MCPError(jsonrpc.INVALID_PARAMS, text, data)


DEFAULT_LOG_LEVEL = "info"
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
STATE_META = "mcp-tools.nvim/state"
"""Key in `_meta` of a tool's intermediate state that is not a string; its text is the progress message."""

_LOG_ALIASES = {"trace": "debug", "warn": "warning", "fatal": "critical"}


async def set_log_level(context: RequestContext, params: types.SetLevelRequestParams) -> dict[str, Any]:
    """Handles `logging/setLevel`."""
    sdk_connection(context).state["log_level"] = params.level
    return {}


@dataclass(slots=True)
class ClientObserver:
    """Sends progress and log messages of one call; `logger` is the source of log messages."""

    _requester: Requester
    _logger: str

    def progress(self, progress: Progress) -> None:
        """Sends progress, if the client sent a progress token."""
        meta = None if progress.state is None else {STATE_META: progress.state}
        self._requester.dispatch.send_progress(progress.done, progress.total, progress.message, meta)

    def log(self, level: str, data: Any) -> None:
        """Sends a log message, if the client's log level includes it."""
        name = _LOG_ALIASES.get(level, level)
        if name not in LOG_LEVELS:
            name = DEFAULT_LOG_LEVEL
        if self._wanted(name):
            message = {"level": name, "logger": self._logger, "data": data}
            self._requester.dispatch.send("notifications/message", message)

    def _wanted(self, level: str) -> bool:
        levels = self._requester.log_levels()
        if levels is not None:
            return level in levels
        least = self._requester.connection.state.get("log_level", DEFAULT_LOG_LEVEL)
        return LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)


def run_call(
    calls: Calls,
    requester: Requester,
    name: str,
    arguments: dict[str, Any],
    kind: CallKind = "tool",
    tasks: Tasks | None = None,
) -> Awaitable[Outcome]:
    """Runs a handler in Neovim. Not a coroutine itself, to save time on every call."""
    request = CallRequest(name, arguments, sender_of(requester), kind)
    observer = ClientObserver(requester, name)
    if kind == "completion":
        return calls.run(request, observer)  # asks nothing
    if requester.is_stateless:
        return run_or_resume(calls, requester, request, observer, tasks)
    return calls.run(request, observer, partial(ask, requester.dispatch, calls.answer_within))
