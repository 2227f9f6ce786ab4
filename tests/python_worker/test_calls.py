"""Tools written in Python, called over MCP and from Lua: what goes in, what comes out."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from mcp import types

from tests.support.bridge import Bridge, connect
from tests.support.python_host import AT_WORK, Way, caller, host
from tests.support.results import text_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHOWN = """
local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')
vim.cmd('bwipeout!')
return text
"""


async def test_is_listed_like_any_other(shared: Bridge) -> None:
    """Its name, schemas, annotations come from the function; what is private is not there."""
    async with connect(shared, "sessions") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}

        added = tools["nvim_py_add"]
        assert added.description == "Adds two numbers."
        assert added.input_schema["properties"] == {
            "a": {"type": "integer", "description": "The one."},
            "b": {"type": "integer", "description": "The other", "default": 2},
        }
        assert added.output_schema is not None
        assert set(added.output_schema["properties"]) == {"sum", "words"}
        assert added.annotations is not None
        assert added.annotations.read_only_hint is True
        assert "nvim__py_private" not in tools
        result = await client.call_tool("nvim_py_add", {"a": 1})
        assert result.structured_content == {"sum": 3, "words": []}


async def test_arguments_and_results(shared: Bridge, way: Way) -> None:
    """Values go in as the hints say, and come out as they were."""
    async with caller(shared, way) as tools:
        assert (await tools.call("py_add", a=1, b=4)).value == {"sum": 5, "words": []}
        typed = await tools.call("py_types", color="red", points=[{"x": 1}], by_name={}, ratio=2)
        assert typed.value == {"color": "RED", "points": ["Point"], "by_name": "dict", "ratio": "float"}
        for given in ({"a": [1, 2.5, "é", True]}, [{}], "text", 12):
            assert (await tools.call("py_echo", value=given)).value == given
        expected: dict[str, Any] = {
            "text": "hällo",
            "number": 1.5,
            "empty_dict": {},
            "point": {"x": 1, "y": 2},
            "enum": "red",
        }
        for kind, wanted in expected.items():
            assert (await tools.call("py_value", kind=kind)).value == wanted, kind
        nested = (await tools.call("py_value", kind="nested")).value
        assert nested["points"] == [{"x": 1, "y": 0}]
        assert nested["path"] == "a"


async def test_content(shared: Bridge) -> None:
    """Text, images, audio, resources and whole results arrive as content."""
    async with connect(shared, "sessions") as client:
        blocks = (await client.call_tool("nvim_py_value", {"kind": "blocks"})).content
        result = await client.call_tool("nvim_py_value", {"kind": "result"})

        assert [block.type for block in blocks] == ["text", "image", "audio", "resource", "resource_link"]
        image = blocks[1]
        assert isinstance(image, types.ImageContent)
        assert base64.b64decode(image.data) == b"\0\1"
        assert (text_of(result), result.is_error) == ("no", True)
        assert result.meta is not None
        assert result.meta["x/y"] == 1
        assert (await client.call_tool("nvim_py_value", {"kind": "none"})).content == []
        assert text_of(await client.call_tool("nvim_py_value", {"kind": "huge"})) == f'{{"n":[{2**60}]}}'


async def test_what_cannot_be_sent(shared: Bridge, way: Way) -> None:
    """A result that is no data, too exact or too large is an error that names the place."""
    expected = {
        "set_of_object": ("not_serializable", "result.a[0]: object"),
        "nan": ("not_serializable", "result.x: not a finite number"),
        "bad_text": ("not_serializable", "result: text"),
        "bytes": ("not_serializable", "result.b: bytes"),
        "path_as_image": ("execution_error", "data must be bytes, not "),
        "text_of_object": ("not_serializable", "object cannot be written"),
        "bad_block": ("not_serializable", "content.text: text"),
        "content_and_data": ("not_serializable", "result[0]: content blocks must not be mixed"),
        "result_of_text": ("execution_error", "`content` must consist of"),
        "result_of_list": ("execution_error", "must be dicts"),
        "large": ("too_large", "limits.tool_result"),
    }
    async with caller(shared, way) as tools:
        for kind, (code, words) in expected.items():
            error = (await tools.call("py_value", kind=kind)).fault
            assert error["code"] == code, error
            assert words in error["message"]


async def test_bad_arguments_never_reach_python(shared: Bridge, way: Way) -> None:
    """The editor checks arguments by the schema that the hints gave."""
    async with caller(shared, way) as tools:
        for args in ({}, {"a": "x"}, {"a": 1, "unknown": 2}):
            assert (await tools.call("py_add", **args)).fault["code"] == "validation_error"


async def test_exceptions(shared: Bridge, way: Way) -> None:
    """An exception is an execution_error with its message, the traceback is in the log; ToolError is none."""
    async with caller(shared, way) as tools:
        assert (await tools.call("py_fail", how="lines")).error == {
            "code": "execution_error",
            "message": "Tool execution error: ValueError: first",
        }
        assert (await tools.call("py_fail", how="tool")).error == {"code": "not_found", "message": "no luck"}
        error = (await tools.call("py_fail", how="exit")).error
        assert error == {"code": "execution_error", "message": "Tool execution error: SystemExit: 3"}
        assert (await tools.call("py_add", a=1)).value["sum"] == 3

    log = "return table.concat(probe.log.lines(200), '\\n')"
    text = await shared.nvim.lua(log)
    assert "Traceback" in text
    assert "in py_fail" in text


async def test_traceback_for_its_author(shared: Bridge) -> None:
    """Called by hand, what a tool raises is shown with its file and line, without those of the plugin."""
    await shared.nvim.lua('probe.command.run({ args = \'call py_fail {"how": "lines"}\' })')
    text = ""
    async with asyncio.timeout(10):
        while "Traceback" not in text:
            await asyncio.sleep(0.05)
            name = "vim.fn.bufnr('^mcp-tools://call py_fail$')"
            lines = await shared.nvim.lua(f"return vim.api.nvim_buf_get_lines({name}, 0, -1, false)")
            text = "\n".join(lines)
    assert 'samples.py", line' in text
    assert "python_tools/worker/" not in text
    await shared.nvim.lua("vim.cmd('silent! only | bwipeout!')")


async def test_failures_that_cannot_be_told(shared: Bridge, way: Way) -> None:
    """A call ends although its exception has no text, no clean text, or far too much of it."""
    async with caller(shared, way) as tools:
        assert (await tools.call("py_fail", how="mute")).error == {
            "code": "execution_error",
            "message": "Tool execution error: MuteError",
        }
        said = {"bad_text": "bad ?", "number": "5"}
        for how, message in said.items():
            error = (await tools.call("py_fail", how=how)).error
            assert error == {"code": "tool_error", "message": message}
        error = (await tools.call("py_fail", how="endless")).fault
        assert "characters left out" in error["message"]
        assert len(error["message"]) < 40_000


async def test_progress_of_an_async_tool(shared: Bridge, way: Way, tmp_path: Path) -> None:
    """What an async tool reports arrives in order, before its result."""
    async with caller(shared, way) as tools:
        call = tools.start("py_steps", steps=3, marker=str(tmp_path / "go"))
        for step in range(3):
            if way == "mcp":
                async with asyncio.timeout(10):
                    while len(call.progress) <= step:
                        await asyncio.sleep(0.01)
            (tmp_path / f"go.{step}").touch()

        assert (await call.task).value == "3 steps"
        if way == "mcp":
            assert call.progress == [1, 2, 3]
        else:
            assert call.progress == sorted(set(call.progress))
            assert call.progress[0] == 1


async def test_two_side_by_side(shared: Bridge, way: Way, tmp_path: Path) -> None:
    """While one tool blocks and one computes, others run and answer."""
    async with caller(shared, way) as tools:
        blocked = tools.start("py_block", marker=str(tmp_path / "file"))
        other = tools.start("py_block", marker=str(tmp_path / "other"))
        busy = tools.start("py_cpu", seconds=0.2)

        assert (await tools.call("py_add", a=1)).value["sum"] == 3
        assert (await tools.call("py_steps")).value == "3 steps"
        (tmp_path / "other").touch()
        assert (await other.task).value == "the file is there"
        assert (await busy.task).value == "computed"
        assert not blocked.task.done()
        (tmp_path / "file").touch()
        assert (await blocked.task).value == "the file is there"


async def test_cancel_reaches_a_function(shared: Bridge, way: Way, tmp_path: Path) -> None:
    """A blocking function sees its event set, an async one is cancelled; both know why."""
    async with caller(shared, way) as tools:
        for name, path in (("py_block", tmp_path / "file"), ("py_await_forever", tmp_path / "noted")):
            call = tools.start(name, marker=str(path))
            await shared.nvim.wait_for(AT_WORK)
            call.cancel()
            noted = path if name == "py_await_forever" else tmp_path / "file.cancelled"
            async with asyncio.timeout(10):
                while not noted.exists() or not noted.read_text():
                    await asyncio.sleep(0.01)
            assert noted.read_text() == ("client" if way == "mcp" else "user")
            if way == "lua":
                assert (await call.task).fault["code"] == "cancelled"
        assert (await tools.call("py_add", a=1)).value["sum"] == 3


async def test_asks_the_person(shared: Bridge) -> None:
    """Plain and async functions ask the client's person; a caller that has none is capability_missing."""

    async def person(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async with caller(shared, "mcp", elicitation_callback=person) as tools:
        for name in ("py_ask", "py_ask_async"):
            assert (await tools.call(name)).value == {"action": "accept", "content": {"name": "Ada"}}
    async with caller(shared, "lua") as tools:
        for name in ("py_ask", "py_ask_async"):
            assert (await tools.call(name)).fault["code"] == "capability_missing"


async def test_runs_lua_in_the_editor(shared: Bridge, way: Way) -> None:
    """A tool reads what only the editor knows; what Lua raises is raised in the tool."""
    async with caller(shared, way) as tools:
        assert (await tools.call("py_editor", code="local a, b = ...; return a + b")).value == 42
        assert (await tools.call("py_editor", code="error('no')")).fault["code"] == "execution_error"


async def test_approval_is_that_of_any_tool(shared: Bridge, way: Way) -> None:
    """One that does more than read, or wants to be asked for, runs when the person allows it, else not."""
    async with caller(shared, way) as tools:
        for name in ("py_asks_first", "py_dear"):
            assert (await tools.call(name)).fault["code"] == "access_denied"
        allow = "probe.config.setup({ approval = { tools = { py_asks_first = ... } } })"
        await shared.nvim.lua(allow, "allow")
        assert (await tools.call("py_asks_first")).value == "done"
        await shared.nvim.lua(allow, "ask")


async def test_a_flood_of_news_is_bounded(shared: Bridge, way: Way) -> None:
    """Thousands of reports a second become as many as can be read."""
    async with caller(shared, way) as tools:
        call = tools.start("py_flood", count=20_000)

        assert (await call.task).value == "done"
        assert len(call.progress) < 200


async def test_output_of_a_tool_harms_nothing(shared: Bridge, way: Way) -> None:
    """What a tool prints goes to the log and not into the channel."""
    async with caller(shared, way) as tools:
        assert (await tools.call("py_prints")).value == "done"
        for text in ("printed by a tool", "written by a tool"):
            await shared.nvim.wait_for(
                "return table.concat(probe.log.lines(200), '\\n'):find(..., 1, true)", text
            )


async def test_input_of_a_tool_is_empty(shared: Bridge, way: Way) -> None:
    """What reads stdin, tool or program, gets nothing, and takes nothing of the editor's."""
    async with caller(shared, way) as tools:
        assert (await tools.call("py_reads_input")).value == "nothing"
        assert (await tools.call("py_add", a=1)).value["sum"] == 3


@pytest.mark.slow
async def test_much_output_is_left_out(shared: Bridge) -> None:
    """A tool that prints without end fills neither the log nor the editor's time."""
    log = Path(await shared.nvim.lua("return probe.log.path()"))
    before = log.read_text().count("python: ")
    async with caller(shared, "lua") as tools:
        assert (await tools.call("py_prints_much")).value == "done"
        async with asyncio.timeout(20):  # that is said with the next line, a second later
            while "lines omitted" not in log.read_text():
                await tools.call("py_prints")
                await asyncio.sleep(0.05)

    text = log.read_text()
    assert text.count("python: ") - before < 5_000
    assert max(map(len, text.splitlines())) < 10_000


async def test_status_and_health_show_the_host(shared: Bridge) -> None:
    """What people look at names the process and its Python."""
    pid = (await host(shared.nvim))["pid"]
    status = await shared.nvim.lua(f"vim.cmd('McpTools status'); {SHOWN}")
    health = await shared.nvim.lua(f"vim.cmd('silent checkhealth mcp-tools'); {SHOWN}")

    assert f"ready, process {pid}, calls: 0" in status
    assert f"the worker is running: process {pid}, Python 3." in health
    assert "modules: 1, tools: " in health


async def test_no_secret_in_the_environment(shared: Bridge, way: Way) -> None:
    """A tool gets neither the token nor the address of the editor; it knows its call and the project."""
    await shared.nvim.lua("vim.cmd.messages('clear')")  # denials of other tests were told
    async with caller(shared, way) as tools:
        known = (await tools.call("py_context")).value
        assert known["env"] == []
        assert known["host"] == ("mcp" if way == "mcp" else "nvim")
        assert known["root"] == await shared.nvim.lua("return probe.project.root()")
        assert await shared.nvim.lua("return vim.fn.execute('messages')") == ""
