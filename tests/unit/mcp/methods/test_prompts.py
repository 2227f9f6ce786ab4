"""Prompts and completion with an editor in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from mcp_tools_nvim.errors import Code
from tests.support.memory import FailError, ToolContext
from tests.support.served import Served, served


def greet(ctx: ToolContext, arguments: dict[str, Any]) -> str:
    if "name" not in arguments:
        raise FailError("Invalid arguments for greet: name: is required", Code.VALIDATION_ERROR)
    return f"Greet {arguments['name']}"


def fail(ctx: ToolContext, arguments: dict[str, Any]) -> None:
    raise FailError("it threw", Code.EXECUTION_ERROR)


def names(prefix: str, arguments: dict[str, str]) -> list[str]:
    return [name for name in ("Ada", "Alan", arguments.get("also", "Bob")) if name.startswith(prefix)]


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served() as made:
        argument = {"name": "name", "required": True}
        made.editor.add_prompt("greet", greet, {"name": names}, description="Greets", arguments=[argument])
        made.editor.add_prompt("fail", fail)
        many = {"id": lambda prefix, arguments: [str(n) for n in range(150)]}
        made.editor.add_resource("test://t/{id}", lambda ctx, params: "", many)
        yield made


async def test_invalid_names_and_arguments_differ_from_internal_failures(bridge: Served) -> None:
    session = await bridge.initialize()
    for params in ({"name": "none"}, {"name": "greet"}, {"name": "greet", "arguments": {"name": 5}}, {}):
        assert (await bridge.ask(session, "prompts/get", params))["error"]["code"] == -32602, params
    error = (await bridge.ask(session, "prompts/get", {"name": "fail"}))["error"]
    assert (error["code"], error["data"]["code"]) == (-32603, "execution_error")


async def complete(bridge: Served, session: str, ref: dict[str, Any], name: str, value: str) -> Any:
    context = {"arguments": {"also": "Alonzo"}}
    params = {"ref": ref, "argument": {"name": name, "value": value}, "context": context}
    return await bridge.ask(session, "completion/complete", params)


async def test_arguments_of_prompts_and_variables_of_templates_are_completed(bridge: Served) -> None:
    """At most 100 values."""
    session = await bridge.initialize()
    prompt = {"type": "ref/prompt", "name": "greet"}
    template = {"type": "ref/resource", "uri": "test://t/{id}"}
    answer = await complete(bridge, session, prompt, "name", "Al")
    assert answer["result"]["completion"] == {"values": ["Alan", "Alonzo"], "total": 2}
    answer = (await complete(bridge, session, template, "id", ""))["result"]["completion"]
    assert (len(answer["values"]), answer["total"], answer["hasMore"]) == (100, 150, True)
    assert (await complete(bridge, session, prompt, "other", ""))["result"]["completion"]["values"] == []
    prompt, template = prompt | {"name": "none"}, template | {"uri": "none://"}
    for ref in (prompt, template, {"type": "x"}):
        assert (await complete(bridge, session, ref, "name", ""))["error"]["code"] == -32602
