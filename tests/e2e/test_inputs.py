"""Elicitation, sampling and roots: from Lua to an official client and back, over every transport."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client, MCPError, types

from tests.support.bridge import Bridge, Transport, connect
from tests.support.nvim import ROOT
from tests.support.raw import STATELESS_META, STATELESS_VERSION, Raw
from tests.support.results import error_of, text_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

REGISTER = f"dofile([[{ROOT / 'tests' / 'e2e' / 'inputs.lua'}]])"
EXPIRED = "Invalid or expired requestState"


@pytest_asyncio.fixture(loop_scope="session")
async def asking(common_tools: Bridge) -> AsyncIterator[Bridge]:
    """A bridge whose editor has the tools of tests/e2e/inputs.lua during the test."""
    await common_tools.nvim.lua(REGISTER)
    yield common_tools
    await common_tools.nvim.lua("mcp_tools.unregister_resource('e2e://asking')")


class User:
    """The user at the client: answers in order, and notes the questions."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def elicit(self, context: Any, params: Any) -> Any:
        self.asked.append(params.message)
        return self.answers.pop(0)

    async def sample(self, context: Any, params: Any) -> Any:
        self.asked.append(params.messages[0].content.text)
        content = types.TextContent(type="text", text="Paris")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def roots(self, context: Any) -> Any:
        self.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri="file:///a"), types.Root(uri="file:///b")])

    @property
    def options(self) -> dict[str, Any]:
        asks = {"elicitation_callback": self.elicit, "sampling_callback": self.sample}
        return {**asks, "list_roots_callback": self.roots}


def accept(name: str) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": name})


async def pending(bridge: Bridge) -> int:
    return int(await bridge.nvim.lua("return require('mcp-tools.registry').pending_count()"))


async def test_a_tool_gets_the_users_answer(asking: Bridge, transport: Transport) -> None:
    user = User(accept("Ada"), types.ElicitResult(action="decline"), types.ElicitResult(action="cancel"))
    async with connect(asking, transport, **user.options) as client:
        answers = [json.loads(text_of(await client.call_tool("nvim_who", {}))) for _ in range(3)]
    assert answers[0] == {"action": "accept", "content": {"name": "Ada"}}
    assert [answer["action"] for answer in answers[1:]] == ["decline", "cancel"]
    assert user.asked == ["Who are you?"] * 3


