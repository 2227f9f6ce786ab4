"""The connection to Neovim: the functions of lua/mcp-tools/rpc/ (verbs) as typed methods, and its events.

Only this module uses the verbs. `tests/support/memory.py` has a fake for tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from ..errors import EditorError, StartError
from ..values import (
    LARGE,
    PROTOCOL,
    CallRequest,
    Hello,
    HelloInfo,
    HookReply,
    Kind,
    Listing,
    Mode,
    Reply,
    ToolError,
    View,
)
from . import codec
from .clock import EditorClock
from .rpc import Channel, connect

T = TypeVar("T")

ANSWER_WITHIN = 10.0
"""Timeout of verbs in seconds: they take that long only if Neovim's main thread is busy."""

TICK = 0.002
"""Maximum seconds by which the loop's clock is behind: uvloop rounds down to milliseconds."""

_VERB = "return require('mcp-tools.rpc').%s(...)"
_CLOCK = "return vim.uv.hrtime()"
_MOUNT_EVENTS = frozenset(
    {"mounts", "remote_call", "remote_cancel", "remote_answer", "remote_watch", "remote_unwatch"}
)

logger = logging.getLogger(__name__)


class NvimEditor:
    """A connection to Neovim, made by `open`.

    Requests return a future, so that a caller needs no additional task. The future fails with `EditorError`;
    cancelling it only stops waiting for the answer.

    Attributes:
        closed: done when the connection is closed; never fails.
    """

    def __init__(self) -> None:
        self._clock = EditorClock()
        self._callbacks: dict[str, list[Callable[..., None]]] = {}
        self._channel: Channel
        self._channel_id = 0
        self.closed: asyncio.Future[None]

    @classmethod
    async def open(cls, address: str) -> NvimEditor:
        """Connects to `address`.

        Raises:
            StartError: no Neovim listens there.
        """
        editor = cls()
        try:
            editor._channel = await connect(address, editor._receive)
        except (OSError, TimeoutError) as error:
            why = str(error) or "no answer"
            raise StartError(
                f"no Neovim at {address} ({why}); NVIM_LISTEN_ADDRESS must be its v:servername"
            ) from error
        editor.closed = editor._channel.closed
        return editor

    @property
    def last_heard(self) -> float:
        """When Neovim last sent anything, by the loop's clock."""
        return self._channel.last_heard

    @property
    def congested(self) -> bool:
        """Whether Neovim does not read what was written; then call `drain` before writing more."""
        return self._channel.congested

    async def drain(self, until: float) -> bool:
        """Waits until Neovim reads again or the time is `until`; returns whether Neovim reads."""
        return await self._channel.drain(until)

    async def settle(self, within: float) -> None:
        """Waits at most `within` seconds until Neovim has handled everything that was sent.

        Neovim drops messages that it has not handled when the channel closes.
        """
        with contextlib.suppress(EditorError):
            await self._read_clock(self._channel.time() + within)

    async def leave(self, within: float) -> None:
        """Requests that Neovim end the calls of this connection; waits at most `within` seconds."""
        with contextlib.suppress(EditorError):
            await self._request("lost", (self._channel_id,), lambda _: None, self._channel.time() + within)

    def close(self) -> None:
        """Sends all queued messages, then closes the channel."""
        self._channel.close()

    async def hello(self, info: HelloInfo, timeout: float = 5.0) -> Hello:  # noqa: ASYNC109 - a deadline
        """Introduces the bridge to Neovim; `timeout` in seconds: Neovim may be blocked by a prompt."""
        give_up = self._channel.time() + timeout
        if not self._channel_id:
            about: Any = await self._channel.request("nvim_get_chan_info", (0,), give_up)
            self._channel_id = int(about["id"])
        values = {"protocol": PROTOCOL, **asdict(info)}
        sent = self._channel.time()

        def answer(raw: Any) -> Hello:
            self._learn(sent, int(raw["clock"]))
            return codec.hello(raw)

        return await self._request("hello", (self._channel_id, values), answer, give_up)

    def list(self, kind: Kind, revision: int | None, view: View | None = None) -> asyncio.Future[Listing]:
        """Returns the definitions of one kind (in `view`); `json` is None if `revision` is current."""
        args: list[Any] = [kind, revision]
        if view is not None:
            scope = None if view.scope is None else {"scope": codec.encode_scope(view.scope)}
            args.append({"client": view.client} | (scope or {}))
        return self._request("list", args, codec.listing)

    def instructions(self, names: Sequence[str]) -> asyncio.Future[str]:
        """Returns the instructions for a client that sees only the tools with these names."""
        return self._request("instructions", (names,), str)

    def execute(
        self, call_id: str, request: CallRequest, start_by: float, timeout_ms: int, give_up: float
    ) -> asyncio.Future[Reply]:
        """Starts a call.

        Args:
            call_id: a new unique id; the other verbs take it as `task_id`.
            request: what to call.
            start_by: time of the loop's clock; Neovim refuses a call that it reads later.
            timeout_ms: timeout of tools that set none; 0 = no limit.
            give_up: time at which the future fails with `NoAnswerError`.
        """
        sender = request.sender
        if sender.encoded is None:
            sender.encoded = codec.encode_sender(sender)
        options: dict[str, Any] = {
            **sender.encoded,
            "channel": self._channel_id,
            "call_id": call_id,
            "start_by": self._clock.to_editor(start_by),
            "timeout": timeout_ms if request.timeout is None else request.timeout,
        }
        if request.timeout:
            options["limit"] = request.timeout
        if request.kind != "tool":
            options["kind"] = request.kind
        arguments = codec.packable(request.arguments)
        return self._reply("execute", (request.name, arguments, options), give_up)

    def get_result(self, task_id: str, since: int, *, whole: bool = False) -> asyncio.Future[Reply]:
        """Returns the state of a call.

        Args:
            task_id: id of the call.
            since: `seq` of the last received progress.
            whole: include a result above `LARGE`, of which other verbs return only the size.
        """
        args = (task_id, since) if whole else (task_id, since, LARGE)
        return self._reply("get_result", args)

    def answer(self, task_id: str, seq: int, answers: dict[str, Any]) -> asyncio.Future[Reply]:
        """Passes the client's answers to a tool; Neovim ignores them if the question is not open.

        Args:
            task_id: id of the call.
            seq: number of the question, from `Inputs`.
            answers: `{key: {"result": {…}} | {"error": {"code": …, "message": …}}}`.
        """
        args = (task_id, seq, json.dumps(answers), LARGE)
        return self._reply("answer", args)

    def explain(self, task_id: str) -> asyncio.Future[tuple[str, str]]:
        """Returns where a result has bytes that are not UTF-8: a path and a message."""
        return self._request("explain", (task_id,), codec.explanation, self._channel.time() + 2.0)

    def mode(self, timeout: float = 2.0) -> asyncio.Future[Mode | None]:
        """Returns the mode, which Neovim reports even at a prompt; None if it does not answer in `timeout` s.

        Also requests the clock if its last sample is old, since a call follows.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Mode | None] = loop.create_future()
        now = self._channel.time()
        mode = self._channel.request("nvim_get_mode", (), now + timeout, codec.mode)
        clock = self._read_clock(now + timeout) if self._clock.stale(now) else None

        def settle(_: asyncio.Future[Any]) -> None:
            # Reads both exceptions each time, so that asyncio does not log them.
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
        """Ends a call."""
        self._notify("cancel_task", (task_id, reason))

    def acknowledge(self, task_ids: Sequence[str]) -> None:
        """Allows Neovim to drop these results."""
        self._notify("acknowledge", (task_ids,))

    def subscribe(self, uri: str) -> asyncio.Future[ToolError | None]:
        """Subscribes to changes of a resource; returns the refusal, if any. Each needs one `unsubscribe`."""
        return self._request("subscribe", (self._channel_id, uri), codec.subscription_error)

    def unsubscribe(self, uri: str) -> None:
        """Reverts one `subscribe`."""
        self._notify("unsubscribe", (self._channel_id, uri))

    def report(self, kind: str, data: dict[str, Any]) -> None:
        """Reports a state of the bridge (`listening`, `sessions`, `blocked`, …)."""
        self._notify("report", (kind, data, self._channel_id))

    def agent_event(self, event: str, data: dict[str, Any]) -> None:
        """Reports an event of a terminal agent's session (`opened`, `notified`, `left`)."""
        self._notify("agent_event", (event, data, self._channel_id))

    def hook(self, event_id: str, event: dict[str, Any], within: float) -> asyncio.Future[HookReply]:
        """Passes on an event of an agent's hook; Neovim ignores it if it reads it after `within` seconds."""
        start_by = self._channel.time() + within
        args = (event_id, event, self._clock.to_editor(start_by), self._channel_id)
        return self._request("hook", args, codec.hook_reply, start_by)

    def provide(
        self, provider: str, kind: str, definitions: str, *, first: bool, last: bool
    ) -> asyncio.Future[list[str]]:  # type: ignore[valid-type]
        """Registers a part of a mount's definitions (JSON text); returns why some were refused.

        The last part removes the mount's definitions that are in none of the parts.
        """
        args = (self._channel_id, provider, definitions, kind, {"first": first, "last": last})
        return self._request("provide", args, codec.refused_definitions)

    def withdraw(self, provider: str) -> None:
        """Removes all definitions of a mount."""
        self._notify("withdraw", (self._channel_id, provider))

    def remote(self, verb: str, *args: Any) -> None:
        """Reports an event of a running call of a mount (`remote_result`, `remote_progress`, …)."""
        self._notify(verb, args)

    def on(self, event: str, callback: Callable[..., None]) -> None:
        """Adds a callback of an event; it must return at once.

        Args:
            event: one of these names. Times are those of the loop's clock.
                started(task_id, deadline): a tool is about to run; Neovim ends it at the deadline
                wake(task_id, reply): a call has changed; None = request its state
                log(task_id, level, data): a tool has logged any JSON value
                changed(kind, revision): a list of definitions has changed
                updated(uri): a subscribed resource has changed
                endpoints(endpoints): the endpoints of terminal agents
                acp_tokens(tokens): all tokens of agents that plugins start over ACP
                hook_token(token): the token of agents' hooks; empty = hooks are off
                hook(event_id, text): the answer to an agent's hook whose `HookReply` was pending
                integrations({url, servers}): the agents' HTTP servers that the bridge registers with
                push(agent, session, method, params, latest): a notification for a session of an agent, or for
                    all; `params` is JSON text, `latest` replaces unsent ones of the method
                mount(name, args): an event of mounts or their calls
            callback: called with these arguments.
        """
        self._callbacks.setdefault(event, []).append(callback)

    def _receive(self, name: str, args: Sequence[Any]) -> None:
        """Decodes an event and passes it to its callbacks."""
        count = len(args) if args and type(args[0]) is str else 0
        values: tuple[Any, ...]
        if name == "started" and count in (1, 2):
            values = args[0], codec.deadline(args[1] if count == 2 else None, self._clock)
        elif name == "wake" and count in (1, 2):
            raw = args[1] if count == 2 else None
            values = args[0], None if raw is None else codec.reply(raw, self._clock)
        elif name in _MOUNT_EVENTS and count:
            name, values = "mount", (name, args)
        elif name == "changed" and count == 2:
            values = args[0], int(args[1])
        elif name in ("updated", "hook_token") and count == 1:
            values = (args[0],)
        elif name == "acp_tokens" and len(args) == 1 and isinstance(args[0], list):
            values = ([each for each in args[0] if isinstance(each, str)],)
        elif name == "hook" and count == 2:
            values = args[0], codec.clean(args[1])
        elif name == "endpoints" and count == 1:
            values = (codec.endpoints(codec.json_value(args[0])),)
        elif name == "integrations" and count == 1:
            values = (codec.json_value(args[0]),)
        elif name == "push" and count == 5:
            agent, session, method, params, latest = args
            values = agent, session, codec.clean(method), codec.clean(params), latest is True
        elif name == "log" and count == 3:
            values = args[0], args[1], codec.json_value(args[2])
        else:
            logger.warning("event %s is unknown or has unexpected arguments", name)
            return
        for callback in self._callbacks.get(name, ()):
            callback(*values)

    def _request(
        self, verb: str, args: Sequence[Any], answer: Callable[[Any], T], give_up: float | None = None
    ) -> asyncio.Future[T]:
        until = self._channel.time() + ANSWER_WITHIN if give_up is None else give_up
        return self._channel.request("nvim_exec_lua", (_VERB % verb, args), until, answer)

    def _notify(self, verb: str, args: Sequence[Any]) -> None:
        self._channel.notify("nvim_exec_lua", (_VERB % verb, args))

    def _reply(self, verb: str, args: Sequence[Any], give_up: float | None = None) -> asyncio.Future[Reply]:
        sent = self._channel.time()

        def answer(raw: Any) -> Reply:
            self._learn(sent, int(raw["clock"]))
            return codec.reply(raw, self._clock)

        return self._request(verb, args, answer, give_up)

    def _read_clock(self, give_up: float) -> asyncio.Future[None]:
        sent = self._channel.time()
        args = (_CLOCK, ())
        return self._channel.request("nvim_exec_lua", args, give_up, lambda raw: self._learn(sent, int(raw)))

    def _learn(self, sent: float, clock: int) -> None:
        self._clock.sample(sent, self._channel.time() + TICK, clock)
