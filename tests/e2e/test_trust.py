"""Decisions that last, seen by several clients at once; and clients that try to get around them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest
import pytest_asyncio

from tests.support.bridge import ROOT_TOOLS, Bridge, connect
from tests.support.results import error_of, text_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

# As if nothing had been asked, decided or noted yet.
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
probe.approval.MAX_OPEN = 8 -- other tests lower it
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


@pytest_asyncio.fixture(loop_scope="session")
async def bridge(attended_bridge: Bridge) -> Bridge:
    """A bridge whose editor has a screen, and no past."""
    await attended_bridge.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 0")
    await attended_bridge.nvim.lua(RESET)
    await attended_bridge.nvim.wait_for("return Emptied")
    return attended_bridge


def ask(client: Any, **arguments: Any) -> asyncio.Task[Any]:
    """Call the tool that has to be asked for."""
    return asyncio.create_task(client.call_tool("nvim_risky", arguments))


async def open_questions(bridge: Bridge, count: int) -> list[Any]:
    """Wait for so many questions."""
    await bridge.nvim.wait_for(f"return #Open() == {count}", timeout=10_000)
    questions: list[Any] = await bridge.nvim.lua("return Open()")
    return questions


async def audit_lines(bridge: Bridge, count: int) -> list[Any]:
    """The audit log, once it has so many lines."""
    path = bridge.nvim.home.path / "state" / "nvim" / "mcp-tools" / "audit.jsonl"
    async with asyncio.timeout(5):
        while not path.exists() or len(path.read_text().splitlines()) < count:
            await asyncio.sleep(0.01)
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_two_clients(bridge: Bridge) -> None:
    """Each question is its client's, a session's grant is its own; the audit log tells them apart."""
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
        await bridge.nvim.lua("return Answer('session')")
        assert text_of(await first) == "it ran"
        assert text_of(await ask(one, n=3)) == "it ran"
        again = ask(two, n=3)
        await open_questions(bridge, 1)
        await bridge.nvim.lua("return Answer('always')")
        assert text_of(await again) == "it ran"
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


async def test_silence(bridge: Bridge) -> None:
    """After three denials a session can be silenced; others still ask."""
    async with connect(bridge, "sessions") as one, connect(bridge, "sessions") as two:
        for _ in range(3):
            call = ask(one)
            await open_questions(bridge, 1)
            await bridge.nvim.lua("return Answer('deny')")
            assert error_of(await call)["code"] == "access_denied"
        await bridge.nvim.wait_for("return table.concat(Notes):find('McpTools deny session', 1, true)")
        call = ask(one)
        await open_questions(bridge, 1)
        assert await bridge.nvim.lua("return Answer('silence')") == "answered"
        assert error_of(await call)["code"] == "access_denied"
        assert "denied all further questions" in error_of(await ask(one))["message"]
        other = ask(two)
        await open_questions(bridge, 1)
        await bridge.nvim.lua("return Answer('once')")
        assert text_of(await other) == "it ran"
        await bridge.nvim.lua("vim.cmd('McpTools trust unsilence')")
        call = ask(one)
        await open_questions(bridge, 1)
        await bridge.nvim.lua("return Answer('once')")
        assert text_of(await call) == "it ran"


@pytest.mark.slow
async def test_nobody_answers(bridge: Bridge) -> None:
    """A question without an answer is in `:McpTools trust`; `approve` asks again, for one retry."""
    await bridge.nvim.lua("mcp_tools.setup({ approval = { timeout = 1000 } })")
    async with connect(bridge, "sessions") as client:
        assert "nobody answered" in error_of(await ask(client, n=1))["message"]
        await bridge.nvim.wait_for("return table.concat(Notes):find(':McpTools approve', 1, true)")
        await bridge.nvim.lua("vim.cmd('McpTools trust')")
        shown = "\n".join(await bridge.nvim.request("nvim_buf_get_lines", 0, 0, -1, False))
        assert "unanswered  risky" in shown
        assert '{"n":1}' in shown
        assert 'approval = { tools = { risky = "allow" } }' in shown
        await bridge.nvim.lua("vim.cmd('McpTools approve once')")  # the key
        await bridge.nvim.wait_for("return table.concat(Notes):find('no open question', 1, true)")
        await bridge.nvim.lua("vim.cmd('McpTools approve')")
        await bridge.nvim.wait_for("return Open()[1]")
        assert await bridge.nvim.lua("return Answer('once')") == "answered"
    async with connect(bridge, "sessions") as client:
        assert text_of(await ask(client, n=1)) == "it ran"
        assert "nobody answered" in error_of(await ask(client, n=1))["message"]
    by = [line["by"] for line in await audit_lines(bridge, 3)]
    assert by == ["timeout", "user: before", "timeout"]


@pytest.mark.slow
async def test_nobody_answers_and_always_later(bridge: Bridge) -> None:
    """A late "always" applies to the same as in time: the file outside that was named, or the tool."""
    await bridge.nvim.lua("mcp_tools.setup({ approval = { timeout = 1000 } })")
    async with connect(bridge, "sessions") as client:
        assert "nobody answered" in error_of(await ask(client, path="/outside/x"))["message"]
        await bridge.nvim.lua("vim.cmd('McpTools approve')")
        await bridge.nvim.wait_for("return Open()[1]")
        assert await bridge.nvim.lua("return Answer('always')") == "answered"
        assert text_of(await ask(client, path="/outside/x")) == "it ran"
        assert text_of(await ask(client, path="/outside/x")) == "it ran"
        await bridge.nvim.lua("vim.cmd('McpTools trust')")
        shown = "\n".join(await bridge.nvim.request("nvim_buf_get_lines", 0, 0, -1, False))
        assert "always with /outside/x" in shown
        assert "nobody answered" in error_of(await ask(client, path="/outside/y"))["message"]
        assert "nobody answered" in error_of(await ask(client, n=1))["message"]
        await bridge.nvim.lua("probe.gateway().grants:reset()")
        assert "nobody answered" in error_of(await ask(client, n=1))["message"]
        await bridge.nvim.lua("vim.cmd('McpTools approve')")
        await bridge.nvim.wait_for("return Open()[1]")
        assert await bridge.nvim.lua("return Answer('always')") == "answered"
        assert text_of(await ask(client, n=2)) == "it ran"
        assert await bridge.nvim.lua("return #probe.gateway().grants.unanswered") == 0


async def test_events(bridge: Bridge) -> None:
    """Another plugin can ask in its own way: it hears of each question and its end, and answers by id."""
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
        answer = "return { probe.approval.answer(...) }"
        assert await bridge.nvim.lua(answer, event["id"], "perhaps") == [
            False,
            'this question cannot be answered by "perhaps"',
        ]
        assert await bridge.nvim.lua(answer, event["id"], "once") == [True]
        assert text_of(await call) == "it ran"
        assert await bridge.nvim.lua(answer, event["id"], "always") == [
            False,
            "this question is no longer open",
        ]
        call = ask(client)
        await open_questions(bridge, 1)
        call.cancel()
        await open_questions(bridge, 0)
    states = await bridge.nvim.lua("return vim.tbl_map(function(event) return event.state end, Events)")
    assert states[:3] == ["asked", "shown", "allowed"]
    assert states[-1] == "ended"


async def test_the_ninth_is_busy(bridge: Bridge) -> None:
    """Eight questions may be open; one window shows the first; its end shows the next."""
    async with connect(bridge, "sessions") as client:
        calls = []
        for n in range(8):
            calls.append(ask(client, n=n))
            await open_questions(bridge, n + 1)
        assert error_of(await ask(client, n=9))["code"] == "busy"
        assert await bridge.nvim.lua("return #vim.api.nvim_list_wins()") == 2
        for call in calls[1:]:
            call.cancel()
        await open_questions(bridge, 1)
        await bridge.nvim.lua("return Answer('once')")
        assert text_of(await calls[0]) == "it ran"
        await bridge.nvim.wait_for("return #vim.api.nvim_list_wins() == 1")
        assert await bridge.nvim.lua("return Seen.late") == 1


async def test_a_tool_of_the_project(bridge: Bridge) -> None:
    """A tool whose file lies in the project asks, whatever it says of itself; one that it calls asks too."""
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


async def test_files_of_others(bridge: Bridge) -> None:
    """Links, `..`, URIs and other writings of a path lead no tool out of the project unasked."""
    home = bridge.nvim.home.path
    (home / "outside").mkdir()
    (home / "cwd" / "folder").symlink_to(home / "outside")
    (home / "cwd" / "new").symlink_to(home / "outside" / "new")
    (home / "cwd" / ".env").write_text("secret")
    (home / "cwd" / "harmless").symlink_to(home / "cwd" / ".env")
    outside = [
        "../outside/a",
        "folder/a",
        "folder/../a",
        "new",
        f"file://{home}/cwd/%2e%2e/outside/a",
        f"/proc/self/root{home}/outside/a",
        "~/a",
        "$HOME/a",
    ]
    denied = [
        ".env",
        "./.ENV",
        "harmless",
        "folder/../cwd/.env",
        "a\x00",
        ".env/",
        f"file://{home}/cwd/%2eenv",
    ]
    async with connect(bridge, "sessions") as client:
        for path in outside:
            call = asyncio.create_task(client.call_tool("nvim_mark", {"path": path}))
            await open_questions(bridge, 1)
            await bridge.nvim.lua("return Answer('deny')")
            assert error_of(await call)["code"] == "access_denied", path
        await bridge.nvim.lua("vim.cmd('McpTools trust reset')")
        for path in denied:
            for arguments in ({"path": path}, {"edits": [{"file": path}]}):
                result = await client.call_tool("nvim_mark", arguments)
                assert error_of(result)["code"] == "access_denied", path
        assert await bridge.nvim.lua("return Seen.late") == 0
        assert text_of(await client.call_tool("nvim_mark", {"path": "new.txt"})) == "ran"


async def test_a_ledger_that_is_not_ours(bridge: Bridge) -> None:
    """What others could have written is not believed: all is asked for until the person begins anew."""
    folder = bridge.nvim.home.path / "state" / "nvim" / "mcp-tools" / "ledger"
    async with connect(bridge, "sessions") as client:
        await bridge.nvim.lua("vim.cmd('McpTools trust all')")
        assert text_of(await ask(client)) == "it ran"
        (ledger,) = folder.glob("*.json")
        assert oct(ledger.stat().st_mode & 0o777) == "0o600"
        ledger.chmod(0o666)
        await bridge.nvim.lua("probe.gateway().ledger.projects = {}")
        call = asyncio.create_task(client.call_tool("nvim_mark", {}))
        await open_questions(bridge, 1)
        await bridge.nvim.lua("return Answer('once')")
        assert text_of(await call) == "ran"
        ledger.unlink()
        await bridge.nvim.lua("vim.cmd('McpTools trust reset')")
        assert text_of(await client.call_tool("nvim_mark", {})) == "ran"
