"""JSON values pass through a tool unchanged, except for the documented rules."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.bridge import Bridge
from tests.support.raw import Raw, code_of, text_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.fuzz]

shared = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
# Names that could be those of file arguments would need approval.
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=f"/{string.ascii_letters}"))
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(names, inner, max_size=6),
    max_leaves=40,
)


def same(given_: Any, got: Any) -> bool:
    """Equal, as Lua sees it: one kind of number, and no difference between `-0.0` and `0`."""
    if isinstance(given_, bool) or isinstance(got, bool) or given_ is None:
        return given_ is got
    if isinstance(given_, int | float):
        return isinstance(got, int | float) and given_ == got
    if isinstance(given_, list):
        return isinstance(got, list) and len(given_) == len(got) and all(map(same, given_, got))
    if isinstance(given_, dict):
        same_keys = isinstance(got, dict) and given_.keys() == got.keys()
        return same_keys and all(same(given_[key], got[key]) for key in given_)
    return bool(given_ == got)


@shared
@given(values)
@example({})
@example([])
@example({"": {"": [[], {}, [None], {"a": None}]}})
@example([None, None, 1, None])
@example({"1": "a", "2": "b", "01": "c", "-1": "d", "1.5": "e"})
@example("\0")
@example({"\0": "\0\0", "é\U0001f600": "\ufeff\ufffe\uffff"})
@example("\u2028\u2029\x7f\x80</script>\\u0000")
@example([2**53, -(2**53), 0.1, 1e308, 5e-324, -0.0, 1.7976931348623157e308, 3.141592653589793])
@example([2.0**-24, -(2.0**-24), 2.0**-1074, 2.0**1023])
@example("x" * 200_000)
@example(list(range(3000)))
async def test_echo_returns_its_argument_unchanged(client: Raw, value: Any) -> None:
    result = await client.call("echo", {"value": value})
    text = text_of(result)
    assert not result.get("isError"), text
    if value is None:
        # An optional argument that is null is absent.
        assert result["content"] in ([], [{"type": "text", "text": "null"}])
    elif isinstance(value, str):
        assert text == value
    else:
        assert same(value, json.loads(text)), text


@shared
@given(values)
async def test_a_later_result_equals_an_immediate_one(client: Raw, value: Any) -> None:
    at_once = await client.call("echo", {"value": [value]})
    later = await client.call("later", {"value": [value], "ms": 0})
    assert json.loads(text_of(later)) == json.loads(text_of(at_once))


@shared
@given(st.dictionaries(names, scalars, max_size=8))
async def test_unknown_arguments_change_nothing(client: Raw, arguments: dict[str, Any]) -> None:
    result = await client.call("echo", arguments | {"value": "kept"})
    assert text_of(result) == "kept"


@shared
@given(st.integers(2**53 + 1) | st.integers(max_value=-(2**53) - 1), st.lists(st.integers(0, 3), max_size=3))
@example(2**53 + 1, [])
@example(-(2**64), [1, 2])
@example(10**300, [])
async def test_integers_that_lua_would_round(client: Raw, number: int, place: list[int]) -> None:
    """They are refused with their path."""
    value: Any = number
    path = ""
    for index in place:
        value = [0] * index + [value]
        path = f"[{index}]{path}"
    result = await client.call("echo", {"value": value})
    assert code_of(result) == "validation_error"
    assert [fault["field"] for fault in result["structuredContent"]["errors"]] == [f"value{path}"]


RETURN = """
local text = ...
mcp_tools.register({
  name = 'give', description = 'x', annotations = { read_only = true },
  execute = function(ctx) ctx(text) end,
})
"""


@shared
@given(st.binary(max_size=40))
@example(b"\xff")
@example(b"\xed\xa0\x80")
@example(b"\xf4\x90\x80\x80")
@example(b"\xc0\x80")
@example(b"a\x00b")
async def test_a_lua_string_is_text_only_when_it_is_utf_8(bridge: Bridge, client: Raw, data: bytes) -> None:
    # The test's channel keeps bytes that are not UTF-8.
    await bridge.nvim.lua(RETURN, data.decode("utf-8", "surrogateescape"))
    result = await client.call("give")
    try:
        assert text_of(result) == data.decode("utf-8")
    except UnicodeDecodeError:
        assert code_of(result) == "not_serializable"
        assert "UTF-8" in text_of(result)
