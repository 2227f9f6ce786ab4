"""Lasting approval decisions, seen by several clients; and attempts to bypass approval."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest
import pytest_asyncio

from tests.support.bridge import ROOT_TOOLS, Bridge, connect
from tests.support.results import error_of, eventually, text_of
from tests.support.shared import Keep

pytestmark = pytest.mark.asyncio(loop_scope="session")

RESET = (
    ROOT_TOOLS
    + """
_G.Events, _G.Notes, _G.Emptied = {}, {}, false
vim.api.nvim_create_autocmd('User', {
  group = vim.api.nvim_create_augroup('test_trust', {}),
  pattern = 'McpToolsApproval',
  callback = function(event) table.insert(Events, event.data) end,
})
vim.notify = function(text) table.insert(Notes, text) end
function _G.Open()
  return vim.tbl_map(function(question)
    return { id = question.id, args = question.args, session = question.call.session }
  end, probe.approval.list())
end
function _G.Answer(choice, n)
  local ok, why = probe.approval.answer(Open()[n or 1].id, choice)
  return ok and 'answered' or why
end
local core, audit = probe.core.get(), probe.audit
mcp_tools.unregister('found')
mcp_tools.setup({ approval = { timeout = 20000 }, ui = { approval = 'float' } })
core.gateway.grants:reset()
core.gateway.ledger:reset(core.gateway:project())
vim.cmd('silent only | enew!')
audit.tail(1, function()
  os.remove(audit.path())
  Events, Notes, Emptied = {}, {}, true
end)
"""
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def attended_bridge(nvim_version: str, keep: Keep) -> Bridge:
    """A bridge whose editor has a screen."""
    bridge = await keep(nvim_version)
    if not await bridge.nvim.request("nvim_list_uis"):
        await bridge.nvim.attach_ui()
    return bridge


@pytest_asyncio.fixture(loop_scope="session")
async def bridge(attended_bridge: Bridge) -> Bridge:
    """The same without decisions, and with an empty audit log."""
    await attended_bridge.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 0")
    await attended_bridge.nvim.lua(RESET)
    await attended_bridge.nvim.wait_for("return Emptied")
    return attended_bridge


def ask(client: Any, **arguments: Any) -> asyncio.Task[Any]:
    """Calls the tool that needs approval."""
    return asyncio.create_task(client.call_tool("nvim_risky", arguments))


async def open_questions(bridge: Bridge, count: int) -> list[Any]:
    await bridge.nvim.wait_for(f"return #Open() == {count}", timeout=10_000)
    return await bridge.nvim.lua("return Open()")


async def answer(bridge: Bridge, choice: str, call: asyncio.Task[Any], result: str = "it ran") -> None:
    """Answers the only question; the call has the result, or was denied."""
    await open_questions(bridge, 1)
    assert await bridge.nvim.lua("return Answer(...)", choice) == "answered"
    if choice in ("deny", "silence"):
        assert error_of(await call)["code"] == "access_denied"
    else:
        assert text_of(await call) == result


async def audit_lines(bridge: Bridge, count: int) -> list[Any]:
    path = bridge.nvim.home.path / "state" / "nvim" / "mcp-tools" / "audit.jsonl"
    await eventually(lambda: path.exists() and len(path.read_text().splitlines()) >= count)
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_questions_and_session_grants_belong_to_one_client(bridge: Bridge) -> None:
    async with connect(bridge, "sessions") as one, connect(bridge, "sessions") as two:
        first = ask(one, n=1)
        await open_questions(bridge, 1)
        second = ask(two, n=2)
        questions = await open_questions(bridge, 2)
        assert [question["args"] for question in questions] == [{"n": 1}, {"n": 2}]
        assert questions[0]["session"] != questions[1]["session"]
        await bridge.nvim.lua("return Answer('deny', 2)")
        assert error_of(await second)["code"] == "access_denied"
        assert not first.done()
        await answer(bridge, "session", first)
        assert text_of(await ask(one, n=3)) == "it ran"
        await answer(bridge, "always", ask(two, n=3))
        async with connect(bridge, "stateless") as three:
            assert text_of(await ask(three, n=4)) == "it ran"

    lines = await audit_lines(bridge, 5)
    assert [(line["decision"], line["by"], line["outcome"]) for line in lines] == [
        ("deny", "user: deny", "failed"),
        ("allow", "user: session", "done"),
        ("allow", "session", "done"),
        ("allow", "user: always", "done"),
        ("allow", "ledger", "done"),
    ]
    assert lines[0]["session"] == lines[3]["session"] != lines[1]["session"] == lines[2]["session"]
    assert "session" not in lines[4]
    assert lines[2]["args_sha256"] == hashlib.sha256(b'{"n":3}').hexdigest()
    assert {line["client"] for line in lines} == {"mcp"}


async def test_a_session_can_be_silenced_after_three_denials(bridge: Bridge) -> None:
    async with connect(bridge, "sessions") as one, connect(bridge, "sessions") as two:
        for _ in range(3):
            await answer(bridge, "deny", ask(one))
        await bridge.nvim.wait_for("return table.concat(Notes):find('McpTools deny session', 1, true)")
        await answer(bridge, "silence", ask(one))
        assert "denied all further questions" in error_of(await ask(one))["message"]
        await answer(bridge, "once", ask(two))
        await bridge.nvim.lua("vim.cmd('McpTools trust unsilence')")
        await answer(bridge, "once", ask(one))


SELECT = """
mcp_tools.setup({ ui = { approval = 'select' } })
_G.Asked = {}
vim.ui.select = function(items, opts, on_choice)
  table.insert(Asked, opts.prompt)
  _G.Choose = function(index) on_choice(items[index], index) end
