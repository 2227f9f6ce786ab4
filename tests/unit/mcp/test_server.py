"""MCP methods with an editor in memory: results, pages, lists that fail or change."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from mcp import MCPError

from mcp_tools_nvim.errors import Code, LuaError
from mcp_tools_nvim.mcp.dispatch import Dispatch
from mcp_tools_nvim.mcp.pages import DefinitionList, Definitions, Pages, page
from mcp_tools_nvim.mcp.results import tool_result
from mcp_tools_nvim.values import Kind, Outcome, Scope, Settings, ToolError, View
from mcp_tools_nvim.values import Listing as ListingReply
from tests.support.memory import FailError, MemoryEditor, ToolContext
from tests.support.served import eventually, served

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")


def fail(ctx: ToolContext, arguments: dict[str, Any]) -> None:
    raise FailError("not here", Code.NOT_FOUND)


def test_every_outcome_becomes_a_tool_result() -> None:
    assert tool_result(Outcome("done"))["content"] == []
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    content = {"content": [image], "isError": True, "_meta": {"a": 1}}
    complete = {"resultType": "complete"} | content
    assert tool_result(Outcome("done", "content", json.dumps(content))) == complete
    typed = tool_result(Outcome("done", "json", '{"a":12345678901234567890}', structured=True))
    assert typed["structuredContent"] == {"a": 12345678901234567890}
    assert typed["content"][0]["text"] == '{"a":12345678901234567890}'
    assert "structuredContent" not in tool_result(Outcome("done", "json", "[]"))
    error = ToolError(Code.TIMEOUT, "slow")
    assert tool_result(Outcome("timed_out", error=error))["structuredContent"]["code"] == "timeout"
    bound = tool_result(Outcome("timed_out", error=error, schema_bound=True))
    assert "structuredContent" not in bound
    assert bound["_meta"] == {"mcp-tools.nvim/error": {"code": "timeout", "message": "slow"}}
    assert bound["isError"] is True


def definitions(count: int) -> Definitions:
    names = [f"t{n:05}" for n in range(count)]
    return Definitions(1, [{"name": name} for name in names], names, "")


def test_a_page_has_a_thousand_items_and_its_cursor_survives_changes() -> None:
    assert page(definitions(0), None) == ([], None)
    items, cursor = page(definitions(1000), None)
    assert (len(items), cursor) == (1000, None)
    items, cursor = page(definitions(1001), None)
    assert (len(items), cursor is None) == (1000, False)
    assert page(definitions(1001), cursor) == ([{"name": "t01000"}], None)
    shorter = definitions(1001)
    del shorter.items[0], shorter.names[0]
    assert page(shorter, cursor) == ([{"name": "t01000"}], None)


async def test_a_cursor_leads_to_the_next_page_with_and_without_a_session() -> None:
    async with served() as bridge:
        for n in range(1001):
            bridge.editor.add_tool(f"t{n:05}", fail)
        session = await bridge.initialize()
        first = (await bridge.ask(session, "tools/list"))["result"]
        assert len(first["tools"]) == 1000
        second = (await bridge.ask(session, "tools/list", {"cursor": first["nextCursor"]}))["result"]
        assert [tool["name"] for tool in second["tools"]] == ["nvim_t01000"]
        assert "nextCursor" not in second
        _, answer = await bridge.answer_stateless("tools/list", {"cursor": first["nextCursor"]})
        assert len(answer["result"]["tools"]) == 1


async def test_a_list_is_served_from_the_cache_when_the_editor_does_not_answer() -> None:
    editor = MemoryEditor(Settings())
    editor.add_tool("a", fail)
    listing = DefinitionList(editor, "tools", deadline=0.2)
    editor.silent = True
    with pytest.raises(MCPError) as caught:
        await listing.refresh()
    assert caught.value.error.data == {"code": Code.EDITOR_BLOCKED}
    await listing.ensure()
    editor.recover()
    known = await listing.refresh()
    editor.add_tool("b", fail)
    editor.silent = True
    assert await listing.refresh() is known
    editor.recover()
    assert len((await listing.refresh()).items) == 2
    editor.close()
    assert len((await listing.refresh()).items) == 2
    with pytest.raises(MCPError) as caught:
        await DefinitionList(editor, "resources").refresh()
    assert caught.value.error.data == {"code": Code.EDITOR_GONE}


class Held(MemoryEditor):
    """Its lists fail, or are answered by the test."""

    fault: Exception | None = None

    def list(
        self, kind: Kind, revision: int | None, view: View | None = None
    ) -> asyncio.Future[ListingReply]:
        self.held: asyncio.Future[ListingReply] = asyncio.get_running_loop().create_future()
        if self.fault is not None:
            self.held.set_exception(self.fault)
        return self.held


async def test_a_list_that_fails_in_the_editor_is_an_error_or_served_from_the_cache() -> None:
    editor = Held(Settings())
    editor.fault = LuaError("a fault")
    listing = DefinitionList(editor, "tools")
    with pytest.raises(MCPError, match="the plugin failed inside Neovim") as caught:
        await listing.refresh()
    assert caught.value.error.data == {"code": Code.EXECUTION_ERROR}
    listing.current = known = Definitions(1, [], [], "[]")
    assert await listing.refresh() is known


async def test_a_scoped_list_is_announced_only_when_it_has_changed() -> None:
    """Or when the editor cannot be asked."""
    editor = MemoryEditor(Settings())
    editor.add_tool("lsp_hover", fail)
    listing = DefinitionList(editor, "tools", deadline=0.2, view=View("c", Scope(("lsp",))))
    await listing.refresh()
    for tool, changed in (("dap_step", False), ("lsp_rename", True), (None, False)):
        if tool:
            editor.add_tool(tool, fail)
        listing.change()
        assert await listing.has_changed() is changed
    editor.silent = True
    listing.change()
    assert await listing.has_changed()
    editor.close()


async def test_a_change_during_a_request_makes_the_list_stale() -> None:
    editor = Held(Settings())
    listing = DefinitionList(editor, "tools")
    asked = asyncio.create_task(listing.refresh())
    await eventually(lambda: hasattr(editor, "held"))
    editor.held.set_result(ListingReply(1, "[]"))
    editor.add_tool("late", fail)  # reported before the answer is processed
    await asked
    assert listing.stale
    first = editor.held
    asked = asyncio.create_task(listing.ensure())
    await eventually(lambda: editor.held is not first)
    editor.held.set_result(ListingReply(2, "[]"))
    await asked
    assert not listing.stale


@pytest.mark.parametrize(
    ("token", "repeated"),
    [("t" * 1024, True), ("t" * 1025, False), (2**64, True), (2**1024, False)],
    ids=["text", "long text", "number", "long number"],
)
async def test_a_progress_token_that_is_too_long_gets_no_progress(token: str | int, repeated: bool) -> None:
    pushed: list[bytes] = []
    dispatch = Dispatch(1, {"_meta": {"progressToken": token}}, lambda data, **_: pushed.append(data))
    dispatch.send_progress(1, 2, None)
    assert len(pushed) == repeated


async def test_invalid_utf_8_is_replaced_in_lists_and_refused_in_results() -> None:
    async with served() as bridge:
        bridge.editor.add_tool("odd", lambda ctx, arguments: "a\udcffb", description="x\udcff")
        session = await bridge.initialize()
        tools = (await bridge.ask(session, "tools/list"))["result"]["tools"]
        assert tools[0]["description"].startswith("x")
        result = await bridge.call(session, "odd")
        assert result["isError"] is True
        assert result["structuredContent"]["code"] == "not_serializable"


async def test_a_page_made_during_a_change_is_not_cached() -> None:
    editor = MemoryEditor(Settings())
    editor.add_resource("test://a", lambda ctx, arguments: "a")
    pages = Pages(editor, "resources", "resources", "uri")
    context: Any = SimpleNamespace(params={}, protocol_version="2025-11-25", request=Dispatch(1, {}))
    before = await pages.listing.refresh()

    async def with_a_change(_: Any) -> dict[str, Any]:
        editor.add_resource("test://b", lambda ctx, arguments: "b")
        after = await pages.listing.refresh()
        return {"resources": after.items}

    first: Any = await pages.cached(context, with_a_change, None)
    assert len(first["resources"]) == 2
    assert before.pages == {}
    editor.close()
