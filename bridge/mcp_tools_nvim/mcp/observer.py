"""Progress and log of a call, as notifications to the client that made it."""

from __future__ import annotations

from typing import Any

import mcp_types as types

from ..values import Progress
from .request import Caller, Context, connection_of

DEFAULT_LOG_LEVEL = "info"
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
STATE_META = "mcp-tools.nvim/state"
"""Where an intermediate state stands that is no string; its text is the progress message."""

_LOG_ALIASES = {"trace": "debug", "warn": "warning", "fatal": "critical"}


async def set_level(context: Context, params: types.SetLevelRequestParams) -> dict[str, Any]:
    """`logging/setLevel`."""
    connection_of(context).state["log_level"] = params.level
    return {}


class Observer:
    """Of one call; `logger` is what its log messages are from."""

    __slots__ = ("_caller", "_logger")

    def __init__(self, caller: Caller, logger: str) -> None:
        self._caller = caller
        self._logger = logger

    def progress(self, progress: Progress) -> None:
        """Sends progress, if the client gave a token for it."""
        meta = None if progress.state is None else {STATE_META: progress.state}
        self._caller.dispatch.send_progress(progress.done, progress.total, progress.message, meta)

    def log(self, level: str, data: Any) -> None:
        """Sends a log message, if the client wants its level."""
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
