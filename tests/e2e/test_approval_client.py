"""The user is asked for approval by the client, or by client and editor at once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client, MCPError, types

from tests.support.bridge import Bridge, Transport, connect
from tests.support.results import error_of, text_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

in_sessions = pytest.mark.parametrize("transport", ["sessions"], indirect=True)
# `risky` asks for approval; `curious` asks for a name as well when it runs; `brief` has 300 ms.
INIT = """
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({ approval = { ask_in = 'client', timeout = 20000 } })
local function tool(name, timeout, run)
  mcp_tools.register({ name = name, description = name, timeout = timeout, run = run,
    annotations = { destructive = true }, preview = function() return 'SECRET of a file' end })
end
tool('curious', 5000, function(ctx)
  return ctx:elicit('Name?', { type = 'object', properties = { n = { type = 'string' } } }).action
end)
tool('brief', 300, function() Seen.late = Seen.late + 1; return 'it ran' end)
local executor = probe.executor()
executor:cancel_where(function() return true end, 'user')
local gateway = probe.gateway()
gateway.grants:reset()
gateway.ledger:reset(gateway:project())
function _G.Open() return #probe.approval.list() end
function _G.Windows() return #vim.api.nvim_list_wins() end
function _G.Answer(choice)
  local approval = probe.approval
  return approval.answer(approval.list()[1].id, choice)
end
"""


class User:
    """The user at the client: gives these answers in order, then `late` once `proceed` is set."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.late = says("once")
        self.asked: list[types.ElicitRequestFormParams] = []
        self.seen = asyncio.Event()
        self.withdrawn = asyncio.Event()
        self.proceed = asyncio.Event()

    async def __call__(self, context: Any, params: Any) -> Any:
        self.asked.append(params)
        self.seen.set()
        if self.answers:
            return self.answers.pop(0)
        try:
            await self.proceed.wait()
        except asyncio.CancelledError:
            self.withdrawn.set()
            raise
        return self.late


def says(choice: str) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"answer": choice})


def choices_of(params: types.ElicitRequestFormParams) -> list[str]:
    """The answers that a form has."""
    return params.requested_schema["properties"]["answer"]["enum"]


async def wait(event: asyncio.Event) -> None:
    async with asyncio.timeout(10):
        await event.wait()


def unique() -> dict[str, str]:
    return {"n": uuid.uuid4().hex}


async def audited(bridge: Bridge, arguments: dict[str, str]) -> tuple[str, str]:
    """Decision on the call with these arguments in the audit log, and who decided."""
    path = bridge.nvim.home.path / "state" / "nvim" / "mcp-tools" / "audit.jsonl"
    text = json.dumps(arguments, separators=(",", ":"))
    wanted = hashlib.sha256(text.encode()).hexdigest()
    async with asyncio.timeout(10):
        while True:
            # The last line may be incomplete.
            for line in path.read_text().split("\n")[:-1] if path.exists() else ():
                entry = json.loads(line)
                if entry.get("args_sha256") == wanted:
                    return entry["decision"], entry["by"]
            await asyncio.sleep(0.01)


async def idle(bridge: Bridge) -> None:
    await bridge.nvim.wait_for("return Open() == 0 and require('mcp-tools.registry').pending_count() == 0")


@pytest_asyncio.fixture(loop_scope="module")
async def asking(tools_bridge: Bridge) -> AsyncIterator[Bridge]:
    """A bridge whose editor has no screen and asks through the client."""
    await tools_bridge.nvim.lua(INIT)
    yield tools_bridge
    await tools_bridge.nvim.lua("mcp_tools.setup({ approval = { ask_in = 'editor' } })")


@pytest_asyncio.fixture(loop_scope="module")
async def both(asking: Bridge) -> AsyncIterator[Bridge]:
    """A bridge whose editor has a screen, and asks there and through the client."""
    await asking.nvim.lua("mcp_tools.setup({ approval = { ask_in = 'both' } })")
    await asking.nvim.attach_ui()
    yield asking
    await asking.nvim.request("nvim_ui_detach")


