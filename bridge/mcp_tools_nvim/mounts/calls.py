"""Calls to one mounted server, and the server's questions to the calling client.

A call ends once: with the server's answer, with the connection, or because Neovim has ended it; then the
server is notified.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from ..jsonrpc import RESOURCE_NOT_FOUND, TOO_LARGE
from ..neovim.nvim import NvimEditor
from ..rate_limit import TokenBucket
from . import outcomes
from .outcomes import MountOutcome, error_outcome
from .session import MountSession, is_closed

if TYPE_CHECKING:
    from .supervisor import MountedServer
from .mount import Mount

CLOSE_REASON_TIMEOUT = 5.0
"""Seconds to wait for the reason of a closed connection."""
MAX_EVENTS = 100
"""Maximum progress and log messages per second each: Neovim reads every one."""
MAX_ERROR = 16 * 1024
"""Maximum characters of a server's error, and of a log message as JSON."""
MAX_MESSAGE = 4 * 1024
"""Maximum characters of a progress message."""
AMBIGUOUS = "the question cannot be assigned to one client, and must not reach another"

_call: contextvars.ContextVar[MountCall] = contextvars.ContextVar("call")


class MountCall:
    """A running call.

    Attributes:
        sent: the server may have received the request.
    """

    def __init__(
        self, call_id: str, info: Mapping[str, Any], work: Callable[[MountCall], Coroutine[Any, Any, None]]
    ) -> None:
        self.id = call_id
        self.session = info.get("session")
        self.asked: dict[int, asyncio.Future[Any]] = {}
        context = contextvars.copy_context()
        context.run(_call.set, self)
        loop = asyncio.get_running_loop()
        self.sent = False
        self.task: asyncio.Task[None] = loop.create_task(work(self), context=context)