end
"""


async def test_vim_ui_select_asks_with_a_safe_prompt(bridge: Bridge) -> None:
    """A late yes to a call that was cancelled runs nothing."""
    await bridge.nvim.lua(SELECT)
    async with connect(bridge, "sessions") as client:
        call = ask(client, path="x\x07y")
        prompt = await bridge.nvim.wait_for("return Asked[1]")
        assert all(part in prompt for part in ("risky", "destructive", "calls itself"))
        assert "\x07" not in prompt
        assert await bridge.nvim.lua("return Seen.late") == 0
        await bridge.nvim.lua("Choose(1)")
        assert text_of(await call) == "it ran"
        call = ask(client)
        await bridge.nvim.wait_for("return #Asked == 2")
        await bridge.nvim.lua("Choose(2)")
        assert error_of(await call)["code"] == "access_denied"
        call = ask(client)
        await bridge.nvim.wait_for("return #Asked == 3")
        call.cancel()
        await bridge.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 0")
        await bridge.nvim.lua("Choose(1)")
        assert await bridge.nvim.lua("return Seen.late") == 1


async def test_another_plugin_can_ask_and_answer_by_events(bridge: Bridge) -> None:
    await bridge.nvim.lua("mcp_tools.setup({ ui = { approval = 'event' } })")
    async with connect(bridge, "sessions") as client:
        call = ask(client, path="x", text="a\nb")
        await bridge.nvim.wait_for("return #Events == 2")
        assert await bridge.nvim.lua("return #vim.api.nvim_list_wins()") == 1
        event = (await bridge.nvim.lua("return Events"))[1]
        assert (event["state"], event["tool"], event["client"]["name"]) == ("shown", "risky", "mcp")
        assert event["args"] == {"path": "x", "text": "a\nb"}
        assert event["files"][0].endswith("/x")
        assert event["choices"] == ["once", "deny", "session", "always", "never"]
        await bridge.nvim.lua("Events[2].args.path = '/etc/passwd'")
        decide = "return { probe.approval.answer(...) }"
        assert (await bridge.nvim.lua(decide, event["id"], "perhaps"))[0] is False
        assert await bridge.nvim.lua(decide, event["id"], "once") == [True]
        assert text_of(await call) == "it ran"
        assert (await bridge.nvim.lua(decide, event["id"], "always"))[0] is False, "it is closed"
        call = ask(client)
        await open_questions(bridge, 1)
        call.cancel()
        await open_questions(bridge, 0)
    states = await bridge.nvim.lua("return vim.tbl_map(function(event) return event.state end, Events)")
    assert states[:3] == ["asked", "shown", "allowed"]
    assert states[-1] == "ended"


async def test_the_ninth_open_question_is_busy(bridge: Bridge) -> None:
    async with connect(bridge, "sessions") as client:
        calls = []
        for n in range(8):
            calls.append(ask(client, n=n))
            await open_questions(bridge, n + 1)
        assert error_of(await ask(client, n=9))["code"] == "busy"
        assert await bridge.nvim.lua("return #vim.api.nvim_list_wins()") == 2
        for call in calls[1:]:
            call.cancel()
        await answer(bridge, "once", calls[0])
        await bridge.nvim.wait_for("return #vim.api.nvim_list_wins() == 1")
        assert await bridge.nvim.lua("return Seen.late") == 1


async def test_a_tool_of_the_project_always_asks_and_so_does_one_that_it_calls(bridge: Bridge) -> None:
    source = """