async def test_a_closed_file_is_read_before_the_client_is_asked(asking: Bridge, transport: Transport) -> None:
    name = f"{uuid.uuid4().hex}.txt"
    path = await asking.nvim.lua(f"""
      mcp_tools.enable('file')
      local path = probe.gateway():project() .. '/{name}'
      vim.fn.writefile({{ 'old' }}, path)
      return path
    """)
    arguments = {"path": path, "edits": [{"search": "old", "replace": "new"}]}
    async with connect(asking, transport, elicitation_callback=User(says("once"))) as client:
        assert ", saved" in text_of(await client.call_tool("nvim_file_edit", arguments))
    assert await asking.nvim.lua(f"return vim.fn.readfile('{path}')") == ["new"]


async def test_the_form_shows_the_call_and_its_answer_decides(asking: Bridge, transport: Transport) -> None:
    user = User(says("once"), says("deny"))
    yes, no = {"path": f"a\u202eb{uuid.uuid4().hex}"}, unique()
    async with connect(asking, transport, elicitation_callback=user) as client:
        assert text_of(await client.call_tool("nvim_risky", yes)) == "it ran"
        assert error_of(await client.call_tool("nvim_risky", no))["code"] == "access_denied"
    assert await audited(asking, no) == ("deny", "client: deny")
    message = user.asked[0].message
    for part in (
        "tool    risky",
        "it is marked as destructive",
        'calls itself "mcp"',
        'path: "a<U+202E>b',
        "source  ",
    ):
        assert part in message
    choices = ["once", "deny"] if transport == "stateless" else ["once", "deny", "session"]
    assert choices_of(user.asked[0]) == choices
    assert user.asked[0].requested_schema["properties"]["answer"]["default"] == "deny"
    assert await asking.nvim.lua("return Seen.late") == 1
    await idle(asking)


@in_sessions
async def test_a_yes_for_the_session_is_for_that_session(asking: Bridge, transport: Transport) -> None:
    user, other = User(says("session")), User(says("deny"))
    async with (
        connect(asking, transport, elicitation_callback=user) as client,
        connect(asking, transport, elicitation_callback=other) as foreign_server,
    ):
        for _ in range(2):
            assert text_of(await client.call_tool("nvim_risky", {})) == "it ran"
        assert error_of(await foreign_server.call_tool("nvim_risky", {}))["code"] == "access_denied"
    assert (len(user.asked), len(other.asked)) == (1, 1)


async def test_any_other_answer_denies_and_is_not_remembered(asking: Bridge, transport: Transport) -> None:
    answers = [
        types.ElicitResult(action="decline"),
        types.ElicitResult(action="cancel"),
        types.ElicitResult(action="accept", content={}),
        *(says(choice) for choice in ("always", "never", "silence", "yes", "")),
    ]
    user = User(*answers, says("once"))
    async with connect(asking, transport, elicitation_callback=user) as client:
        for answer in answers:
            error = error_of(await client.call_tool("nvim_risky", {}))
            assert error["code"] == "access_denied", answer
            assert "setup" not in error["message"]
            assert "approval" not in error["message"]
        assert await asking.nvim.lua("return Seen.late") == 0
        assert text_of(await client.call_tool("nvim_risky", {})) == "it ran"
    ledger_dir = asking.nvim.home.path / "state" / "nvim" / "mcp-tools" / "ledger"
    assert all(json.loads(file.read_text())["entries"] == [] for file in ledger_dir.glob("*.json"))


async def test_clients_without_elicitation_are_denied(asking: Bridge, transport: Transport) -> None:
    arguments = unique()
    async with connect(asking, transport) as client:
        error = error_of(await client.call_tool("nvim_risky", arguments))
    assert error["code"] == "access_denied"
    assert "does not support elicitation" in error["message"]
    assert "Tell the user" in error["message"]
    assert "setup" not in error["message"]
    assert await audited(asking, arguments) == ("deny", "nobody to ask")


