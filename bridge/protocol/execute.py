"""The client of a request: who it says it is, and what it is sent while a handler runs in the editor.

Receives: the SDK's context of a request; progress and log of a call. Sends: notifications to that client.
Does not know about: what is called, HTTP.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import mcp_types as types

from ..calls.runner import Calls
from ..model import CallKind, CallRequest, ClientInfo, Outcome, Progress
from . import inputs
from .request import Context, connection_of, dispatch_of, is_stateless, requested_log_levels

DEFAULT_LOG_LEVEL = "info"
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
STATE_META = "mcp-tools.nvim/state"
"""Where an intermediate state stands that is no string; its text is the progress message."""

_LOG_ALIASES = {"trace": "debug", "warn": "warning", "fatal": "critical"}


async def run(
    calls: Calls, context: Context, name: str, arguments: dict[str, Any], kind: CallKind = "tool"
) -> Outcome:
    """Runs a handler in the editor for the client of this request."""
    client, capabilities = who(context)
    session = connection_of(context).session_id
    observer = Observer(context, name)
    try:
        request = CallRequest(name, arguments, client, session, capabilities, kind)
        if kind == "completion":
            return await calls.run(request, observer)  # has nothing to ask for
        if is_stateless(context):
            return await inputs.run_leg(calls, context, request, observer)
        return await calls.run(request, observer, partial(inputs.ask, context, calls.answer_within))
    finally:
        await observer.finish()


def who(context: Context) -> tuple[ClientInfo, dict[str, Any]]:
    """The client and its capabilities, as it declared them."""
    connection = connection_of(context)
    known = connection.state.get("client")
    if known is None:
        params, declared = connection.client_params, connection.client_capabilities
        info = params.client_info if params is not None else None
        client = ClientInfo(info.name, info.version) if info is not None else ClientInfo("", "")
        capabilities = declared.model_dump(by_alias=True, mode="json", exclude_none=True) if declared else {}
        known = connection.state["client"] = (client, capabilities)
    identity: tuple[ClientInfo, dict[str, Any]] = known
    return identity


async def set_level(context: Context, params: types.SetLevelRequestParams) -> dict[str, Any]:
    """`logging/setLevel`."""
    connection_of(context).state["log_level"] = params.level
    return {}


class Observer:
    """Sends a call's progress and log to the client that made it."""

    def __init__(self, context: Context, logger: str) -> None:
        self._context = context
        self._logger = logger
        self._dispatch = dispatch_of(context)
        self._sending: list[asyncio.Task[None]] = []

    def progress(self, progress: Progress) -> None:
        """Sends progress, if the client gave a token for it."""
        if self._dispatch is not None:
            meta = None if progress.state is None else {STATE_META: progress.state}
            self._dispatch.send_progress(progress.done, progress.total, progress.message, meta)
        else:
            session = self._context.session
            self._spawn(session.report_progress(progress.done, progress.total, progress.message))

    def log(self, level: str, data: Any) -> None:
        """Sends a log message, if the client wants its level."""
        name = _LOG_ALIASES.get(level, level)
        if not self._wanted(name if name in LOG_LEVELS else DEFAULT_LOG_LEVEL):
            return
        message = {
            "level": name if name in LOG_LEVELS else DEFAULT_LOG_LEVEL,
            "logger": self._logger,
            "data": data,
        }
        if self._dispatch is not None:
            self._dispatch.send("notifications/message", message)
        else:
            params = types.LoggingMessageNotificationParams.model_validate(message)
            notification = types.LoggingMessageNotification(params=params)
            request_id = self._context.request_id
            self._spawn(self._context.session.send_notification(notification, related_request_id=request_id))

    async def finish(self) -> None:
        """Waits until everything is sent; only another front than ours has anything to wait for."""
        if self._sending:
            await asyncio.gather(*self._sending)

    def _wanted(self, level: str) -> bool:
        levels = requested_log_levels(self._context)
        if levels is not None:
            return level in levels
        least = connection_of(self._context).state.get("log_level", DEFAULT_LOG_LEVEL)
        return LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)

    def _spawn(self, sending: Any) -> None:
        self._sending.append(asyncio.get_running_loop().create_task(sending))
