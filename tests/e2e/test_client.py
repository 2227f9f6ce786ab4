"""Tools called from Python: every outcome, with and without an event loop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

import pytest

from mcp_tools_nvim.api import AsyncClient, Client, call_tool, call_tool_async
from tests.support.nvim import Nvim, Spawn
from tests.support.programs import editor, output_of, script


@pytest.fixture
async def nvim(spawn_nvim: Spawn) -> Nvim:
    return await editor(spawn_nvim, "{ approval = { tools = { mark = 'deny' } } }")


async def both(nvim: Nvim, name: str, **arguments: Any) -> dict[str, Any]:
    """The result of a call in a coroutine, which must equal that in a thread without an event loop."""
    first = await call_tool_async(name, arguments, socket=str(nvim.socket))
    assert await asyncio.to_thread(call_tool, name, arguments, socket=str(nvim.socket)) == first
    return first


def text(value: str) -> dict[str, Any]:
    return {"ok": True, "text": value, "structured": None, "content": [{"type": "text", "text": value}]}


async def test_results_have_text_structure_and_content(nvim: Nvim) -> None:
    assert await both(nvim, "echo", value="hé") == text("hé")
    assert await both(nvim, "nvim_later", value="x") == text("x")
    data = {"a": [1, 2.5, None, {}], "b": "é"}
    result = await both(nvim, "echo", value=data)
    assert (result["ok"], result["structured"]) == (True, data)
    assert result["content"][0]["text"] == result["text"]
    assert await both(nvim, "value", kind="nil") == text("") | {"content": []}
    result = await both(nvim, "value", kind="content")
    assert result["text"] == "é"
    assert [block["type"] for block in result["content"]][1:3] == ["image", "audio"]
    assert (await both(nvim, "promised"))["structured"] == {"n": 5}


async def test_errors_are_values_with_a_code(nvim: Nvim) -> None:
    async def code(name: str, **arguments: Any) -> str:
        result = await both(nvim, name, **arguments)
        assert result["ok"] is False
        assert result["error"]["message"]
        return str(result["error"]["code"])

    codes = [await code("fail", how=how) for how in ("it broke", "object", "throw")]
    assert codes == ["tool_error", "stale", "execution_error"]
    assert await code("promised", ok=False) == "invalid_output"
    assert await code("promised", fail=True) == "not_found"
    assert await code("value", kind="bytes") == "not_serializable"
    assert await code("value", kind="result") == "tool_error"
    assert (await code("nowhere"), await code("mark")) == ("unknown_tool", "access_denied")
    assert await nvim.lua("return Seen.late") == 0
    assert await code("echo", value=2**60) == "validation_error"
    result = await both(nvim, "fail")
    assert result["error"]["code"] == "validation_error"
    assert result["error"]["errors"][0]["field"] == "how"


async def test_large_results_and_deep_arguments_arrive_complete(nvim: Nvim) -> None:
    assert len((await both(nvim, "sized", bytes=1 << 20))["text"]) == 1 << 20
    deep: Any = "end"
    for level in range(50):
        deep = {"in": deep} if level % 2 else [deep]
    assert (await both(nvim, "echo", value=deep))["structured"] == deep


async def test_the_shorter_timeout_ends_the_tool(nvim: Nvim) -> None:
    socket = str(nvim.socket)
    for name, timeout in (("hold", 50), ("short", 60_000), ("short", 0)):
        result = call_tool(name, socket=socket, timeout=timeout)
        assert result["error"]["code"] == "timeout"
    assert await nvim.lua("return Seen.cancelled") == ["timeout"] * 3


async def test_cancelling_a_task_cancels_the_tool(nvim: Nvim) -> None:
    async with AsyncClient(str(nvim.socket)) as client:
        task = asyncio.create_task(client.call_tool("hold"))
        await nvim.wait_for("return Seen.running == 1")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await nvim.wait_for("return Seen.cancelled[1] == 'client'")
        assert await client.call_tool("echo", value="on") == text("on")
    task = asyncio.create_task(call_tool_async("hold", socket=str(nvim.socket)))  # with its own connection
    await nvim.wait_for("return Seen.running == 1")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await nvim.wait_for("return #Seen.cancelled == 2 and channels() == 1")


async def test_ctrl_c_cancels_the_tool_and_ends_the_script(nvim: Nvim) -> None:
    process = await script("call_tool('hold')", nvim, NVIM=str(nvim.socket))
    await nvim.wait_for("return Seen.running == 1", timeout=10_000)
    process.send_signal(signal.SIGINT)
    assert await output_of(process) == "KeyboardInterrupt"
    await nvim.wait_for("return #Seen.cancelled == 1")


async def test_concurrent_calls_of_a_client_share_one_connection(nvim: Nvim) -> None:
    async with AsyncClient(str(nvim.socket)) as client:
        calls = [client.call_tool("later", value=str(n)) for n in range(100)]
        assert [result["text"] for result in await asyncio.gather(*calls)] == [str(n) for n in range(100)]
        assert await nvim.lua("return channels()") == 2
    with Client(str(nvim.socket)) as threads:
        held = asyncio.create_task(asyncio.to_thread(threads.call_tool, "hold"))
        await nvim.wait_for("return Seen.running == 1")
        results = await asyncio.gather(
            *(asyncio.to_thread(threads.call_tool, "later", value=str(n)) for n in range(20))
        )
        assert [result["text"] for result in results] == [str(n) for n in range(20)]
        await nvim.lua("Seen.ctx('let go')")
        assert (await held)["text"] == "let go"


async def test_progress_and_log_arrive_in_the_calling_thread(nvim: Nvim) -> None:
    socket, seen, threads = str(nvim.socket), [], set()

    def received(news: dict[str, Any]) -> None:
        seen.append(news)
        threads.add(threading.current_thread())

    assert call_tool("count", socket=socket, on_progress=received)["text"] == "counted"
    assert seen == [{"done": n, "total": 3, "message": f"step {n}"} for n in (1, 2, 3)]
    assert threads == {threading.current_thread()}
    logged: list[Any] = []
    await call_tool_async("say", socket=socket, on_log=lambda level, data: logged.append((level, data)))
    assert logged == [("info", {"text": "from the tool"})]


async def test_an_exception_in_a_callback_cancels_the_tool_and_is_raised(nvim: Nvim) -> None:
    def received(news: dict[str, Any]) -> None:
        raise LookupError(news["message"])

    with pytest.raises(LookupError, match="step 1"):
        call_tool("count", {"steps": 1000}, socket=str(nvim.socket), on_progress=received)
    with pytest.raises(LookupError, match="step 1"):
        await call_tool_async("count", {"steps": 1000}, socket=str(nvim.socket), on_progress=received)
    await nvim.wait_for("return pending() == 0")


ASKS = """
require('mcp-tools').register({ name = 'who', description = 'who', annotations = { read_only = true },
  run = function(ctx)
    local answer, err = ctx:elicit('Who?', { type = 'object', properties = { name = { type = 'string' } } })
    return err and ctx(nil, err) or answer
  end })