class MountCalls:
    """The running calls to one mounted server."""

    def __init__(self, mount: Mount, editor: NvimEditor, server: MountedServer) -> None:
        self._mount = mount
        self._editor = editor
        self._server = server
        self._running: dict[str, MountCall] = {}
        self._questions = 0
        self._loop = asyncio.get_running_loop()
        self._logged = TokenBucket(MAX_EVENTS, MAX_EVENTS, self._loop.time())

    def begin(
        self,
        call_id: str,
        target: Mapping[str, Any],
        arguments: Any,
        info: Mapping[str, Any],
        forget: Callable[[str], None],
    ) -> None:
        """Starts a call.

        Args:
            call_id: Neovim's id of the call.
            target: `kind` and `name`.
            arguments: checked by Neovim.
            info: the client's session, and the `limit` of a result.
            forget: called when the call has ended.
        """

        async def work(call: MountCall) -> None:
            try:
                outcome = await self._outcome(call, target, arguments, info)
            except Exception as fault:  # noqa: BLE001 - boundary: the call ends whatever the server answers
                text = f"mount '{self._mount.name}' returned an unreadable result: {fault!r}"
                outcome = error_outcome("execution_error", self._mount.clean(text))
            end(outcome)

        def end(outcome: MountOutcome) -> None:
            if self._running.pop(call_id, None) is not None:
                self._send_result(call_id, outcome)

        def on_end(_: asyncio.Task[None]) -> None:
            end(error_outcome("cancelled", "the call was cancelled"))  # no effect after another end
            forget(call_id)

        call = self._running[call_id] = MountCall(call_id, info, work)
        # A task that is cancelled before it begins runs none of its own code.
        call.task.add_done_callback(on_end)

    def cancel(self, call_id: str) -> None:
        """Cancels a call that Neovim has ended."""
        call = self._running.get(call_id)
        if call is not None:
            call.task.cancel()

    def answer(self, call_id: str, ask: int, result: Any, error: Any) -> None:
        """Takes the client's answer to a question of a call."""
        call = self._running.get(call_id)
        waiting = call.asked.pop(ask, None) if call is not None else None
        if waiting is None or waiting.done():
            return
        if error:
            waiting.set_exception(MCPError(types.INVALID_REQUEST, str(error.get("message") or "refused")))
        else:
            waiting.set_result(result)

    def end_all(self, why: str, *, sent: bool = False) -> None:
        """Ends all calls, or only those already `sent`: the others still wait for a connection."""
        for call_id, call in list(self._running.items()):
            if sent and not call.sent:
                continue
            del self._running[call_id]
            self._send_result(call_id, error_outcome("execution_error", why))
            call.task.cancel()

    def log(self, level: str, data: Any) -> None:
        """Passes a log message on to the calling client, if that is unambiguous."""
        call = self._caller()
        if call is not None and not self._logged.take(self._loop.time()):
            text = json.dumps(data, ensure_ascii=False)
            if len(text) > MAX_ERROR:
                text = json.dumps(f"a log message of {len(text)} characters was dropped")
            self._editor.remote("remote_log", call.id, level, text)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Passes the server's question on to the calling client and waits for the answer.

        Raises:
            MCPError: the client refuses, or it is unknown which one to ask.
        """
        if method == "roots/list":
            root = self._mount.root
            return {"roots": [{"uri": Path(root).as_uri()}] if root else []}
        call = self._caller()
        if call is None:
            raise MCPError(types.INVALID_REQUEST, AMBIGUOUS)
        text = json.dumps({"answer": {"method": method, "params": params}}, ensure_ascii=False)
        if len(text) > self._mount.limit:
            why = f"the question has {len(text)} characters, the limit is {self._mount.limit}"
            raise MCPError(TOO_LARGE, f"{why} (option limits.tool_result)")
        self._questions += 1
        answer = call.asked[self._questions] = asyncio.get_running_loop().create_future()
        self._editor.remote("remote_ask", call.id, self._questions, text)
        await asyncio.wait({answer, call.task}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise MCPError(types.INVALID_REQUEST, "the call has ended")
        result: dict[str, Any] = answer.result()
        return result

    def _caller(self) -> MountCall | None:
        """Returns the call that a message belongs to: the context's, or the last if all are of one client."""
        call = _call.get(None)
        # Calls without a session may be of different clients.
        if call is None and len({each.session or each.id for each in self._running.values()}) == 1:
            call = list(self._running.values())[-1]
        return call

    def _send_result(self, call_id: str, outcome: MountOutcome) -> None:
        try:
            self._editor.remote("remote_result", call_id, outcome)
        except (ValueError, TypeError, OverflowError) as fault:
            text = f"the result of mount '{self._mount.name}' cannot be passed on: {fault}"
            self._editor.remote("remote_result", call_id, error_outcome("execution_error", text))

    async def _outcome(
        self, call: MountCall, target: Mapping[str, Any], arguments: Any, info: Mapping[str, Any]
    ) -> MountOutcome:
        session = await self._server.session()
        if session is None:
            return error_outcome("busy", self._server.unavailable_reason())
        call.sent = True
        kind, limit = target.get("kind") or "tool", info.get("limit") or self._mount.limit
        try:
            raw = await self._request(session, call, kind, str(target["name"]), arguments)
            if kind == "tool" and not target.get("structured"):
                text = outcomes.plain_text(raw, limit)
                if text is not None:
                    return {"kind": "text", "text": text}
            return outcomes.CONVERTERS[kind](self._mount, raw, limit)
        except MCPError as fault:
            if is_closed(fault):
                await asyncio.sleep(CLOSE_REASON_TIMEOUT)  # `end_all` ends it with the reason
                return error_outcome(
                    "execution_error", f"mount '{self._mount.name}' was lost while the tool ran"
                )
            return self._failure(kind, fault)
        except ValidationError as fault:
            first = fault.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            text = f"mount '{self._mount.name}' returned an invalid result: {field}: {first['msg']}"
            return error_outcome("invalid_output", text)

    async def _request(
        self, session: MountSession, call: MountCall, kind: str, name: str, arguments: Any
    ) -> dict[str, Any]:
        reported = TokenBucket(MAX_EVENTS, MAX_EVENTS, self._loop.time())

        async def progress(done: float, total: float | None, message: str | None) -> None:
            if not reported.take(self._loop.time()):
                line = message and message[:MAX_MESSAGE]
                self._editor.remote("remote_progress", call.id, done, total, line)

        original_name = self._mount.original_name(name)
        match kind:
            case "tool":
                return await session.call(original_name, arguments, progress)
            case "resource":
                uri = self._mount.original_uri(name)
                return await session.request(types.ReadResourceRequest, {"uri": uri}, progress)
            case "prompt":
                given = {"name": original_name, "arguments": arguments or None}
                return await session.request(types.GetPromptRequest, given, progress)
            case "completion of a prompt":
                ref = {"type": "ref/prompt", "name": original_name}
            case _:
                ref = {"type": "ref/resource", "uri": self._mount.original_uri(name)}
        known = arguments.get("context")
        context = {"arguments": known} if known else None
        return await session.request(types.CompleteRequest, {**arguments, "ref": ref, "context": context})

    def _failure(self, kind: str, fault: MCPError) -> MountOutcome:
        error = fault.error
        text = self._mount.clean(error.message)[:MAX_ERROR]
        if error.code == TOO_LARGE:
            return error_outcome("too_large", text)
        if kind == "resource" and error.code in (RESOURCE_NOT_FOUND, types.INVALID_PARAMS):
            return error_outcome("not_found", text)
        return error_outcome("tool_error", text)
