"""The fast path of `tools/call` gives the same answers as the kernel."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolRequestParams
from mcp_types.methods import validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from mcp_tools_nvim.errors import Code
from mcp_tools_nvim.mcp.fast_path import is_plain_call
from tests.support.memory import FailError, ToolContext
from tests.support.served import Served, served

VERSIONS = (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS)
OBJECT = {"type": "object"}
RESULTS: dict[str, Any] = {
    "text": "a text",
    "empty_text": "",
    "nothing": None,
    "list": [1, "a text"],
    "number": 5,
    "special_text": 'ä€😀 "quoted" \\ \n\t\x00\x7f\u2028 a text {"a": "value"}',
    "object": {"a": [None, 1, 1.5, True, "ü", {}], "b": {"c": None}},
}


def run(runs: list[str], name: str, value: Any, context: ToolContext, arguments: dict[str, Any]) -> Any:
    runs.append(name)
    return value


async def answers(bridge: Served, version: str, params: dict[str, Any]) -> list[bytes]:
    """The answers to a call, and to one with a member that only the kernel ignores."""
    session = await bridge.initialize(version) if version in HANDSHAKE_PROTOCOL_VERSIONS else None
    bodies = []
    for more in ({}, {"unknown": True}):
        bridge._ids = iter([77])
        if session is None:
            response = await bridge.post_stateless("tools/call", params | more)
        else:
            response = await bridge.post(bridge.message("tools/call", params | more), session)
        async with response:
            bodies.append(await response.read())
    bridge._ids = iter(range(1000, 2000))
    return bodies


@pytest.mark.parametrize("version", VERSIONS)
async def test_results_are_the_same_to_the_byte(version: str) -> None:
    runs: list[str] = []
    async with served() as bridge:
        for name, value in RESULTS.items():
            for kind, more in (("plain", {}), ("typed", {"outputSchema": OBJECT})):
                tool = partial(run, runs, name, value)
                bridge.editor.add_tool(f"{name}_{kind}", tool, **more)

        def fail(context: ToolContext, arguments: dict[str, Any]) -> None:
            runs.append("fail")
            raise FailError("not here", Code.NOT_FOUND)

        bridge.editor.add_tool("fail", fail)
        for name in [f"{name}_{kind}" for name in RESULTS for kind in ("plain", "typed")] + ["fail", "none"]:
            fast, slow = await answers(bridge, version, {"name": f"nvim_{name}", "arguments": {"n": 1}})
            assert json.loads(fast)["id"] == 77
            assert fast == slow, name
        big, slow = await answers(bridge, version, {"name": "nvim_text_plain", "arguments": {"n": 2**60}})
        assert big == slow
        assert b"2^53" in big
    assert runs == [name for name in RESULTS for _ in range(4)] + ["fail", "fail"]


METAS = [{"progressToken": [1]}, {"progressToken": None}, []]


@pytest.mark.parametrize(
    "params",
    [
        *({}, {"name": 5}, {"name": "nvim_text", "arguments": []}, {"name": "nvim_text", "task": 1}),
        *({"name": "nvim_text", "_meta": meta} for meta in METAS),
    ],
)
async def test_a_malformed_call_is_refused_before_the_tool_runs(params: dict[str, Any]) -> None:
    runs: list[str] = []
    async with served() as bridge:
        bridge.editor.add_tool("text", lambda *_: runs.append("text"))
        session = await bridge.initialize()
        answer = await bridge.ask(session, "tools/call", params)
        assert answer["error"]["code"] == -32602
        for more in ({"task": 1}, {"_meta": {"progressToken": 1.5}}):
            _, answer = await bridge.answer_stateless("tools/call", {"name": "nvim_text"} | more)
            assert answer["error"]["code"] == -32602
    assert runs == []


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
texts = st.text(max_size=5)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner))
objects = st.dictionaries(st.text(max_size=5), values, max_size=3)
tokens = st.fixed_dictionaries({}, optional={"progressToken": scalars | values, "progress_token": values})
known = {"name": st.text(max_size=5) | scalars, "arguments": objects | values}
known["_meta"] = tokens | objects | values
others = dict.fromkeys(("meta", "task", "inputResponses", "requestState"), values)
calls = st.fixed_dictionaries({}, optional=known | others)


@given(calls)
def test_a_plain_call_is_valid_in_every_version(params: dict[str, Any]) -> None:
    if not is_plain_call(params):
        return
    for version in HANDSHAKE_PROTOCOL_VERSIONS:
        validate_client_request("tools/call", version, params)
    typed = CallToolRequestParams.model_validate(params, by_name=False)
    assert (typed.name, typed.arguments) == (params["name"], params.get("arguments"))
    assert (typed.task, typed.input_responses, typed.request_state) == (None, None, None)
    prefix = "io.modelcontextprotocol/"
    envelope = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
    meta = params.get("_meta") or {}
    validate_client_request("tools/call", "2026-07-28", params | {"_meta": meta | envelope})