"""


async def test_on_elicit_answers_or_declines(nvim: Nvim) -> None:
    await nvim.lua(ASKS)
    socket, asked = str(nvim.socket), []

    def answer(message: str, schema: dict[str, Any]) -> dict[str, Any]:
        asked.append((message, list(schema["properties"]), threading.current_thread()))
        return {"name": "Ada"}

    async def decline(message: str, schema: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    answered = call_tool("who", socket=socket, on_elicit=answer)["structured"]
    assert answered == {"action": "accept", "content": {"name": "Ada"}}
    assert asked == [("Who?", ["name"], threading.current_thread())]
    result = await call_tool_async("who", socket=socket, on_elicit=decline)
    assert result["structured"] == {"action": "decline"}
    assert call_tool("who", socket=socket)["error"]["code"] == "capability_missing"
    with pytest.raises(TypeError, match="on_elicit"):
        call_tool("who", socket=socket, on_elicit=lambda message, schema: "Ada")
    with pytest.raises(ZeroDivisionError):
        await call_tool_async("who", socket=socket, on_elicit=lambda message, schema: 1 // 0)


async def test_a_result_ends_the_call_while_the_question_is_open(nvim: Nvim) -> None:
    await nvim.lua(
        "require('mcp-tools').register({ name = 'hasty', description = 'hasty', needs_approval = false,"
        " execute = function(ctx) Seen.ctx = ctx; ctx:elicit('?', { type = 'object' }, function() end) end })"
    )
    asked, ended = threading.Event(), threading.Event()

    def answer(message: str, schema: dict[str, Any]) -> None:
        asked.set()
        assert ended.wait(5)

    call = asyncio.create_task(
        asyncio.to_thread(call_tool, "hasty", socket=str(nvim.socket), on_elicit=answer)
    )
    assert await asyncio.to_thread(asked.wait, 5)
    await nvim.lua("Seen.ctx('without it')")
    await nvim.wait_for("return pending() == 0")
    ended.set()
    assert await call == text("without it")


async def test_the_user_is_asked_for_approval_of_a_programs_call(spawn_nvim: Spawn) -> None:
    nvim = await editor(spawn_nvim, "{ ui = { approval = 'select' } }")
    await nvim.attach_ui()
    await nvim.lua(
        "vim.ui.select = function(items, opts, choose)"
        " Prompt = opts.prompt; Yes = function() choose(items[1], 1) end end"
    )
    call = asyncio.create_task(asyncio.to_thread(call_tool, "risky", socket=str(nvim.socket)))
    prompt = await nvim.wait_for("return Prompt")
    assert await nvim.lua("return Seen.late") == 0
    assert "risky" in prompt
    assert "calls itself" in prompt
    await nvim.lua("Yes()")
    assert await call == text("it ran")


async def test_a_program_cannot_approve_its_own_call(spawn_nvim: Spawn) -> None:
    nvim = await editor(spawn_nvim, "{ approval = { ask_in = 'client' } }")
    asked: list[str] = []

    def answer(message: str, schema: dict[str, Any]) -> dict[str, Any]:
        asked.append(message)
        return {"answer": "once"}

    result = call_tool("risky", socket=str(nvim.socket), on_elicit=answer)
    assert result["error"]["code"] == "access_denied"
    assert asked == []
    assert await nvim.lua("return Seen.late") == 0


async def test_arguments_named_like_options_go_into_the_dict(nvim: Nvim) -> None:
    await nvim.lua(
        "require('mcp-tools').register({ name = 'all', description = 'all', needs_approval = false,"
        " input_schema = { type = 'object' }, execute = function(ctx, args) ctx(args) end })"
    )
    arguments = {"timeout": 1, "socket": "s", "name": "n", "self": 2, "on_log": [1, (2, 3)]}
    result = call_tool("all", arguments, socket=str(nvim.socket), more=3, arguments=4)
    assert result["structured"] == arguments | {"on_log": [1, [2, 3]], "more": 3, "arguments": 4}


async def test_clients_leave_no_thread_file_or_channel(nvim: Nvim) -> None:
    socket = str(nvim.socket)
    call_tool("echo", value="first", socket=socket)
    files, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    inside = await nvim.lua("return #vim.fn.readdir('/proc/self/fd')")
    for _ in range(5):
        call_tool("echo", value="x", socket=socket)
        await call_tool_async("echo", value="x", socket=socket)
    call_tool("echo", socket="/nowhere")
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == (files, threads)
    await nvim.wait_for("return channels() == 1")
    # The editor opens its log for a moment.
    await nvim.wait_for("return #vim.fn.readdir('/proc/self/fd') <= ...", inside)
    assert await nvim.lua("return require('mcp-tools').status().attached") is False
    assert await nvim.lua("return next(probe.calls())") is None


async def test_closing_a_client_cancels_its_calls(nvim: Nvim) -> None:
    client = Client(str(nvim.socket))
    held = asyncio.create_task(asyncio.to_thread(client.call_tool, "hold"))
    await nvim.wait_for("return Seen.running == 1")
    await asyncio.to_thread(client.close)
    assert (await held)["error"]["code"] == "cancelled"
    assert await nvim.lua("return Seen.cancelled") == ["disconnected"]
    client.close()
    with pytest.raises(RuntimeError):
        client.call_tool("echo")
