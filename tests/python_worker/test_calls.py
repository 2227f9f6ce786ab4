"""Tools written in Python, called over MCP and from Lua: arguments, results, errors, progress."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from mcp import types

from tests.support.bridge import Bridge, connect
from tests.support.python_worker import AT_WORK, Way, caller, worker_status
from tests.support.results import eventually, text_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

BUFFER_TEXT = """
local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')
vim.cmd('bwipeout!')
return text
"""


async def test_a_python_tool_is_listed_with_its_schemas_and_annotations(shared: Bridge) -> None:
    async with connect(shared, "sessions") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}

        added = tools["nvim_py_add"]
        assert added.description == "Adds two numbers."
        assert added.input_schema["properties"] == {
            "a": {"type": "integer", "description": "The one."},
            "b": {"type": "integer", "description": "The other", "default": 2},
        }
        assert set(added.output_schema["properties"]) == {"sum", "words"}
        assert added.annotations.read_only_hint is True
        assert "nvim__py_private" not in tools
        result = await client.call_tool("nvim_py_add", {"a": 1})
        assert result.structured_content == {"sum": 3, "words": []}


async def test_arguments_and_results_are_converted(shared: Bridge, way: Way) -> None:
    async with caller(shared, way) as tools:
        assert (await tools.call("py_add", a=1, b=4)).value == {"sum": 5, "words": []}
        typed = await tools.call("py_types", color="red", points=[{"x": 1}], by_name={}, ratio=2)
        assert typed.value == {"color": "RED", "points": ["Point"], "by_name": "dict", "ratio": "float"}
        for given in ({"a": [1, 2.5, "é", True]}, [{}], "text", 12):
            assert (await tools.call("py_echo", value=given)).value == given
        values = {"text": "hällo", "number": 1.5, "empty_dict": {}, "point": {"x": 1, "y": 2}, "enum": "red"}
        for kind, expected in values.items():
            assert (await tools.call("py_value", kind=kind)).value == expected, kind
        nested = (await tools.call("py_value", kind="nested")).value
        assert nested["points"] == [{"x": 1, "y": 0}]
        assert nested["path"] == "a"


async def test_content_blocks_and_whole_results_arrive(shared: Bridge) -> None:
    async with connect(shared, "sessions") as client:
        blocks = (await client.call_tool("nvim_py_value", {"kind": "blocks"})).content
        result = await client.call_tool("nvim_py_value", {"kind": "result"})

        assert [block.type for block in blocks] == ["text", "image", "audio", "resource", "resource_link"]
        image = blocks[1]
        assert isinstance(image, types.ImageContent)
        assert base64.b64decode(image.data) == b"\0\1"
        assert (text_of(result), result.is_error) == ("no", True)
        assert result.meta["x/y"] == 1
        assert (await client.call_tool("nvim_py_value", {"kind": "none"})).content == []
        assert text_of(await client.call_tool("nvim_py_value", {"kind": "huge"})) == f'{{"n":[{2**60}]}}'


async def test_an_invalid_result_is_an_error_with_its_path(shared: Bridge, way: Way) -> None:
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


async def test_invalid_arguments_are_refused_by_the_editor(shared: Bridge, way: Way) -> None:
    async with caller(shared, way) as tools:
        for args in ({}, {"a": "x"}, {"a": 1, "unknown": 2}):
            assert (await tools.call("py_add", **args)).fault["code"] == "validation_error"


async def test_an_exception_becomes_an_error_and_its_traceback_is_logged(shared: Bridge, way: Way) -> None:
    async with caller(shared, way) as tools:
        for how, code, message in (
            ("lines", "execution_error", "Tool execution error: ValueError: first"),
            ("tool", "not_found", "no luck"),
            ("exit", "execution_error", "Tool execution error: SystemExit: 3"),
        ):
            assert (await tools.call("py_fail", how=how)).error == {"code": code, "message": message}
        assert (await tools.call("py_add", a=1)).value["sum"] == 3
    text = await shared.nvim.lua("return table.concat(probe.log.lines(200), '\\n')")
    assert "Traceback" in text
    assert "in py_fail" in text


async def test_a_call_by_hand_shows_the_traceback_of_the_tool(shared: Bridge) -> None:
    await shared.nvim.lua('probe.command.run({ args = \'call py_fail {"how": "lines"}\' })')
    text = await shared.nvim.wait_for("""
      local buffer = vim.fn.bufnr('^mcp-tools://call py_fail$')
      local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\\n')
      return text:find('Traceback', 1, true) and text
    """)
    assert 'samples.py", line' in text
    assert "python_tools/worker/" not in text
    await shared.nvim.lua("vim.cmd('silent! only | bwipeout!')")


async def test_an_exception_without_a_valid_message_ends_its_call(shared: Bridge, way: Way) -> None:
    async with caller(shared, way) as tools:
        for how, code, message in (
            ("mute", "execution_error", "Tool execution error: MuteError"),
            ("bad_text", "tool_error", "bad ?"),
            ("number", "tool_error", "5"),
        ):
            assert (await tools.call("py_fail", how=how)).error == {"code": code, "message": message}
        error = (await tools.call("py_fail", how="endless")).fault
        assert "characters left out" in error["message"]
        assert len(error["message"]) < 40_000


async def test_progress_of_an_async_tool_arrives_in_order(shared: Bridge, way: Way, tmp_path: Path) -> None:
    async with caller(shared, way) as tools:
        call = tools.start("py_steps", steps=3, marker=str(tmp_path / "go"))
        for step in range(3):
            if way == "mcp":
                await eventually(lambda: len(call.progress) > step)  # noqa: B023
            (tmp_path / f"go.{step}").touch()

        assert (await call.task).value == "3 steps"
        if way == "mcp":
            assert call.progress == [1, 2, 3]
        else:
            assert call.progress == sorted(set(call.progress))
            assert call.progress[0] == 1


async def test_tools_run_at_the_same_time(shared: Bridge, way: Way, tmp_path: Path) -> None:
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


async def test_a_cancel_reaches_the_function_with_a_reason(shared: Bridge, way: Way, tmp_path: Path) -> None:
    async with caller(shared, way) as tools:
        for name, path in (("py_block", tmp_path / "file"), ("py_await_forever", tmp_path / "noted")):
            call = tools.start(name, marker=str(path))
            await shared.nvim.wait_for(AT_WORK)
            call.cancel()
            noted = path if name == "py_await_forever" else tmp_path / "file.cancelled"
            await eventually(lambda: noted.exists() and noted.read_text())  # noqa: B023
            assert noted.read_text() == ("client" if way == "mcp" else "user")
            if way == "lua":
                assert (await call.task).fault["code"] == "cancelled"
        assert (await tools.call("py_add", a=1)).value["sum"] == 3


async def test_a_tool_asks_the_user_of_the_client(shared: Bridge) -> None:
    async def accept(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async with caller(shared, "mcp", elicitation_callback=accept) as tools:
        for name in ("py_ask", "py_ask_async"):
            assert (await tools.call(name)).value == {"action": "accept", "content": {"name": "Ada"}}
    async with caller(shared, "lua") as tools:
        for name in ("py_ask", "py_ask_async"):
            assert (await tools.call(name)).fault["code"] == "capability_missing"


async def test_a_tool_runs_lua_in_the_editor(shared: Bridge, way: Way) -> None:
    async with caller(shared, way) as tools:
        assert (await tools.call("py_editor", code="local a, b = ...; return a + b")).value == 42
        assert (await tools.call("py_editor", code="error('no')")).fault["code"] == "execution_error"


async def test_a_python_tool_needs_approval_like_any_other(shared: Bridge, way: Way) -> None:
    async with caller(shared, way) as tools:
        for name in ("py_asks_first", "py_dear"):
            assert (await tools.call(name)).fault["code"] == "access_denied"
        allow = "probe.config.setup({ approval = { tools = { py_asks_first = ... } } })"
        await shared.nvim.lua(allow, "allow")
        assert (await tools.call("py_asks_first")).value == "done"
        await shared.nvim.lua(allow, "ask")


async def test_output_of_a_tool_is_logged(shared: Bridge, way: Way) -> None:
    logged = "return table.concat(probe.log.lines(200), '\\n'):find(..., 1, true)"
    async with caller(shared, way) as tools:
        assert (await tools.call("py_prints")).value == "done"
        for text in ("printed by a tool", "written by a tool"):
            await shared.nvim.wait_for(logged, text)


async def test_a_tool_reads_an_empty_stdin(shared: Bridge, way: Way) -> None:
    async with caller(shared, way) as tools:
        assert (await tools.call("py_reads_input")).value == "nothing"
        assert (await tools.call("py_add", a=1)).value["sum"] == 3


@pytest.mark.slow
async def test_too_much_output_is_omitted_from_the_log(shared: Bridge) -> None:
    log = Path(await shared.nvim.lua("return probe.log.path()"))
    before = log.read_text().count("python: ")
    async with caller(shared, "lua") as tools:
        assert (await tools.call("py_prints_much")).value == "done"
        async with asyncio.timeout(20):  # logged with the next line, a second later
            while "lines omitted" not in log.read_text():
                await tools.call("py_prints")
                await asyncio.sleep(0.05)

    text = log.read_text()
    assert text.count("python: ") - before < 5_000
    assert max(map(len, text.splitlines())) < 10_000


async def test_status_and_health_show_the_worker(shared: Bridge) -> None:
    pid = (await worker_status(shared.nvim))["pid"]
    status = await shared.nvim.lua(f"vim.cmd('McpTools status'); {BUFFER_TEXT}")
    health = await shared.nvim.lua(f"vim.cmd('silent checkhealth mcp-tools'); {BUFFER_TEXT}")

    assert f"ready, process {pid}, calls: 0" in status
    assert f"the worker is running: process {pid}, Python 3." in health
    assert "modules: 1, tools: " in health


async def test_a_tool_gets_no_token_or_address_but_its_call_and_project(shared: Bridge, way: Way) -> None:
    await shared.nvim.lua("vim.cmd.messages('clear')")
    async with caller(shared, way) as tools:
        known = (await tools.call("py_context")).value
        assert known["env"] == []
        assert known["host"] == ("mcp" if way == "mcp" else "nvim")
        assert known["root"] == await shared.nvim.lua("return probe.project.root()")
        assert await shared.nvim.lua("return vim.fn.execute('messages')") == ""
