"""The tasks extension (SEP-2663): a tool call that takes long becomes a task, which its client polls.

Only stateless clients that declare the extension get tasks. A task belongs to the client that made the call.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_types.methods import serialize_server_result
from pydantic import Field

from .. import jsonrpc
from ..calls.call import Call, NullObserver
from ..calls.runner import Calls
from ..errors import Code
from ..values import Outcome, Parked
from .dispatch import RequestContext, Requester, declared_client, requester_of
from .results import tool_result

EXTENSION = "io.modelcontextprotocol/tasks"

METHODS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})

POLL_MS = 1000
"""Recommended polling interval."""
KEPT_SECONDS = 300.0
"""How long a result is kept after the end of its task."""
MAX_KEPT = 128
"""Maximum number of ended tasks that are kept."""
MAX_CHARACTERS = 32 * 1024 * 1024
"""Maximum characters of their results."""

_CALL = "tools/call"
_WAITING = {
    "waiting_approval": "waiting for the user in Neovim",
    "waiting_input": "waiting for an answer in Neovim",
}
_MISSING: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}

Result = Outcome | Parked | None
"""How a call ended, or what it asks its client; None = there is no such call."""


class TaskParams(types.RequestParams):
    """Parameters of all methods; responses are for `tasks/update` only."""

    task_id: str = Field(alias="taskId")
    input_responses: dict[str, Any] = Field(default_factory=dict, alias="inputResponses")


class Task:
    """A call whose client polls for its result.

    Attributes:
        id: 128 random bits.
        owner: the client that made the call.
        work: runs the call until its end or its next question.
        version: protocol version of the call's result.
        call: the call.
        ended_at: monotonic time.
    """

    def __init__(self, owner: tuple[Any, ...], work: asyncio.Task[Result], version: str, call: Call) -> None:
        self.id = secrets.token_hex(16)
        self.owner = owner
        self.version = version
        self.call = call
        self.created = self.updated = time.time()
        self.answers: dict[str, Any] = {}
        self.ended_at: float | None = None
        self.work = work
        self.follow(work)

    def follow(self, work: asyncio.Task[Result]) -> None:
        """Sets the task that continues the call."""
        self.work, self.answers = work, {}
        work.add_done_callback(lambda _: self.note_change())

    def note_change(self) -> None:
        """Records the time of a change, and whether the call has ended."""
        self.updated = time.time()
        if self.question is None:
            self.ended_at = time.monotonic()

    def note_end(self) -> None:
        """Records the end of a call that ended with an open question."""
        if self.ended_at is None and self.work.done() and self.question is None:
            self.note_change()

    @property
    def result(self) -> Result:
        """How the call ended, or what it asks; None while it runs, after a cancellation or an exception."""
        work = self.work
        return work.result() if work.done() and not work.cancelled() and work.exception() is None else None

    @property
    def question(self) -> Parked | None:
        """The open question."""
        result = self.result
        return result if isinstance(result, Parked) and self.call.is_parked else None

    @property
    def outcome(self) -> Outcome | None:
        """How the call ended, even if it was parked."""
        result = self.result
        return self.call.outcome if isinstance(result, Parked) else result


def declares_tasks(requester: Requester) -> bool:
    """Whether a client gets tasks."""
    return requester.is_stateless and EXTENSION in (
        declared_client(requester.connection)[1].get("extensions") or {}
    )


class Tasks:
    """All tasks.

    Args:
        calls: runs tools.
        after: seconds after which a call becomes a task.
    """

    def __init__(self, calls: Calls, after: float) -> None:
        self._calls = calls
        self._after = after
        self._tasks: dict[str, Task] = {}

    def install(self, server: Server[Any]) -> None:
        """Adds the methods to a server."""
        for method, handler in (
            ("tasks/get", self._get),
            ("tasks/update", self._update),
            ("tasks/cancel", self._cancel),
        ):
            server.add_request_handler(method, TaskParams, handler)

    async def run(
        self, requester: Requester, running: Coroutine[Any, Any, Result], call_id: str | None = None
    ) -> Result | dict[str, Any]:
        """Runs a call.

        Args:
            requester: the client.
            running: runs the call.
            call_id: id of a continued call; None = a new one.

        Returns:
            How the call ended; if it takes too long, the result of `tools/call` with the task's id.
        """
        work = self._calls.loop.create_task(running)
        try:
            await asyncio.wait({work}, timeout=self._after)
        except asyncio.CancelledError:
            self._calls.cancel_like_current(work)
            await asyncio.wait({work})
            raise
        call = None if work.done() else self._calls.detach(work, call_id)
        if call is None:
            return await work
        task = Task(_owner(requester), work, requester.connection.protocol_version, call)
        self._prune()
        self._tasks[task.id] = task
        if requester.connection.session_id is not None:
            requester.connection.exit_stack.callback(self._end, task.id)
        return {"resultType": "task", **self._describe(task)}

    async def _get(self, context: RequestContext, params: TaskParams) -> dict[str, Any]:
        task = self._find(context, params)
        return {"resultType": "complete", **self._describe(task)}

    async def _update(self, context: RequestContext, params: TaskParams) -> dict[str, Any]:
        task = self._find(context, params)
        parked = task.question
        if parked is not None:
            given = {_key(parked, key): key for key in parked.inputs.requests}
            for key, value in params.input_responses.items():
                if key in given:
                    task.answers[given[key]] = {"result": value}
            if parked.inputs.requests.keys() <= task.answers.keys():
                resumed = self._calls.resume(parked.task_id, parked.inputs.seq, task.answers, NullObserver())
                task.follow(self._calls.loop.create_task(resumed))
        return {"resultType": "complete"}

    async def _cancel(self, context: RequestContext, params: TaskParams) -> dict[str, Any]:
        self._stop(self._find(context, params), "client")
        return {"resultType": "complete"}

    def _stop(self, task: Task, reason: str) -> None:
        if task.question is not None:
            self._calls.cancel_parked(task.call, reason)
        elif not task.work.done():
            self._calls.set_cancel_reason(task.work, reason)
            task.work.cancel()

    def _end(self, id_: str) -> None:
        """Cancels a task at the end of its session, which only clients of the relay have."""
        if (task := self._tasks.get(id_)) is not None:
            self._stop(task, "session_closed")

    def _find(self, context: RequestContext, params: TaskParams) -> Task:
        requester = requester_of(context)
        if not requester.is_stateless:
            raise MCPError(jsonrpc.METHOD_NOT_FOUND, "Method not found", context.method)
        if not declares_tasks(requester):
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", _MISSING)
        self._prune()
        task = self._tasks.get(params.task_id)
        if task is None or task.owner != _owner(requester):
            raise MCPError(jsonrpc.INVALID_PARAMS, "taskId: unknown task; its result may have expired")
        return task

    def _describe(self, task: Task) -> dict[str, Any]:
        """Returns the state of a task, with its result, error or open question."""
        ended = task.ended_at is not None
        return {
            "taskId": task.id,
            "createdAt": _timestamp(task.created),
            "lastUpdatedAt": _timestamp(task.updated),
            "ttlMs": int((task.updated - task.created + KEPT_SECONDS) * 1000) if ended else None,
            "pollIntervalMs": POLL_MS,
            **self._state(task),
        }

    def _state(self, task: Task) -> dict[str, Any]:
        if not task.work.done():
            message = _WAITING.get(task.call.state, task.call.progress.message)
            return {"status": "working"} | ({} if message is None else {"statusMessage": message})
        if (parked := task.question) is not None:
            left = parked.inputs.requests.keys() - task.answers.keys()
            requests = {_key(parked, key): parked.inputs.requests[key] for key in sorted(left)}
            return {"status": "input_required", "inputRequests": requests}
        outcome = task.outcome
        if task.work.cancelled() or (outcome is not None and outcome.state == "cancelled"):
            return {"status": "cancelled"}
        if outcome is None or _missing_capability(outcome):
            return {"status": "failed", "error": self._error(task)}
        result = serialize_server_result(_CALL, task.version, tool_result(outcome))
        return {"status": "completed", "result": result}

    def _error(self, task: Task) -> dict[str, Any]:
        error = None if task.outcome is None else task.outcome.error
        if error is not None:
            required = {"requiredCapabilities": error.required}
            return {"code": MISSING_REQUIRED_CLIENT_CAPABILITY, "message": error.message, "data": required}
        return {"code": jsonrpc.INTERNAL_ERROR, "message": "the call ended without a result"}

    def _prune(self) -> None:
        """Drops tasks whose results have expired, and the oldest if there are too many."""
        for task in self._tasks.values():
            task.note_end()
        now = time.monotonic()
        ended = [task for task in self._tasks.values() if task.ended_at is not None]
        kept = size = 0
        for task in sorted(ended, key=lambda each: each.ended_at or 0.0, reverse=True):
            kept, size = kept + 1, size + len(task.outcome.text if task.outcome is not None else "")
            expired = now - (task.ended_at or 0.0) > KEPT_SECONDS
            if expired or kept > MAX_KEPT or (size > MAX_CHARACTERS and kept > 1):
                del self._tasks[task.id]


def _missing_capability(outcome: Outcome) -> bool:
    error = outcome.error
    return error is not None and error.code == Code.CAPABILITY_MISSING and bool(error.required)


def _owner(requester: Requester) -> tuple[Any, ...]:
    connection, dispatch = requester.connection, requester.dispatch
    return (declared_client(connection)[0], dispatch.agent, dispatch.scope, connection.session_id)


def _key(parked: Parked, key: str) -> str:
    """Returns a request's key, unique among all questions of its task."""
    return f"{parked.inputs.seq}.{key}"


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
