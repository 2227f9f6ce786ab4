"""A person is asked for approval by their client, or by the client and the editor at once."""

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


class Person:
    """Who sits at the client: says these in order, and notes what was asked; then `late`, when told."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.late = says("once")
        self.asked: list[types.ElicitRequestFormParams] = []
        self.seen = asyncio.Event()
        self.withdrawn = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, context: Any, params: Any) -> Any:
        self.asked.append(params)
        self.seen.set()
        if self.answers:
            return self.answers.pop(0)
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.withdrawn.set()
            raise
        return self.late


def says(choice: str) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"answer": choice})


def offered(params: types.ElicitRequestFormParams) -> list[str]:
    """The answers that a form has."""
    enum: list[str] = params.requested_schema["properties"]["answer"]["enum"]
    return enum


async def wait(event: asyncio.Event) -> None:
    async with asyncio.timeout(5):
        await event.wait()


def unlike() -> dict[str, str]:
    """Arguments that no other call has."""
    return {"n": uuid.uuid4().hex}


async def audited(bridge: Bridge, arguments: dict[str, str]) -> tuple[str, str]:
    """What the audit log says was decided on the call with these arguments, and who decided."""
    path = bridge.nvim.home.path / "state" / "nvim" / "mcp-tools" / "audit.jsonl"
    text = json.dumps(arguments, separators=(",", ":"))
    wanted = hashlib.sha256(text.encode()).hexdigest()
    async with asyncio.timeout(5):
        while True:
            # What stands behind the last line break is still being written.
            for line in path.read_text().split("\n")[:-1] if path.exists() else ():
                entry = json.loads(line)
                if entry.get("args_sha256") == wanted:
                    return entry["decision"], entry["by"]
            await asyncio.sleep(0.01)


async def idle(bridge: Bridge) -> None:
    """No question is open and no call runs."""
    await bridge.nvim.wait_for("return Open() == 0 and require('mcp-tools.registry').pending_count() == 0")


@pytest_asyncio.fixture(loop_scope="module")
async def asking(tools_bridge: Bridge) -> AsyncIterator[Bridge]:
    """A bridge whose editor has no screen and asks by the client."""
    await tools_bridge.nvim.lua(INIT)
    yield tools_bridge
    await tools_bridge.nvim.lua("mcp_tools.setup({ approval = { ask_in = 'editor' } })")


@pytest_asyncio.fixture(loop_scope="module")
async def both(asking: Bridge) -> AsyncIterator[Bridge]:
    """A bridge whose editor has a screen, and asks there and by the client."""
    await asking.nvim.lua("mcp_tools.setup({ approval = { ask_in = 'both' } })")
    await asking.nvim.attach_ui()
    yield asking
    await asking.nvim.request("nvim_ui_detach")


async def test_a_file_is_read_first(asking: Bridge, transport: Transport) -> None:
    """A file that nobody has open is read for the question; the client is asked once that is done."""
    name = f"{uuid.uuid4().hex}.txt"
    path = await asking.nvim.lua(f"""
      mcp_tools.enable('file')
      local path = probe.gateway():project() .. '/{name}'
      vim.fn.writefile({{ 'old' }}, path)
      return path
    """)
    arguments = {"path": path, "edits": [{"search": "old", "replace": "new"}]}
    async with connect(asking, transport, elicitation_callback=Person(says("once"))) as client:
        assert ", saved" in text_of(await client.call_tool("nvim_file_edit", arguments))
    assert await asking.nvim.lua(f"return vim.fn.readfile('{path}')") == ["new"]


async def test_the_client_asks(asking: Bridge, transport: Transport) -> None:
    """The form shows what the window would; a yes runs the tool once, and the audit log says who gave it."""
    person = Person(says("once"), says("deny"))
    yes, no = {"path": f"a\u202eb{uuid.uuid4().hex}"}, unlike()
    async with connect(asking, transport, elicitation_callback=person) as client:
        assert text_of(await client.call_tool("nvim_risky", yes)) == "it ran"
        assert error_of(await client.call_tool("nvim_risky", no))["code"] == "access_denied"
    assert await audited(asking, no) == ("deny", "client: deny")

    message = person.asked[0].message
    for part in ("tool    risky", "it can destroy", 'calls itself "mcp"', 'path: "a<U+202E>b', "source  "):
        assert part in message
    choices = ["once", "deny"] if transport == "stateless" else ["once", "deny", "session"]
    assert offered(person.asked[0]) == choices
    assert person.asked[0].requested_schema["properties"]["answer"]["default"] == "deny"
    assert await asking.nvim.lua("return Seen.late") == 1
    await idle(asking)


@pytest.mark.parametrize("transport", ["sessions"], indirect=True)
async def test_a_yes_for_the_session(asking: Bridge, transport: Transport) -> None:
    """It holds for that session alone."""
    person, other = Person(says("session")), Person(says("deny"))
    async with (
        connect(asking, transport, elicitation_callback=person) as client,
        connect(asking, transport, elicitation_callback=other) as foreign_server,
    ):
        for _ in range(2):
            assert text_of(await client.call_tool("nvim_risky", {})) == "it ran"
        assert error_of(await foreign_server.call_tool("nvim_risky", {}))["code"] == "access_denied"
    assert (len(person.asked), len(other.asked)) == (1, 1)


async def test_what_is_no_yes_is_a_no(asking: Bridge, transport: Transport) -> None:
    """Declined, put away, made up: nothing runs, nothing is remembered."""
    answers = [
        types.ElicitResult(action="decline"),
        types.ElicitResult(action="cancel"),
        types.ElicitResult(action="accept", content={}),
        *(says(choice) for choice in ("always", "never", "silence", "yes", "")),
    ]
    person = Person(*answers, says("once"))
    async with connect(asking, transport, elicitation_callback=person) as client:
        for answer in answers:
            error = error_of(await client.call_tool("nvim_risky", {}))
            assert error["code"] == "access_denied", answer
            assert "setup" not in error["message"]
            assert "approval" not in error["message"]
        assert await asking.nvim.lua("return Seen.late") == 0
        assert text_of(await client.call_tool("nvim_risky", {})) == "it ran"
    folder = asking.nvim.home.path / "state" / "nvim" / "mcp-tools" / "ledger"
    assert all(json.loads(file.read_text())["entries"] == [] for file in folder.glob("*.json"))


async def test_clients_that_cannot_ask(asking: Bridge, transport: Transport) -> None:
    """They are denied at once and told that their person can let the next try run, not how."""
    arguments = unlike()
    async with connect(asking, transport) as client:
        error = error_of(await client.call_tool("nvim_risky", arguments))
    assert error["code"] == "access_denied"
    assert "does not support elicitation" in error["message"]
    assert "can still allow the next try" in error["message"]
    assert "setup" not in error["message"]
    assert await audited(asking, arguments) == ("deny", "nobody to ask")


async def test_a_preview_stays_in_the_editor(asking: Bridge, transport: Transport) -> None:
    """What a call would change may be text that the client cannot read."""
    person = Person(types.ElicitResult(action="decline"))
    async with connect(asking, transport, elicitation_callback=person) as client:
        await client.call_tool("nvim_brief", {})
    assert "brief" in person.asked[0].message
    assert "SECRET" not in person.asked[0].message


@pytest.mark.slow
async def test_only_approval_has_a_limit_while_a_person_thinks(asking: Bridge, transport: Transport) -> None:
    """The tool's 300 ms begin with the tool; without an answer in `approval.timeout` it is a no."""
    person = Person()
    async with connect(asking, transport, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("nvim_brief", {}))
        await wait(person.seen)
        begun = "probe.approval.list()[1].call.created_at"
        await asking.nvim.wait_for(f"return vim.uv.hrtime() - {begun} > 400e6")
        person.go_on.set()
        assert text_of(await call) == "it ran"

        await asking.nvim.lua("mcp_tools.setup({ approval = { timeout = 1000 } })")
        slow, arguments = Person(), unlike()
    async with connect(asking, transport, elicitation_callback=slow) as client:
        call = asyncio.create_task(client.call_tool("nvim_brief", arguments))
        await wait(slow.seen)
        await idle(asking)
        if transport == "stateless":
            slow.go_on.set()  # nothing can tell it that its yes comes too late
        else:
            await wait(slow.withdrawn)
        assert "nobody answered" in error_of(await call)["message"]
        assert await audited(asking, arguments) == ("deny", "timeout")
    assert await asking.nvim.lua("return Seen.late") == 1