return {
  name = 'found', description = 'Reads.', annotations = { read_only = true }, needs_approval = false,
  run = function() local result, err = require('mcp-tools').call('risky', {}); return result or err.code end,
}
"""
    path = bridge.nvim.home.path / "cwd" / "found.lua"
    path.write_text(source)
    await bridge.nvim.lua("mcp_tools.register(dofile(...))", str(path))
    async with connect(bridge, "sessions") as client:
        call = asyncio.create_task(client.call_tool("nvim_found", {}))
        await open_questions(bridge, 1)
        await bridge.nvim.lua("return Answer('always')")
        await bridge.nvim.wait_for("return #Open() == 1 and Events[#Events].tool == 'risky'")
        await bridge.nvim.lua("return Answer('deny')")
        assert text_of(await call) == "access_denied"
        assert await bridge.nvim.lua("return Seen.late") == 0


async def test_no_notation_of_a_path_leaves_the_project_without_asking(bridge: Bridge) -> None:
    home = bridge.nvim.home.path
    (home / "outside").mkdir()
    (home / "cwd" / "folder").symlink_to(home / "outside")
    (home / "cwd" / "new").symlink_to(home / "outside" / "new")
    (home / "cwd" / ".env").write_text("secret")
    (home / "cwd" / "harmless").symlink_to(home / "cwd" / ".env")
    outside = ["../outside/a", "folder/a", "folder/../a", "new", "~/a", "$HOME/a"]
    outside += [f"file://{home}/cwd/%2e%2e/outside/a", f"/proc/self/root{home}/outside/a"]
    denied = [".env", "./.ENV", "harmless", "folder/../cwd/.env", "a\x00", ".env/"]
    denied += [f"file://{home}/cwd/%2eenv"]
    async with connect(bridge, "sessions") as client:
        for path in outside:
            await answer(bridge, "deny", asyncio.create_task(client.call_tool("nvim_mark", {"path": path})))
        await bridge.nvim.lua("vim.cmd('McpTools trust reset')")
        for path in denied:
            for arguments in ({"path": path}, {"edits": [{"file": path}]}):
                result = await client.call_tool("nvim_mark", arguments)
                assert error_of(result)["code"] == "access_denied", path
        assert await bridge.nvim.lua("return Seen.late") == 0
        assert text_of(await client.call_tool("nvim_mark", {"path": "new.txt"})) == "ran"


async def test_a_ledger_that_others_can_write_is_ignored(bridge: Bridge) -> None:
    directory = bridge.nvim.home.path / "state" / "nvim" / "mcp-tools" / "ledger"
    async with connect(bridge, "sessions") as client:
        await bridge.nvim.lua("vim.cmd('McpTools trust all')")
        assert text_of(await ask(client)) == "it ran"
        (ledger,) = directory.glob("*.json")
        assert oct(ledger.stat().st_mode & 0o777) == "0o600"
        ledger.chmod(0o666)
        await bridge.nvim.lua("probe.gateway().ledger.projects = {}")
        await answer(bridge, "once", asyncio.create_task(client.call_tool("nvim_mark", {})), "ran")
        ledger.unlink()
        await bridge.nvim.lua("vim.cmd('McpTools trust reset')")
        assert text_of(await client.call_tool("nvim_mark", {})) == "ran"