async def test_a_preview_is_not_sent_to_the_client(asking: Bridge, transport: Transport) -> None:
    user = User(types.ElicitResult(action="decline"))
    async with connect(asking, transport, elicitation_callback=user) as client:
        await client.call_tool("nvim_brief", {})
    assert "brief" in user.asked[0].message
    assert "SECRET" not in user.asked[0].message


@pytest.mark.slow
async def test_the_tools_timeout_starts_after_the_answer(asking: Bridge, transport: Transport) -> None:
    """Without an answer in `approval.timeout` the call is denied."""
    user = User()
    async with connect(asking, transport, elicitation_callback=user) as client:
        call = asyncio.create_task(client.call_tool("nvim_brief", {}))
        await wait(user.seen)
        begun = "probe.approval.list()[1].call.created_at"
        await asking.nvim.wait_for(f"return vim.uv.hrtime() - {begun} > 400e6")
        user.proceed.set()
        assert text_of(await call) == "it ran"
        await asking.nvim.lua("mcp_tools.setup({ approval = { timeout = 1000 } })")
        slow, arguments = User(), unique()
    async with connect(asking, transport, elicitation_callback=slow) as client:
        call = asyncio.create_task(client.call_tool("nvim_brief", arguments))
        await wait(slow.seen)
        await idle(asking)
        if transport == "stateless":
            slow.proceed.set()
        else:
            await wait(slow.withdrawn)
        assert "nobody answered" in error_of(await call)["message"]
        assert await audited(asking, arguments) == ("deny", "timeout")
    assert await asking.nvim.lua("return Seen.late") == 1


async def test_each_of_two_clients_answers_for_its_own_call(asking: Bridge, transport: Transport) -> None:
    one, two = User(), User()
    async with (
        connect(asking, transport, elicitation_callback=one) as first,
        connect(asking, transport, elicitation_callback=two) as second,
    ):
        allowed = asyncio.create_task(first.call_tool("nvim_risky", {"n": 1}))
        denied = asyncio.create_task(second.call_tool("nvim_risky", {"n": 2}))
        await asyncio.gather(wait(one.seen), wait(two.seen))
        assert "n: 1" in one.asked[0].message
        assert "n: 2" in two.asked[0].message
        one.proceed.set()
        assert text_of(await allowed) == "it ran"
        assert not denied.done()
        two.late = says("deny")
        two.proceed.set()
        assert error_of(await denied)["code"] == "access_denied"
    assert await asking.nvim.lua("return Seen.late") == 1


@pytest.mark.slow
async def test_an_approved_tool_may_block_the_editor(asking: Bridge) -> None:
    await asking.nvim.lua(
        "mcp_tools.setup({ approval = { timeout = 1000 } });"
        "mcp_tools.register({ name = 'heavy', description = 'heavy', annotations = { destructive = true },"
        "execute = function(ctx) vim.fn.system('sleep 4') ctx('it ran') end })"
    )
    async with connect(asking, "sessions", elicitation_callback=User(says("once"))) as client:
        assert text_of(await client.call_tool("nvim_heavy", {})) == "it ran"


@in_sessions
@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_a_client_leaves_while_asked(asking: Bridge, transport: Transport, how: str) -> None:
    user = User()
    async with connect(asking, transport, elicitation_callback=user) as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await wait(user.seen)
        if how == "cancel":
            call.cancel()
            await idle(asking)
    await idle(asking)
    await asyncio.gather(call, return_exceptions=True)
    assert await asking.nvim.lua("return Seen.late") == 0


