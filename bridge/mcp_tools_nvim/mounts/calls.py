"""The calls of what one server offers, and the questions that it has for who calls.

A call ends once: with the server's answer, with the end of the connection, or because the editor has ended
it, which the server then hears.
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

from ..rate_limit import TokenBucket
from . import outcomes
from .child_process import TOO_LARGE
from .loader import MountEditor
from .outcomes import Outcome, failed
from .session import Session, is_closed

if TYPE_CHECKING:
    from .servers import MountedServer
from .mount import Mount

NOT_FOUND = -32002
CLOSE_REASON_TIMEOUT = 5.0
"""Seconds in which it is known why a connection is gone."""
MAX_EVENTS = 100
"""Per second, of progress and of log messages each: the editor reads every one."""
MAX_ERROR = 16 * 1024
"""Characters of an error that a server gives, and of a log message as JSON."""
MAX_MESSAGE = 4 * 1024
"""Characters of what progress says; it is a line for people."""
AMBIGUOUS = "what it asks belongs to no single client: the question of one must not reach another"

_call: contextvars.ContextVar[Call] = contextvars.ContextVar("call")


class Call:
    """A call that runs here.

    Attributes:
        sent: the server may have heard of it.
    """

    def __init__(
        self, call_id: str, info: Mapping[str, Any], work: Callable[[Call], Coroutine[Any, Any, None]]
    ) -> None:
        self.id = call_id
        self.session = info.get("session")
        self.asked: dict[int, asyncio.Future[Any]] = {}
        context = contextvars.copy_context()
        context.run(_call.set, self)
        loop = asyncio.get_running_loop()
        self.sent = False
        self.task: asyncio.Task[None] = loop.create_task(work(self), context=context)


class Calls:
    """See the head of this file."""

    def __init__(self, mount: Mount, editor: MountEditor, server: MountedServer) -> None:
        self._mount = mount
        self._editor = editor
        self._server = server
        self._running: dict[str, Call] = {}
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
        """Runs a call of the editor.

        Args:
            call_id: of the editor.
            target: `kind` and `name`.
            arguments: as checked by the editor.
            info: who calls, and the `limit` of a result.
            forget: is told when it has ended.
        """

        async def work(call: Call) -> None:
            try:
                outcome = await self._outcome(call, target, arguments, info)
            except Exception as fault:  # noqa: BLE001 - boundary: whatever a server answers, the call ends
                text = f"mount '{self._mount.name}' returned an unreadable result: {fault!r}"
                outcome = failed("execution_error", self._mount.clean(text))
            end(outcome)

        def end(outcome: Outcome) -> None:
            if self._running.pop(call_id, None) is not None:
                self._tell(call_id, outcome)

        def over(_: asyncio.Task[None]) -> None:
            end(failed("cancelled", "the call was cancelled"))  # unless it has ended: the editor has done it
            forget(call_id)

        call = self._running[call_id] = Call(call_id, info, work)
        # A task that is cancelled before it begins runs none of its own code.
        call.task.add_done_callback(over)

    def cancel(self, call_id: str) -> None:
        """The editor has ended a call; the server is told to stop."""
        call = self._running.get(call_id)
        if call is not None:
            call.task.cancel()

    def answer(self, call_id: str, ask: int, result: Any, error: Any) -> None:
        """The answer to a question of a call."""
        call = self._running.get(call_id)
        waiting = call.asked.pop(ask, None) if call is not None else None
        if waiting is None or waiting.done():
            return
        if error:
            waiting.set_exception(MCPError(types.INVALID_REQUEST, str(error.get("message") or "refused")))
        else:
            waiting.set_result(result)

    def settle_all(self, why: str, *, sent: bool = False) -> None:
        """Ends what runs, or only what was `sent`: the rest waits for a connection, or hears why not."""
        for call_id, call in list(self._running.items()):
            if sent and not call.sent:
                continue
            del self._running[call_id]
            self._tell(call_id, failed("execution_error", why))
            call.task.cancel()

    def log(self, level: str, data: Any) -> None:
        """What the server logs goes to the client that called, when that can be told."""
        call = self._whose()
        if call is not None and not self._logged.take(self._loop.time()):
            text = json.dumps(data, ensure_ascii=False)
            if len(text) > MAX_ERROR:
                text = json.dumps(f"a log message of {len(text)} characters, which is too long")
            self._editor.remote("remote_log", call.id, level, text)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Passes on what the server asks.

        Raises:
            MCPError: nobody can be asked, or refuses.
        """
        if method == "roots/list":
            root = self._mount.root
            return {"roots": [{"uri": Path(root).as_uri()}] if root else []}
        call = self._whose()
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

    def _whose(self) -> Call | None:
        """The call that something belongs to: it stands in its context, or all that run are of one client."""
        call = _call.get(None)
        # Who has no session may be anybody.
        if call is None and len({each.session or each.id for each in self._running.values()}) == 1:
            call = list(self._running.values())[-1]
        return call

    def _tell(self, call_id: str, outcome: Outcome) -> None:
        try:
            self._editor.remote("remote_result", call_id, outcome)
        except (ValueError, TypeError, OverflowError) as fault:
            text = f"the result of mount '{self._mount.name}' cannot be passed on: {fault}"
            self._editor.remote("remote_result", call_id, failed("execution_error", text))

    async def _outcome(
        self, call: Call, target: Mapping[str, Any], arguments: Any, info: Mapping[str, Any]
    ) -> Outcome:
        session = await self._server.session()
        if session is None:
            return failed("busy", self._server.absence())
        call.sent = True
        kind, limit = target.get("kind") or "tool", info.get("limit") or self._mount.limit
        try:
            raw = await self._request(session, call, kind, str(target["name"]), arguments)
            if kind == "tool" and not target.get("structured"):
                text = outcomes.plain_text(raw, limit)
                if text is not None:
                    return {"kind": "text", "text": text}
            return outcomes.OF[kind](self._mount, raw, limit)
        except MCPError as fault:
            if is_closed(fault):
                await asyncio.sleep(
                    CLOSE_REASON_TIMEOUT
                )  # `settle_all` ends it, and knows why the connection is gone
                return failed("execution_error", f"mount '{self._mount.name}' was lost while the tool ran")
            return self._refusal(kind, fault)
        except ValidationError as fault:
            first = fault.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            text = f"mount '{self._mount.name}' returned an invalid result: {place}: {first['msg']}"
            return failed("invalid_output", text)

    async def _request(
        self, session: Session, call: Call, kind: str, name: str, arguments: Any
    ) -> dict[str, Any]:
        told = TokenBucket(MAX_EVENTS, MAX_EVENTS, self._loop.time())

        async def progress(done: float, total: float | None, message: str | None) -> None:
            if not told.take(self._loop.time()):
                line = message and message[:MAX_MESSAGE]
                self._editor.remote("remote_progress", call.id, done, total, line)

        own = self._mount.own(name)
        match kind:
            case "tool":
                return await session.call(own, arguments, progress)
            case "resource":
                return await session.request(read_request, progress, uri=self._mount.own_uri(name))
            case "prompt":
                return await session.request(prompt_request, progress, name=own, arguments=arguments or None)
            case "completion of a prompt":
                return await session.request(
                    completion_request, ref=types.PromptReference(name=own), **arguments
                )
            case _:
                ref = types.ResourceTemplateReference(uri=self._mount.own_uri(name))
                return await session.request(completion_request, ref=ref, **arguments)

    def _refusal(self, kind: str, fault: MCPError) -> Outcome:
        error = fault.error
        text = self._mount.clean(error.message)[:MAX_ERROR]
        if error.code == TOO_LARGE:
            return failed("too_large", text)
        if kind == "resource" and error.code in (NOT_FOUND, types.INVALID_PARAMS):
            return failed("not_found", text)
        return failed("tool_error", text)


def read_request(**params: Any) -> types.ReadResourceRequest:
    """`resources/read`."""
    return types.ReadResourceRequest(params=types.ReadResourceRequestParams(**params))


def prompt_request(**params: Any) -> types.GetPromptRequest:
    """`prompts/get`."""
    return types.GetPromptRequest(params=types.GetPromptRequestParams(**params))


def completion_request(
    *, ref: Any, argument: dict[str, str], context: dict[str, str] | None = None
) -> types.CompleteRequest:
    """`completion/complete`."""
    given = types.CompletionContext(arguments=context) if context else None
    return types.CompleteRequest(
        params=types.CompleteRequestParams(
            ref=ref, argument=types.CompletionArgument(**argument), context=given
        )
    )
