# ruff: noqa: D102 - the verbs are documented in Editor
"""The verbs of lua/mcp-tools/rpc/, typed: the only module that knows how they look on the wire.

Receives the verbs of `Editor` from calls and server; sends `nvim_exec_lua`, gives back typed values.
Does not know about: MCP, HTTP, what a call is waiting for, events (events.py).
Longer than others by its list of verbs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from ..errors import EditorError, StartError
from ..values import (
    LARGE,
    PROTOCOL,
    AgentEndpoint,
    CallRequest,
    Hello,
    HelloInfo,
    Kind,
    Listing,
    Mode,
    Reply,
    ToolError,
    View,
)
from . import EditorListener, decode, encode
from .clock import EditorClock
from .events import Events
from .rpc import Channel, connect

T = TypeVar("T")

ANSWER_WITHIN = 10.0
"""Seconds for a verb that only reads tables; longer means that the main thread is busy."""

TICK = 0.002
"""Seconds that it may be later than the loop's clock says: uvloop's is a coarse one, cut to milliseconds."""

_WIRE = "return require('mcp-tools.rpc').{}(...)"
_HELLO = _WIRE.format("hello")
_LIST = _WIRE.format("list")
_EXECUTE = _WIRE.format("execute")
_GET_RESULT = _WIRE.format("get_result")
_ANSWER = _WIRE.format("answer")
_EXPLAIN = _WIRE.format("explain")
_CANCEL = _WIRE.format("cancel_task")
_ACKNOWLEDGE = _WIRE.format("acknowledge")
_REPORT = _WIRE.format("report")
_SUBSCRIBE = _WIRE.format("subscribe")
_UNSUBSCRIBE = _WIRE.format("unsubscribe")
_AGENT_EVENT = _WIRE.format("agent_event")
_LOST = _WIRE.format("lost")
_PROVIDE = _WIRE.format("provide")
_WITHDRAW = _WIRE.format("withdraw")
_CLOCK = "return vim.uv.hrtime()"


class NvimEditor:
    """The real `Editor`; make one with `open`."""

    def __init__(self) -> None:
        self._clock = EditorClock()
        self._events = Events(self._clock)
        self._channel: Channel
        self._channel_id = 0
        self._knows_scopes = False
        self.closed: asyncio.Future[None]

    @classmethod
    async def open(cls, address: str) -> NvimEditor:
        """Connects to `address`.

        Raises:
            StartError: nobody answers there.
        """
        editor = cls()
        try:
            editor._channel = await connect(address, editor._events.receive)
        except (OSError, TimeoutError) as error:
            why = str(error) or "no answer"
            raise StartError(
                f"no Neovim at {address} ({why}); NVIM_LISTEN_ADDRESS must be its v:servername"
            ) from error
        editor.closed = editor._channel.closed
        return editor

    @property
    def last_heard(self) -> float:
        return self._channel.last_heard

    @property
    def congested(self) -> bool:
        return self._channel.congested

    async def drain(self, until: float) -> bool:
        return await self._channel.drain(until)

    async def settle(self, within: float) -> None:
        """Waits, at most `within` seconds, until the editor has worked off what it was told.

        What still waits in its queue when the channel closes would be dropped.
        """
        with contextlib.suppress(EditorError):
            await self._read_clock(self._channel.time() + within)

    async def leave(self, within: float) -> None:
        """Takes leave, for at most `within` seconds: the editor ends what is left of this side's calls."""
        with contextlib.suppress(EditorError):
            await self._lua(_LOST, (self._channel_id,), self._channel.time() + within, lambda _: None)

    def close(self) -> None:
        """Sends what is written, then closes the channel."""
        self._channel.close()

    # Verbs

    async def hello(self, info: HelloInfo, timeout: float = 5.0) -> Hello:  # noqa: ASYNC109 - see Editor
        give_up = self._channel.time() + timeout
        if not self._channel_id:
            about: Any = await self._channel.request("nvim_get_chan_info", (0,), give_up)
            self._channel_id = int(about["id"])
        values = {"protocol": PROTOCOL, **asdict(info)}
        sent = self._channel.time()

        def answer(raw: Any) -> Hello:
            self._learn(sent, int(raw["clock"]))
            self._knows_scopes = raw.get("scopes") is True
            return decode.hello(raw)

        return await self._lua(_HELLO, (self._channel_id, values), give_up, answer)

    def list(self, kind: Kind, revision: int | None, view: View | None = None) -> asyncio.Future[Listing]:
        args: list[Any] = [kind, revision]
        if view is not None:
            if view.scope is not None and not self._knows_scopes:
                return self._no_scopes()
            scope = encode.scope(view.scope)
            args.append({"client": view.client} | ({} if scope is None else {"scope": scope}))
        return self._lua(_LIST, args, self._channel.time() + ANSWER_WITHIN, decode.listing)

    def execute(
        self,
        call_id: str,
        request: CallRequest,
        start_by: float,
        timeout_ms: int,
        ack: Sequence[str] = (),
        give_up: float | None = None,
    ) -> asyncio.Future[Reply]:
        if request.scope is not None and not self._knows_scopes:
            return self._no_scopes()
        options: dict[str, Any] = {
            "channel": self._channel_id,
            "call_id": call_id,
            "start_by": self._clock.to_editor(start_by),
        }
        if request.timeout:
            options["limit"] = request.timeout
        if request.kind != "tool":
            options["kind"] = request.kind
        if ack:
            options["ack"] = ack
        timeout = timeout_ms if request.timeout is None else request.timeout
        return self._reply(
            _EXECUTE,
            (request.name, encode.packable(request.arguments), options | encode.caller(request, timeout)),
            start_by + 0.1 if give_up is None else give_up,
        )

    def get_result(self, task_id: str, since: int, *, whole: bool = False) -> asyncio.Future[Reply]:
        args = (task_id, since) if whole else (task_id, since, LARGE)
        return self._reply(_GET_RESULT, args, self._channel.time() + ANSWER_WITHIN)

    def answer(self, task_id: str, seq: int, answers: dict[str, Any]) -> asyncio.Future[Reply]:
        args = (task_id, seq, json.dumps(answers), LARGE)
        return self._reply(_ANSWER, args, self._channel.time() + ANSWER_WITHIN)

    def explain(self, task_id: str) -> asyncio.Future[tuple[str, str]]:
        return self._lua(_EXPLAIN, (task_id,), self._channel.time() + 2.0, decode.explanation)

    def mode(self, timeout: float = 2.0) -> asyncio.Future[Mode | None]:
        """Asks for the mode, and for the clock as well when the last sample is old: a call follows."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Mode | None] = loop.create_future()
        now = self._channel.time()
        mode = self._channel.request("nvim_get_mode", (), now + timeout, decode.mode)
        clock = self._read_clock(now + timeout) if self._clock.stale(now) else None

        def settle(_: asyncio.Future[Any]) -> None:
            # Both are looked at each time, so that no exception stays unseen.
            silent = mode.done() and (mode.cancelled() or mode.exception() is not None)
            read = clock is None or (clock.done() and (clock.cancelled() or clock.exception() or True))
            if answer.done() or not mode.done():
                return
            if silent:
                answer.set_result(None)
            elif read or mode.result().blocking:
                answer.set_result(mode.result())

        mode.add_done_callback(settle)
        if clock is not None:
            clock.add_done_callback(settle)
        return answer

    def cancel(self, task_id: str, reason: str) -> None:
        self._tell(_CANCEL, (task_id, reason))

    def acknowledge(self, task_ids: Sequence[str]) -> None:
        self._tell(_ACKNOWLEDGE, (task_ids,))

    def subscribe(self, uri: str) -> asyncio.Future[ToolError | None]:
        give_up = self._channel.time() + ANSWER_WITHIN
        return self._lua(_SUBSCRIBE, (self._channel_id, uri), give_up, decode.subscription_error)

    def unsubscribe(self, uri: str) -> None:
        self._tell(_UNSUBSCRIBE, (self._channel_id, uri))

    def report(self, kind: str, data: dict[str, Any]) -> None:
        self._tell(_REPORT, (kind, data, self._channel_id))

    def set_listener(self, listener: EditorListener) -> None:
        self._events.listener = listener

    def on_changed(self, callback: Callable[[str, int], None]) -> None:
        self._events.changed.append(callback)

    def on_updated(self, callback: Callable[[str], None]) -> None:
        self._events.updated.append(callback)

    def on_endpoints(self, callback: Callable[[tuple[AgentEndpoint, ...]], None]) -> None:
        self._events.endpoints.append(callback)

    def on_integrations(self, callback: Callable[[Any], None]) -> None:
        self._events.integrations.append(callback)

    def on_push(self, callback: Callable[[str, str | None, str, str, bool], None]) -> None:
        self._events.push.append(callback)

    def agent_event(self, event: str, data: dict[str, Any]) -> None:
        self._tell(_AGENT_EVENT, (event, data, self._channel_id))

    # For mounts (mounts.loader.MountEditor)

    def on_remote(self, callback: Callable[[str, Sequence[Any]], None]) -> None:
        self._events.remote.append(callback)

    def provide(
        self, provider: str, kind: str, definitions: str, *, first: bool, last: bool
    ) -> asyncio.Future[list[str]]:  # type: ignore[valid-type]
        give_up = self._channel.time() + ANSWER_WITHIN
        args = (self._channel_id, provider, definitions, kind, {"first": first, "last": last})
        return self._lua(_PROVIDE, args, give_up, decode.refused_definitions)

    def withdraw(self, provider: str) -> None:
        self._tell(_WITHDRAW, (self._channel_id, provider))

    def remote(self, verb: str, *args: Any) -> None:
        self._tell(_WIRE.format(verb), args)

    # Inside

    def _no_scopes(self) -> asyncio.Future[Any]:
        """An older plugin in the editor would ignore a scope, and show and run everything."""
        refused: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        refused.set_exception(EditorError("the plugin in Neovim knows no scopes yet; restart Neovim"))
        return refused

    def _lua(
        self, code: str, args: Sequence[Any], give_up: float, answer: Callable[[Any], T]
    ) -> asyncio.Future[T]:
        return self._channel.request("nvim_exec_lua", (code, args), give_up, answer)

    def _tell(self, code: str, args: Sequence[Any]) -> None:
        self._channel.notify("nvim_exec_lua", (code, args))

    def _reply(self, code: str, args: Sequence[Any], give_up: float) -> asyncio.Future[Reply]:
        sent = self._channel.time()

        def answer(raw: Any) -> Reply:
            self._clock.sample(sent, self._channel.time() + TICK, int(raw["clock"]))
            return decode.reply(raw, self._clock)

        return self._channel.request("nvim_exec_lua", (code, args), give_up, answer)

    def _read_clock(self, give_up: float) -> asyncio.Future[None]:
        sent = self._channel.time()
        return self._lua(_CLOCK, (), give_up, lambda raw: self._learn(sent, int(raw)))

    def _learn(self, sent: float, clock: int) -> None:
        self._clock.sample(sent, self._channel.time() + TICK, clock)
