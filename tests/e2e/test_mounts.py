"""Mounted servers: their tools, resources and prompts are exposed and work."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from mcp import MCPError, types

from tests.support import mounts
from tests.support.bridge import Bridge, connect
from tests.support.mounts import Journal
from tests.support.news import follow
from tests.support.results import error_of, eventually, text_of
from tests.support.shared import Keep

pytestmark = pytest.mark.asyncio(loop_scope="session")

CALL = """
local name, args = ...
_G.Outcome = nil
_G.Handle = mcp_tools.call(name, args, function(result, err) _G.Outcome = { result = result, err = err } end)
"""


class Mounted(NamedTuple):
    bridge: Bridge
    journal: Journal


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def mounted(nvim_version: str, keep: Keep) -> AsyncIterator[Mounted]:
    """The Python SDK's server, which may use elicitation and sampling."""
    bridge = await keep(nvim_version, setup="{ approval = { default = 'allow' } }")
    with tempfile.TemporaryDirectory() as directory:
        journal = Journal(Path(directory) / "journal")
        spec = mounts.python(journal.path, allow=["elicitation", "sampling"])
        async with mounts.mounted(bridge, "py", spec):
            yield Mounted(bridge, journal)


async def call(bridge: Bridge, name: str, args: dict[str, Any] | None = None) -> Any:
    await bridge.nvim.lua(CALL, name, args or {})
    return await bridge.nvim.wait_for("return _G.Outcome")


async def test_tools_prompts_and_resources_are_exposed(mounted: Mounted) -> None:
    async with connect(mounted.bridge, "sessions") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        resources = {resource.uri for resource in (await client.list_resources()).resources}
        templates = [
            each.uri_template for each in (await client.list_resource_templates()).resource_templates
        ]
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
    assert {"py__echo", "py__add", "nvim_hold"} <= tools.keys()
    assert tools["py__echo"].annotations == types.ToolAnnotations(read_only_hint=True)
    assert tools["py__add"].output_schema is not None
    assert tools["py__add"].description == "add of py"
    assert "py+test://static" in resources
    assert "py+test://item/{id}" in templates
    assert "py__greet" in prompts


async def test_results_errors_and_progress_arrive_unchanged(mounted: Mounted) -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))

    async with connect(mounted.bridge, "sessions") as client:
        assert text_of(await client.call_tool("py__echo", {"text": "hällo\0"})) == "hällo\0"
        added = await client.call_tool("py__add", {"a": 1})
        assert (added.structured_content, text_of(added)) == ({"sum": 3}, "3")
        image, link, contents = blocks = (await client.call_tool("py__picture")).content
        for block in blocks:
            assert block.annotations == types.Annotations(audience=["user"], priority=0.5)
            assert block.meta == {"a/b": [None, {}, 2**60 + 1]}
        assert isinstance(contents, types.EmbeddedResource)
        assert contents.resource.meta == {"of": "it"}
        assert isinstance(image, types.ImageContent)
        assert image.data == "iVBORyBwaXhlbA=="
        assert isinstance(link, types.ResourceLink)
        assert link.uri == "py+test://static"
        failed = await client.call_tool("py__fail")
        assert (failed.is_error, text_of(failed)) == (True, "on purpose")
        refused = error_of(await client.call_tool("py__refuse"))
        assert refused == {"code": "tool_error", "message": "not today"}
        assert text_of(await client.call_tool("py__count", progress_callback=progress)) == "counted"
        wrong = await client.call_tool("py__add", {"a": "one"})
    assert wrong.is_error
    assert text_of(wrong) == "a: must be an integer"
    assert steps == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
    assert [args for name, args in mounted.journal.of("call") if name == "add"] == [{"a": 1}, {"a": "one"}]


async def test_lua_can_call_its_tools(mounted: Mounted) -> None:
    assert (await call(mounted.bridge, "py__add", {"a": 40}))["result"]["structured"] == {"sum": 42}
    assert (await call(mounted.bridge, "py__refuse"))["err"] == {"code": "tool_error", "message": "not today"}


