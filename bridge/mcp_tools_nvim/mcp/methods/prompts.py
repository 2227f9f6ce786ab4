"""`prompts/*`, and `completion/complete` for arguments of prompts and variables of templates."""

from __future__ import annotations

from typing import Any

import mcp_types as types

from ...calls.arguments import refused
from ...calls.runner import Calls
from ...neovim import Editor
from .. import execute
from ..errors import content_of
from ..pages import Pages
from ..request import Context, caller_of


class Prompts:
    """See the head of this file."""

    def __init__(self, editor: Editor, calls: Calls) -> None:
        self.pages = Pages(editor, "prompts", "prompts")
        self._calls = calls

    async def get(self, context: Context, params: types.GetPromptRequestParams) -> dict[str, Any]:
        """`prompts/get`."""
        arguments = dict(params.arguments or {})
        outcome = refused(arguments)
        if outcome is None:
            outcome = await execute.run(self._calls, caller_of(context), params.name, arguments, "prompt")
        return {"resultType": "complete"} | content_of(outcome)

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> dict[str, Any]:
        """`completion/complete`."""
        ref: dict[str, Any]
        if isinstance(params.ref, types.PromptReference):
            name, ref = params.ref.name, {"type": "prompt", "name": params.ref.name}
        else:
            name, ref = params.ref.uri, {"type": "resource", "uri": params.ref.uri}
        given: dict[str, Any] = {
            "ref": ref,
            "argument": {"name": params.argument.name, "value": params.argument.value},
        }
        if params.context is not None and params.context.arguments:
            given["context"] = {"arguments": dict(params.context.arguments)}
        outcome = refused(given)
        if outcome is None:
            outcome = await execute.run(self._calls, caller_of(context), name, given, "completion")
        return {"resultType": "complete", "completion": content_of(outcome)}
