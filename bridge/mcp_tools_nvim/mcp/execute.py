"""Runs calls in Neovim for the client of a request, and sends it progress and log messages."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any

import mcp_types as types

from ..calls.runner import Calls
from ..values import CallKind, CallRequest, Outcome, Progress
from . import inputs
from .request import Caller, RequestContext, sdk_connection, who

DEFAULT_LOG_LEVEL = "info"
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
STATE_META = "mcp-tools.nvim/state"
"""Key in `_meta` of an intermediate state that is not a string; its text is the progress message."""

_LOG_ALIASES = {"trace": "debug", "warn": "warning", "fatal": "critical"}


async def set_log_level(context: RequestContext, params: types.SetLevelRequestParams) -> dict[str, Any]:
    """Handles `logging/setLevel`."""
    sdk_connection(context).state["log_level"] = params.level
    return {}


class ClientObserver:
    """Sends progress and log messages of one call; `logger` is the source of log messages."""

    __slots__ = ("_caller", "_logger")

    def __init__(self, caller: Caller, logger: str) -> None:
        self._caller = caller
        self._logger = logger

    def progress(self, progress: Progress) -> None:
        """Sends progress, if the client sent a progress token."""
        meta = None if progress.state is None else {STATE_META: progress.state}
        self._caller.dispatch.send_progress(progress.done, progress.total, progress.message, meta)

    def log(self, level: str, data: Any) -> None:
        """Sends a log message, if the client's log level includes it."""
        name = _LOG_ALIASES.get(level, level)
        if name not in LOG_LEVELS:
            name = DEFAULT_LOG_LEVEL
        if self._wanted(name):
            message = {"level": name, "logger": self._logger, "data": data}
            self._caller.dispatch.send("notifications/message", message)

    def _wanted(self, level: str) -> bool:
        levels = self._caller.log_levels()
        if levels is not None:
            return level in levels
        least = self._caller.connection.state.get("log_level", DEFAULT_LOG_LEVEL)
        return LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)


def run_call(
    calls: Calls, caller: Caller, name: str, arguments: dict[str, Any], kind: CallKind = "tool"
) -> Awaitable[Outcome]:
    """Runs a handler in Neovim. Not a coroutine itself, to save time on every call."""
    connection = caller.connection
    client, capabilities = who(connection)
    request = CallRequest(
        name, arguments, client, connection.session_id, capabilities, kind, scope=caller.dispatch.within
    )
    observer = ClientObserver(caller, name)
    if kind == "completion":
        return calls.run(request, observer)  # asks nothing
    if caller.is_stateless:
        return inputs.run_or_resume(calls, caller, request, observer)
    return calls.run(request, observer, partial(inputs.ask, caller.dispatch, calls.answer_within))