async def test_a_cancelled_call_ignores_a_late_yes(asking: Bridge, transport: Transport) -> None:
    user = User()
    async with connect(asking, transport, elicitation_callback=user) as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await wait(user.seen)
        await asking.nvim.lua("probe.approval.list()[1].call:cancel('user')")
        user.proceed.set()
        assert error_of(await call)["code"] == "cancelled"
    assert await asking.nvim.lua("return Seen.late") == 0
    await idle(asking)


async def attempt(client: Client, **options: Any) -> Any:
    """One attempt of a call without a session."""
    return await client.session.call_tool("nvim_risky", {}, allow_input_required=True, **options)


async def test_only_an_answer_to_the_current_question_counts(asking: Bridge) -> None:
    async with connect(asking, "stateless", elicitation_callback=User()) as client:
        first = await attempt(client, input_responses={"approval": says("once"), "answer": says("once")})
        (key,) = first.input_requests
        second = await attempt(client, input_responses={key: says("once")})
        (other,) = second.input_requests
        assert key != other
        again = await attempt(client, request_state=second.request_state, input_responses={key: says("once")})
        assert list(again.input_requests) == [other]
        answer, forged = {key: says("once")}, first.request_state[:-4] + "AAAA"
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await attempt(client, request_state=forged, input_responses=answer)
        assert await asking.nvim.lua("return Seen.late") == 0
        results = await asyncio.gather(
            *(attempt(client, request_state=first.request_state, input_responses=answer) for _ in range(3))
        )
        assert [text_of(result) for result in results] == ["it ran"] * 3
        assert await asking.nvim.lua("return Seen.late") == 1
        cancelled = {other: types.ElicitResult(action="cancel")}
        denied = await attempt(client, request_state=second.request_state, input_responses=cancelled)
        assert error_of(denied)["code"] == "access_denied"


async def test_an_answer_in_the_editor_withdraws_the_clients_form(both: Bridge, transport: Transport) -> None:
    user, arguments = User(), unique()
    async with connect(both, transport, elicitation_callback=user) as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", arguments))
        await wait(user.seen)
        await both.nvim.wait_for("return Windows() == 2")
        await both.nvim.lua("return Answer('deny')")
        if transport == "stateless":
            user.proceed.set()
        else:
            await wait(user.withdrawn)
        assert error_of(await call)["code"] == "access_denied"
        assert await audited(both, arguments) == ("deny", "user: deny")
        assert await both.nvim.lua("return Seen.late") == 0
        await both.nvim.wait_for("return Windows() == 1")


async def test_an_answer_at_the_client_is_enough(both: Bridge, transport: Transport) -> None:
    user, ahead, after = User(says("once")), unique(), unique()
    async with (
        connect(both, transport) as mute,
        connect(both, transport, elicitation_callback=user) as client,
    ):
        behind = asyncio.create_task(mute.call_tool("nvim_risky", after))
        await both.nvim.wait_for("return Windows() == 2")
        assert text_of(await client.call_tool("nvim_risky", ahead)) == "it ran"
        assert await audited(both, ahead) == ("allow", "client: once")
        assert not behind.done()
        await both.nvim.lua("return Answer('once')")
        assert text_of(await behind) == "it ran"
        assert await audited(both, after) == ("allow", "user: once")
        await both.nvim.wait_for("return Windows() == 1")


@in_sessions
async def test_when_the_client_refuses_to_ask_the_editor_decides(both: Bridge, transport: Transport) -> None:
    refusal = types.ErrorData(code=-1, message="not now")
    user = User(refusal, refusal)
    async with connect(both, transport, elicitation_callback=user) as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await wait(user.seen)
        await both.nvim.wait_for("return #probe.approval.list()[1].askers == 1")
        await both.nvim.lua("return Answer('once')")
        assert text_of(await call) == "it ran"
        await both.nvim.lua("mcp_tools.setup({ approval = { ask_in = 'client' } })")
        assert "not now" in error_of(await client.call_tool("nvim_risky", {}))["message"]