async def test_a_too_large_answer_is_an_error(asking: Bridge, transport: Transport) -> None:
    async def many(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///a")] * 12_000)

    async with connect(asking, transport, **User().options | {"list_roots_callback": many}) as client:
        result = await client.call_tool("nvim_folders", {})
    assert result.is_error
    assert "more than 10000 values" in text_of(result)


async def test_a_tool_asks_several_questions_at_once_or_in_turn(asking: Bridge, transport: Transport) -> None:
    user = User(accept("Ada"), accept("one"), accept("two"))
    async with connect(asking, transport, **user.options) as client:
        assert json.loads(text_of(await client.call_tool("nvim_everything", {}))) == ["Ada", "Paris", 2]
        assert sorted(user.asked) == ["Name?", "Say hello", "roots"]
        assert json.loads(text_of(await client.call_tool("nvim_twice", {}))) == ["one", "two"]
        assert await asking.nvim.lua("return Seen.answers") == 2


async def test_prompts_and_resources_may_ask(asking: Bridge, transport: Transport) -> None:
    user = User(accept("tests"), accept("this one"))
    async with connect(asking, transport, **user.options) as client:
        prompt = await client.get_prompt("asking")
        contents = (await client.read_resource("e2e://asking")).contents
    assert [message.content.text for message in prompt.messages] == ["About tests"]  # type: ignore[union-attr]
    assert [item.text for item in contents] == ["this one"]  # type: ignore[union-attr]


async def test_clients_that_cannot_be_asked_get_an_error(asking: Bridge, transport: Transport) -> None:
    async with connect(asking, transport) as client:
        for tool, capability in (("who", "elicitation"), ("model", "sampling"), ("folders", "roots")):
            if transport == "stateless":
                with pytest.raises(MCPError) as refused:
                    await client.call_tool(f"nvim_{tool}", {})
                assert refused.value.error.code == -32021
                assert refused.value.error.data == {"requiredCapabilities": {capability: {}}}
            else:
                error = error_of(await client.call_tool(f"nvim_{tool}", {}))
                assert error["code"] == "capability_missing"
                assert capability in error["message"]
    async with Raw(asking) as raw:
        message = stateless_call("who")
        status, answer = await raw.send(message, **stateless_headers("who"))
        assert (status, answer["error"]["code"]) == (400, -32021)


@pytest.mark.parametrize("transport", ["sessions", "sse"], indirect=True)
@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_a_client_leaves_while_asked(asking: Bridge, transport: Transport, how: str) -> None:
    asked = asyncio.Event()

    async def never(context: Any, params: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    async with connect(asking, transport, elicitation_callback=never) as client:
        call = asyncio.create_task(client.call_tool("nvim_who", {}))
        await asyncio.wait_for(asked.wait(), 5)
        if how == "cancel":
            call.cancel()
            await asking.nvim.wait_for("return #Seen.cancelled == 1")
    await asking.nvim.wait_for("return #Seen.cancelled + Seen.answers == 1")
    await asyncio.gather(call, return_exceptions=True)
    assert await pending(asking) == 0


# Without sessions


def stateless_headers(tool: str) -> dict[str, Any]:
    head = {"MCP_Protocol_Version": STATELESS_VERSION, "Mcp_Method": "tools/call", "Mcp_Name": f"nvim_{tool}"}
    return {"Mcp_Session_Id": None, **head}


def stateless_call(tool: str) -> dict[str, Any]:
    params = {"name": f"nvim_{tool}", "arguments": {}, "_meta": STATELESS_META}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def attempt(client: Client, tool: str, name: str | None = None, **options: Any) -> Any:
    """One attempt of a call; `name` answers the question."""
    responses: Any = {} if name is None else {"input_responses": {"answer": accept(name)}}
    return await client.session.call_tool(
        f"nvim_{tool}", options.pop("arguments", {}), allow_input_required=True, **responses, **options
    )


async def test_a_request_state_is_bound_to_its_call(asking: Bridge) -> None:
    async with connect(asking, "stateless", **User().options) as client:
        first = await attempt(client, "who")
        assert first.input_requests["answer"].params.message == "Who are you?"
        state = first.request_state
        for tool, options in (
            ("who", {"request_state": state[:-4] + "AAAA"}),
            ("who", {"request_state": "v1.nonsense"}),
            ("who", {"request_state": ""}),
            ("who", {"request_state": state, "arguments": {"x": 1}}),
            ("twice", {"request_state": state}),
        ):
            with pytest.raises(MCPError, match=EXPIRED):
                await attempt(client, tool, "Eve", **options)
        assert await asking.nvim.lua("return Seen.answers") == 0
        assert (
            json.loads(text_of(await attempt(client, "who", "Ada", request_state=state)))["action"]
            == "accept"
        )


async def test_repeated_retries_reach_the_tool_once(asking: Bridge) -> None:
    async with connect(asking, "stateless", **User().options) as client:
        first = await attempt(client, "twice")
        again = await attempt(client, "twice", request_state=first.request_state)
        assert again.input_requests == first.input_requests
        second = await attempt(client, "twice", "one", request_state=first.request_state)
        assert second.input_requests["answer"].params.message == "Name 2?"
        replayed = await attempt(client, "twice", "EVIL", request_state=first.request_state)
        assert replayed.input_requests == second.input_requests
        ends = await asyncio.gather(
            *(attempt(client, "twice", "two", request_state=second.request_state) for _ in range(2)),
            attempt(client, "twice", "EVIL", request_state=first.request_state),
        )
        late = await attempt(client, "twice", "EVIL", request_state=second.request_state)
        for result in (*ends, late):
            assert json.loads(text_of(result)) == ["one", "two"]
        assert await asking.nvim.lua("return Seen.answers") == 2


async def test_a_client_may_reconnect_between_attempts(asking: Bridge) -> None:
    """An attempt whose connection closes ends the call."""
    async with connect(asking, "stateless", **User().options) as client:
        first = await attempt(client, "twice")
    async with connect(asking, "stateless", **User().options) as client:
        second = await attempt(client, "twice", "one", request_state=first.request_state)
        last = asyncio.create_task(attempt(client, "twice", "two", request_state=second.request_state))
        await asking.nvim.wait_for("return Seen.answers == 2")
        last.cancel()
        await asking.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 0")
        result = await attempt(client, "twice", "two", request_state=second.request_state)
        assert error_of(result)["code"] == "cancelled"


async def test_an_answer_may_come_with_the_first_request(asking: Bridge) -> None:
    async with connect(asking, "stateless", **User().options) as client:
        result = await attempt(client, "who", "Ada")
        assert json.loads(text_of(result))["content"] == {"name": "Ada"}


async def test_intermediate_states_arrive_as_progress(asking: Bridge, transport: Transport) -> None:
    seen: list[tuple[str | None, Any]] = []

    async def note(message: Any) -> None:
        if isinstance(message, types.ProgressNotification):
            meta = dict(message.params.meta or {})
            seen.append((message.params.message, meta.get("mcp-tools.nvim/state")))

    async def ignore(done: float, total: float | None, message: str | None) -> None:
        pass

    async with connect(asking, transport, message_handler=note) as client:
        result = await client.call_tool("nvim_stages", {}, progress_callback=ignore)
        assert text_of(result) == "ended"
    assert seen == [("begun", None), ('{"files":2}', {"files": 2}), ("7", 7), ("nearly", None)]
