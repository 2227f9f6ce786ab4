"""Events of Neovim, and their callbacks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from ..values import AgentEndpoint
from . import EditorListener, decode
from .clock import EditorClock

logger = logging.getLogger(__name__)

_REMOTE = ("mounts", "remote_call", "remote_cancel", "remote_answer", "remote_watch", "remote_unwatch")


class Events:
    """The callbacks of all events; see `Editor`.

    Args:
        clock: Neovim's clock, to convert deadlines.
    """

    def __init__(self, clock: EditorClock) -> None:
        self._clock = clock
        self.listener: EditorListener | None = None
        self.changed: list[Callable[[str, int], None]] = []
        self.updated: list[Callable[[str], None]] = []
        self.endpoints: list[Callable[[tuple[AgentEndpoint, ...]], None]] = []
        self.integrations: list[Callable[[Any], None]] = []
        self.push: list[Callable[[str, str | None, str, str, bool], None]] = []
        self.remote: list[Callable[[str, Sequence[Any]], None]] = []

    def receive(self, name: str, args: Sequence[Any]) -> None:
        """Passes an event to its callbacks."""
        listener = self.listener
        count = len(args) if args and type(args[0]) is str else 0
        if name == "started" and count in (1, 2) and listener is not None:
            limit = args[1] if count == 2 else None
            listener.started(args[0], None if limit is None else self._clock.to_local(int(limit)))
        elif name in _REMOTE and count:
            for remote in self.remote:
                remote(name, args)
        elif name == "changed" and count == 2:
            for callback in self.changed:
                callback(str(args[0]), int(args[1]))
        elif name == "updated" and count == 1:
            for on_update in self.updated:
                on_update(args[0])
        elif name == "endpoints" and count == 1:
            for on_endpoints in self.endpoints:
                on_endpoints(decode.endpoints(decode.json_value(args[0])))
        elif name == "integrations" and count == 1:
            for on_integrations in self.integrations:
                on_integrations(decode.json_value(args[0]))
        elif name == "push" and count == 5:
            agent, session, method, params, latest = args
            for push in self.push:
                push(agent, session, decode.clean(method), decode.clean(params), latest is True)
        elif listener is None:
            logger.warning("event %s before anyone listens", name)
        elif name == "wake" and count in (1, 2):
            raw = args[1] if count == 2 else None
            listener.wake(args[0], None if raw is None else decode.reply(raw, self._clock))
        elif name == "log" and count == 3:
            listener.log(args[0], args[1], decode.json_value(args[2]))
        else:
            logger.warning("event %s is unknown or has unexpected arguments", name)