async def test_two_clients_at_once(asking: Bridge, transport: Transport) -> None:
    """Each is asked for its own call, and its answer counts for that."""
    one, two = Person(), Person()
    async with (
        connect(asking, transport, elicitation_callback=one) as first,
        connect(asking, transport, elicitation_callback=two) as second,
    ):
        allowed = asyncio.create_task(first.call_tool("nvim_risky", {"n": 1}))
        denied = asyncio.create_task(second.call_tool("nvim_risky", {"n": 2}))
        await asyncio.gather(wait(one.seen), wait(two.seen))
        assert "n: 1" in one.asked[0].message
        assert "n: 2" in two.asked[0].message
        one.go_on.set()
        assert text_of(await allowed) == "it ran"
        assert not denied.done()
        two.late = says("deny")
        two.go_on.set()
        assert error_of(await denied)["code"] == "access_denied"
    assert await asking.nvim.lua("return Seen.late") == 1


@pytest.mark.slow
async def test_an_allowed_tool_that_holds_up_the_editor(asking: Bridge) -> None:
    """From the yes on its own time counts, though Neovim cannot even answer who brought the yes."""
    await asking.nvim.lua(
        "mcp_tools.setup({ approval = { timeout = 1000 } });"
        "mcp_tools.register({ name = 'heavy', description = 'heavy', annotations = { destructive = true },"
        "execute = function(ctx) vim.fn.system('sleep 4') ctx('it ran') end })"
    )
    async with connect(asking, "sessions", elicitation_callback=Person(says("once"))) as client:
        assert text_of(await client.call_tool("nvim_heavy", {})) == "it ran"