async def test_resources_and_prompts_are_read_and_completed(mounted: Mounted) -> None:
    async with connect(mounted.bridge, "sessions") as client:
        text, blob = (await client.read_resource("py+test://item/5")).contents
        with pytest.raises(MCPError) as missing:
            await client.read_resource("py+test://item/missing")
        prompt = await client.get_prompt("py__greet", {"topic": "world"})
        completed = await client.complete(
            types.PromptReference(name="py__greet"), {"name": "topic", "value": "ap"}
        )
        of_template = await client.complete(
            types.ResourceTemplateReference(uri="py+test://item/{id}"), {"name": "id", "value": "b"}
        )
    assert isinstance(text, types.TextResourceContents)
    assert (text.uri, text.text, text.meta) == ("py+test://item/5", "read test://item/5", {"n": 1})
    assert isinstance(blob, types.BlobResourceContents)
    assert (blob.mime_type, blob.blob) == ("image/png", "iVBORyBwaXhlbA==")
    assert (missing.value.error.code, missing.value.error.message) == (-32002, "Resource not found")
    assert prompt.messages[0].content.text == "Hello, world"  # type: ignore[union-attr]
    assert completed.completion.values == ["apple", "apricot"]
    assert of_template.completion.values == ["banana"]


async def test_a_cancelled_call_is_cancelled_at_the_server(mounted: Mounted) -> None:
    before, calls = len(mounted.journal.of("cancelled")), len(mounted.journal.of("call"))
    async with connect(mounted.bridge, "sessions") as client:
        held = asyncio.create_task(client.call_tool("py__hold"))
        await eventually(lambda: len(mounted.journal.of("call")) == calls + 1)
        held.cancel()
        await eventually(lambda: len(mounted.journal.of("cancelled")) == before + 1)
        assert text_of(await client.call_tool("py__echo", {"text": "on"})) == "on"
    await mounted.bridge.nvim.lua(CALL, "py__hold", {})
    await eventually(lambda: len(mounted.journal.of("call")) == calls + 3)
    await mounted.bridge.nvim.lua("_G.Handle:cancel()")
    await eventually(lambda: len(mounted.journal.of("cancelled")) == before + 2)
    assert (await mounted.bridge.nvim.lua("return _G.Outcome"))["err"]["code"] == "cancelled"


async def test_the_client_that_called_answers_its_questions(mounted: Mounted) -> None:
    async def elicit(_: Any, params: Any) -> types.ElicitResult:
        assert params.message == "Who are you?"
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def sample(_: Any, __: Any) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text="hello")
        return types.CreateMessageResult(role="assistant", content=text, model="m")

    for transport in ("sessions", "stateless"):
        async with connect(
            mounted.bridge, transport, elicitation_callback=elicit, sampling_callback=sample
        ) as client:
            assert text_of(await client.call_tool("py__ask")) == 'accept {"name": "Ada"}'
            assert text_of(await client.call_tool("py__sample")) == "hello"
    async with connect(mounted.bridge, "sessions") as client:
        refused = error_of(await client.call_tool("py__ask"))
    assert "does not support what the tool needs" in refused["message"]


async def test_without_allow_it_cannot_ask(mounted: Mounted, tmp_path: Path) -> None:
    """And two mounts of one server work side by side."""

    async def elicit(_: Any, __: Any) -> types.ElicitResult:
        raise AssertionError("the client must not be asked")

    async with (
        mounts.mounted(mounted.bridge, "other", mounts.python(tmp_path / "journal")),
        connect(mounted.bridge, "sessions", elicitation_callback=elicit) as client,
    ):
        refused = error_of(await client.call_tool("other__ask"))
        assert text_of(await client.call_tool("py__echo", {"text": "both"})) == "both"
        assert (await client.read_resource("other+test://static")).contents[0].uri == "other+test://static"
    assert (refused["code"], refused["message"]) == ("tool_error", "Elicitation not supported")


