"""The bridge answers any message as its contract says, and continues to serve."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.raw import Raw

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.fuzz]

shared = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
words = st.sampled_from(["2.0", "nvim_echo", "value", "2025-11-25", "info", ""])
scalars = st.none() | st.booleans() | numbers | texts | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
# Without `later` and `hold`, which would wait.
tools = st.sampled_from(["nvim_echo", "echo", "nvim_value", "nvim_fail", "nvim_promised", "nvim_say"]) | texts
arguments = st.dictionaries(st.sampled_from(["value", "kind", "how", "ok", "fail", "later"]) | texts, values)
METHODS = """
ping tools/list tools/call logging/setLevel completion/complete resources/list resources/read prompts/get
notifications/cancelled notifications/progress notifications/initialized initialize server/discover
"""
methods = st.sampled_from(METHODS.split())
meta = st.fixed_dictionaries({}, optional={"progressToken": scalars, "io.modelcontextprotocol/x": values})
params = st.fixed_dictionaries(
    {},
    optional={"name": tools | scalars, "arguments": arguments | values, "_meta": meta | values}
    | dict.fromkeys(("cursor", "level", "requestId", "uri", "protocolVersion"), scalars)
    | dict.fromkeys(("capabilities", "clientInfo"), values),
)
requests = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.integers(0, 2**53) | texts, "method": methods | texts},
    optional={"params": params},
)
nearly = st.fixed_dictionaries(
    {},
    optional={"jsonrpc": st.just("2.0") | scalars, "id": scalars | values, "method": methods | scalars}
    | {"params": params | values}
    | dict.fromkeys(("result", "error", "extra"), values),
)
KNOWN = {-32700, -32600, -32601, -32602, -32800, -32002, -32004, -32005}
"""Error codes for mistakes of a client; −32603 would be a fault of the bridge."""


async def check_alive(client: Raw) -> None:
    status, answer = await client.send({"jsonrpc": "2.0", "id": "alive", "method": "ping"})
    assert (status, answer) == (200, {"jsonrpc": "2.0", "id": "alive", "result": {}})


def check_error(answer: Any) -> None:
    """A valid error with a known code and no stack trace."""
    assert set(answer) == {"jsonrpc", "id", "error"}, answer
    assert answer["error"]["code"] in KNOWN, answer
    assert isinstance(answer["error"]["message"], str)
    assert "Traceback" not in json.dumps(answer)


@shared
@given(requests)
async def test_a_well_formed_request_is_answered_with_its_id(client: Raw, request_: dict[str, Any]) -> None:
    status, answer = await client.send(request_)
    assert status == 200, answer
    assert answer["id"] == request_["id"]
    assert type(answer["id"]) is type(request_["id"])
    if "error" in answer:
        check_error(answer)
    else:
        assert isinstance(answer["result"], dict)
    await check_alive(client)


@shared
@given(nearly | values | st.lists(nearly | requests, max_size=4))
async def test_any_json_is_answered(client: Raw, body: Any) -> None:
    status, answer = await client.send(json.dumps(body).encode())
    if status == 202:
        assert answer == ""
    elif status == 400:
        check_error(answer)
    else:
        assert status == 200
        assert "id" in answer
    await check_alive(client)


@shared
@given(st.binary(max_size=200) | texts.map(str.encode))
async def test_random_bytes_are_refused(client: Raw, body: bytes) -> None:
    status, answer = await client.send(body)
    assert status == 400
    check_error(answer)
    await check_alive(client)


@shared
@given(requests, st.data())
async def test_damaged_requests(client: Raw, request_: dict[str, Any], data: st.DataObject) -> None:
    """A request with bytes cut out, repeated, changed or inserted is answered."""
    body = bytearray(json.dumps(request_, ensure_ascii=False).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(0, len(body) - 1)))
        kind = data.draw(st.sampled_from(["cut", "repeat", "change", "insert"]))
        if kind == "cut":
            del body[at : at + data.draw(st.integers(1, 5))]
        elif kind == "repeat":
            body[at:at] = body[at : at + 5]
        elif kind == "change" and body:
            body[at] = data.draw(st.integers(0, 255))
        else:
            body[at:at] = data.draw(st.binary(max_size=4))
    status, answer = await client.send(bytes(body))
    assert status in (200, 202, 400)
    if status == 400:
        check_error(answer)
    await check_alive(client)


@shared
@given(
    st.dictionaries(
        st.sampled_from(
            ["Mcp-Session-Id", "Mcp-Protocol-Version", "Last-Event-ID", "Mcp-Method", "Mcp-Name", "X-Y"]
        ),
        st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60),
    ),
    requests,
)
async def test_odd_headers(client: Raw, headers: dict[str, str], request_: dict[str, Any]) -> None:
    """They cause no internal error."""
    fields = {name.replace("-", "_"): value for name, value in headers.items()}
    status, answer = await client.send(request_, **fields)
    assert status in (200, 202, 400, 404, 405), answer
    if isinstance(answer, dict) and "error" in answer:
        check_error(answer)
    await check_alive(client)
