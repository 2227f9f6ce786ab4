"""Prompts from an official client to Lua and back, over every transport."""

from __future__ import annotations

import base64

import pytest
import pytest_asyncio
from mcp import MCPError, types

from tests.support.bridge import Bridge, Transport, connect
from tests.support.news import follow
from tests.support.nvim import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Once: registering again would be announced to the next client.
REGISTER = f"if not _G.Watched then dofile([[{ROOT / 'tests' / 'e2e' / 'resources.lua'}]]) end"


@pytest_asyncio.fixture(loop_scope="session")
async def prompts(common_bridge: Bridge) -> Bridge:
    """A bridge whose editor has the prompt of tests/e2e/resources.lua."""
    await common_bridge.nvim.lua(REGISTER)
    return common_bridge


async def test_a_prompt_has_arguments_and_content(prompts: Bridge, transport: Transport) -> None:
    async with connect(prompts, transport) as client:
        listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        arguments = [(arg.name, arg.description, arg.required) for arg in listed["greet"].arguments or ()]
        got = await client.get_prompt("greet", {"name": "Ada"})
        assert {"explain_diagnostics", "review_changes"} <= listed.keys()
        assert listed["greet"].title == "Greet"
        assert arguments == [("name", "Whom", True), ("style", None, None)]
        assert got.description == "A greeting"
        assert [message.role for message in got.messages] == ["user", "user", "assistant"]
        text, image, resource = (message.content for message in got.messages)
        assert text.text == "Greet Ada"  # type: ignore[union-attr]
        assert base64.b64decode(image.data) == b"\0\1"  # type: ignore[union-attr]
        assert resource.resource.uri == "e2e://text"  # type: ignore[union-attr]


async def test_invalid_requests_are_errors(prompts: Bridge, transport: Transport) -> None:
    async with connect(prompts, transport) as client:
        for name in ("none", "greet"):
            with pytest.raises(MCPError) as caught:
                await client.get_prompt(name)
            assert caught.value.error.code == -32602
        assert "name: is required" in caught.value.error.message
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("broken")
        assert (caught.value.error.code, caught.value.error.data["code"]) == (-32603, "execution_error")


async def test_an_argument_is_completed_with_the_others(prompts: Bridge, transport: Transport) -> None:
    ref = types.PromptReference(name="greet")
    async with connect(prompts, transport) as client:
        plain = await client.complete(ref, {"name": "name", "value": "x"})
        styled = await client.complete(ref, {"name": "name", "value": "x"}, {"style": "z"})
        assert plain.completion.values == ["xa", "xb"]
        assert styled.completion.values == ["xa", "xz"]


async def test_added_and_removed_prompts_are_announced(prompts: Bridge, transport: Transport) -> None:
    add = "mcp_tools.register_prompt({ name = 'new', description = 'x', get = function(ctx) ctx('x') end })"
    async with follow(prompts, transport) as (client, news):
        for lua, there in ((add, True), ("mcp_tools.unregister_prompt('new')", False)):
            news.seen.clear()
            await prompts.nvim.lua(lua)
            await news.wait_for("prompts")
            listed = [prompt.name for prompt in (await client.list_prompts(cache_mode="bypass")).prompts]
            assert ("new" in listed) is there