async def test_its_read_only_hint_is_not_trusted(mounted: Mounted) -> None:
    lua = mounted.bridge.nvim.lua
    await lua("mcp_tools.setup({ approval = { default = 'deny', tools = { py__add = 'allow' } } })")
    try:
        denied = (await call(mounted.bridge, "py__echo", {"text": "x"}))["err"]
        allowed = await call(mounted.bridge, "py__add", {"a": 1})
    finally:
        await lua("mcp_tools.setup({ approval = { default = 'allow' } })")
    assert denied["code"] == "access_denied"
    assert allowed["result"]["structured"] == {"sum": 3}
    async with connect(mounted.bridge, "sessions", "?readonly") as client:
        assert [tool.name for tool in (await client.list_tools()).tools if tool.name.startswith("py__")] == []
    async with connect(mounted.bridge, "sessions", "?tools=py") as client:
        assert {tool.name[:4] for tool in (await client.list_tools()).tools} == {"py__"}


async def test_a_client_learns_that_a_resource_needs_approval(mounted: Mounted) -> None:
    """A rule that denies looks as if the resource did not exist."""
    lua = mounted.bridge.nvim.lua
    messages = {}
    try:
        async with connect(mounted.bridge, "sessions") as client:
            for default in ("ask", "deny"):
                await lua("mcp_tools.setup({ approval = { default = ... } })", default)
                with pytest.raises(MCPError) as refused:
                    await client.read_resource("py+test://static")
                messages[default] = refused.value.error.message
    finally:
        await lua("mcp_tools.setup({ approval = { default = 'allow' } })")
    assert "it needs approval" in messages["ask"]
    assert messages["deny"] == "Resource not found"


async def test_a_sensitive_file_argument_never_reaches_it(mounted: Mounted) -> None:
    denied = (await call(mounted.bridge, "py__read", {"path": ".env"}))["err"]
    assert denied["code"] == "access_denied"
    assert "read" not in [name for name, _ in mounted.journal.of("call")]


@pytest.mark.slow
async def test_its_tools_have_the_timeout_of_the_mount(mounted: Mounted, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    async with mounts.mounted(mounted.bridge, "slow", mounts.python(journal.path, timeout=700)):
        late = (await call(mounted.bridge, "slow__hold"))["err"]
        assert late["code"] == "timeout"
        await eventually(lambda: journal.of("cancelled") == [[]])


async def test_too_large_results_are_an_error(mounted: Mounted) -> None:
    async with connect(mounted.bridge, "sessions") as client:
        for size in (11_000_000, 24_000_000):
            assert error_of(await client.call_tool("py__large", {"bytes": size}))["code"] == "too_large"
        assert text_of(await client.call_tool("py__echo", {"text": "still here"})) == "still here"


async def test_clients_are_notified_of_new_tools(mounted: Mounted) -> None:
    async with follow(mounted.bridge, "sessions") as (client, news):
        await client.list_tools()
        await client.call_tool("py__grow")
        await news.wait_for("tools")
        assert "py__grown" in {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}


async def test_resource_subscriptions_are_forwarded(mounted: Mounted) -> None:
    uri = "py+test://static"
    async with follow(mounted.bridge, "sessions", [uri]) as (client, news):
        await eventually(lambda: ["test://static"] in mounted.journal.of("subscribe"))
        await client.call_tool("py__touch")
        await news.wait_for(uri)
    await eventually(lambda: ["test://static"] in mounted.journal.of("unsubscribe"))


@pytest.mark.slow
async def test_a_call_ends_when_its_mount_is_removed(mounted: Mounted, tmp_path: Path) -> None:
    status = await mounts.mount(mounted.bridge, "gone", mounts.python(tmp_path / "journal"))
    await mounted.bridge.nvim.lua(CALL, "gone__hold", {})
    await eventually(lambda: Journal(tmp_path / "journal").of("call") == [["hold", {}]])
    await mounts.unmount(mounted.bridge, "gone")
    outcome = await mounted.bridge.nvim.wait_for("return _G.Outcome")
    assert outcome["err"]["code"] == "execution_error"
    assert "mount 'gone' was " in outcome["err"]["message"]
    await eventually(lambda: not mounts.group(status["pid"]))
    unknown = (await call(mounted.bridge, "gone__hold"))["err"]
    assert unknown["code"] == "unknown_tool"
