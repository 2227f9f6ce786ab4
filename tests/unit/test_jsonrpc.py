"""JSON-RPC as text."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tools_nvim import jsonrpc
from mcp_tools_nvim.jsonrpc import Answer, Batch, Fault, Notification, Request, parse


def test_requests_notifications_and_answers_are_distinguished() -> None:
    assert parse(b'{"jsonrpc":"2.0","id":1,"method":"m"}') == Request(1, "m", None)
    assert parse(b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}') == Request("a", "m", {"x": 1})
    assert parse(b'{"jsonrpc":"2.0","method":"m","params":null}') == Notification("m", None)
    assert parse(b'{"jsonrpc":"2.0","id":1,"result":{}}') == Answer(1, {})
    assert parse(b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}') == Answer(1, None, {"code": 1})


def test_surrogate_pairs_are_characters() -> None:
    message = parse(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud83d\\ude00"}}')
    assert message == Request(1, "m", {"a": "\N{GRINNING FACE}"})


def test_the_length_of_a_batch_is_limited() -> None:
    member = b'{"jsonrpc":"2.0","id":1,"method":"m"}'
    assert isinstance(parse(b"[" + b",".join([member] * jsonrpc.MAX_BATCH) + b"]"), Batch)
    fault = parse(b"[" + b",".join([b"[]"] * (jsonrpc.MAX_BATCH + 1)) + b"]")
    assert isinstance(fault, Fault)
    assert (fault.code, str(jsonrpc.MAX_BATCH) in fault.message) == (jsonrpc.INVALID_REQUEST, True)


def test_any_body_is_a_message_or_a_fault() -> None:
    chance = random.Random(1)
    for _ in range(3000):
        text = "".join(chance.choices('{}[]":,\\ud80x1eE.- NaInfty', k=chance.randrange(40)))
        for body in (text.encode(), chance.randbytes(8)):
            assert isinstance(parse(body), Request | Notification | Answer | Batch | Fault)


def test_dumps_replaces_what_cannot_be_encoded() -> None:
    assert jsonrpc.dumps({"a": ["ä", 1.5, None]}) == '{"a":["ä",1.5,null]}'.encode()
    assert jsonrpc.dumps("a\udcff") == b'"a?"'
    assert json.loads(jsonrpc.result_of_encoded("x", b'{"y":1}')) == jsonrpc.result("x", {"y": 1})


def exactly(value: Any) -> Any:
    """A form that also compares types, order and bits."""
    if isinstance(value, dict):
        return [(key, exactly(child)) for key, child in value.items()]
    if isinstance(value, list):
        return ["list", *map(exactly, value)]
    return struct.pack("d", value) if isinstance(value, float) else (type(value), value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=10 * settings.default.max_examples)
@given(json_values)
def test_written_values_are_read_back_unchanged(value: Any) -> None:
    """NaN and infinity are refused."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except ValueError:
        with pytest.raises(ValueError, match="JSON compliant"):
            jsonrpc.dumps(value)
        return
    written = jsonrpc.dumps(value)
    assert exactly(json.loads(written)) == exactly(json.loads(text.encode("utf-8", "replace")))
    assert b"\n" not in written