@pytest.mark.parametrize("transport", ["sessions"], indirect=True)
@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_a_client_that_goes_while_asked(asking: Bridge, transport: Transport, how: str) -> None:
    """Its call is cancelled, or refused by what it leaves: nothing runs, no question stays."""
    person = Person()
    async with connect(asking, transport, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await wait(person.seen)
        if how == "cancel":
            call.cancel()
            await idle(asking)
    await idle(asking)
    await asyncio.gather(call, return_exceptions=True)
    assert await asking.nvim.lua("return Seen.late") == 0


async def test_the_person_at_the_editor_cancels(asking: Bridge, transport: Transport) -> None:
    """A call that is being asked for can be called off; a yes that comes after that runs nothing."""
    person = Person()
    async with connect(asking, transport, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await wait(person.seen)
        await asking.nvim.lua("probe.approval.list()[1].call:cancel('user')")
        person.go_on.set()
        assert error_of(await call)["code"] == "cancelled"
    assert await asking.nvim.lua("return Seen.late") == 0
    await idle(asking)


# Without sessions: what a client may do with a state


async def leg(client: Client, **options: Any) -> Any:
    """One leg, by hand."""
    return await client.session.call_tool("nvim_risky", {}, allow_input_required=True, **options)


async def test_no_answer_counts_before_the_question(asking: Bridge) -> None:
    """A yes that comes with the call, for an older question or with a changed state runs nothing."""
    async with connect(asking, "stateless", elicitation_callback=Person()) as client:
        first = await leg(client, input_responses={"approval": says("once"), "answer": says("once")})
        (key,) = first.input_requests
        second = await leg(client, input_responses={key: says("once")})
        (other,) = second.input_requests
        assert key != other
        again = await leg(client, request_state=second.request_state, input_responses={key: says("once")})
        assert list(again.input_requests) == [other]
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await leg(
                client, request_state=first.request_state[:-4] + "AAAA", input_responses={key: says("once")}
            )
        assert await asking.nvim.lua("return Seen.late") == 0
        answer = {key: says("once")}
        results = await asyncio.gather(
            *(leg(client, request_state=first.request_state, input_responses=answer) for _ in range(3))
        )
        assert [text_of(result) for result in results] == ["it ran"] * 3
        assert await asking.nvim.lua("return Seen.late") == 1
        denied = await leg(
            client,
            request_state=second.request_state,
            input_responses={other: types.ElicitResult(action="cancel")},
        )
        assert error_of(denied)["code"] == "access_denied"


# In both places


async def test_the_editor_answers_first(both: Bridge, transport: Transport) -> None:
    """The client's form is taken back; where that is not possible its late answer changes nothing."""
    person, arguments = Person(), unlike()
    async with connect(both, transport, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", arguments))
        await wait(person.seen)
        await both.nvim.wait_for("return Windows() == 2")
        await both.nvim.lua("return Answer('deny')")
        if transport == "stateless":
            person.go_on.set()
        else:
            await wait(person.withdrawn)
        assert error_of(await call)["code"] == "access_denied"
        assert await audited(both, arguments) == ("deny", "user: deny")
        assert await both.nvim.lua("return Seen.late") == 0
        await both.nvim.wait_for("return Windows() == 1")


async def test_the_client_answers_first(both: Bridge, transport: Transport) -> None:
    """Its question goes from the queue; the one on screen, of another client, stays."""
    person, ahead, after = Person(says("once")), unlike(), unlike()
    async with (
        connect(both, transport) as mute,
        connect(both, transport, elicitation_callback=person) as client,
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


@pytest.mark.parametrize("transport", ["sessions"], indirect=True)
async def test_a_client_that_refuses_to_ask(both: Bridge, transport: Transport) -> None:
    """The editor goes on alone; with nobody left it is a no."""
    refusal = types.ErrorData(code=-1, message="not now")
    person = Person(refusal, refusal)
    async with connect(both, transport, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("nvim_risky", {}))
        await wait(person.seen)
        await both.nvim.wait_for("return #probe.approval.list()[1].askers == 1")
        await both.nvim.lua("return Answer('once')")
        assert text_of(await call) == "it ran"
        await both.nvim.lua("mcp_tools.setup({ approval = { ask_in = 'client' } })")
        assert "not now" in error_of(await client.call_tool("nvim_risky", {}))["message"]
