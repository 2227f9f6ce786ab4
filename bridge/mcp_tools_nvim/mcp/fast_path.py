"""The fast path of `tools/call`, which bypasses the SDK's models of calls and results.

They take a quarter of a call's time. A plain call runs at once, and a text result is serialized here. Any
other outcome is left to the handler in `methods.py` (`Dispatch.early`), which then does not run the call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from mcp_types import SERVER_INFO_META_KEY
from mcp_types.methods import serialize_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .. import jsonrpc
from ..calls.arguments import refuse_arguments
from ..calls.runner import Calls
from ..values import Outcome
from .dispatch import Caller
from .inputs import UNFINISHED, run_call
from .results import tool_result
from .tasks import Tasks

METHOD = "tools/call"

_MEMBERS = frozenset({"name", "arguments", "_meta"})
_TEXT, _VALUE = "a text", {"a": "value"}


def is_plain_call(params: Mapping[str, Any]) -> bool:
    """Whether the SDK would accept these parameters, and no member needs its models."""
    if not params.keys() <= _MEMBERS:
        return False
    arguments, meta = params.get("arguments"), params.get("_meta")
    if meta is not None and (type(meta) is not dict or type(meta.get("progressToken", "")) not in (str, int)):
        return False
    return type(params.get("name")) is str and (arguments is None or type(arguments) is dict)


class _Frame(NamedTuple):
    """The JSON text before and after a result's text; `…typed` and `between` are for structured content."""

    before: bytes
    after: bytes
    before_typed: bytes
    between: bytes
    after_typed: bytes


class FastPath:
    """Runs plain calls.

    Args:
        calls: runs tools.
        server_info: server information that results of the stateless era contain.
        tasks: tasks of long calls.
    """

    def __init__(self, calls: Calls, server_info: Mapping[str, Any], tasks: Tasks) -> None:
        self._calls = calls
        self._tasks = tasks
        self._server_info = server_info
        self._frames: dict[str, _Frame] = {}

    async def run(self, caller: Caller, otherwise: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Runs a plain call; `otherwise` makes the results that are not serialized here."""
        params, dispatch = caller.params, caller.dispatch
        arguments = params.get("arguments") or {}
        if (failure := refuse_arguments(arguments)) is not None:
            dispatch.early = failure
            return await otherwise()
        try:
            outcome = await run_call(self._calls, caller, params["name"], arguments, tasks=self._tasks)
        except UNFINISHED as unfinished:
            dispatch.early = unfinished
            return await otherwise()
        dispatch.encoded = self._encode(outcome, caller.connection.protocol_version)
        if dispatch.encoded is None:
            dispatch.early = outcome
            return await otherwise()
        return {}

    def _encode(self, outcome: Outcome, version: str) -> tuple[bytes, ...] | None:
        if outcome.error is not None or outcome.kind not in ("text", "json"):
            return None
        frame = self._frames.get(version) or self._add_frame(version)
        text = outcome.text
        if not outcome.structured:
            return frame.before, jsonrpc.dumps(text), frame.after
        if text[:1] != "{":
            return None  # protocol versions differ
        try:
            value = jsonrpc.dumps(jsonrpc.loads(text))
        except ValueError:
            return None
        return frame.before_typed, jsonrpc.dumps(text), frame.between, value, frame.after_typed

    def _add_frame(self, version: str) -> _Frame:
        text, value = jsonrpc.dumps(_TEXT), jsonrpc.dumps(_VALUE)
        before, _, after = self._serialized(version, Outcome("done", "text", _TEXT)).partition(text)
        typed = self._serialized(version, Outcome("done", "json", _TEXT), structuredContent=_VALUE)
        before_typed, _, rest = typed.partition(text)
        between, _, after_typed = rest.partition(value)
        frame = self._frames[version] = _Frame(before, after, before_typed, between, after_typed)
        return frame

    def _serialized(self, version: str, outcome: Outcome, **more: Any) -> bytes:
        """Returns a result as the kernel would serialize it."""
        result = serialize_server_result(METHOD, version, tool_result(outcome) | more)
        if version in MODERN_PROTOCOL_VERSIONS:
            result["_meta"] = {SERVER_INFO_META_KEY: self._server_info}
        return jsonrpc.dumps(result)
