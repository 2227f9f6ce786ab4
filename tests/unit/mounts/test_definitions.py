"""Definitions, results and URIs of a mounted server, as they are forwarded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_tools_nvim.mounts import definitions
from mcp_tools_nvim.mounts.definitions import MAX_PIECE, MountDefinitions
from mcp_tools_nvim.mounts.mount import Mount
from mcp_tools_nvim.mounts.outcomes import CONVERTERS, unreserved

from .editor import Editor


class MountSession:
    def __init__(self, *items: dict[str, Any]) -> None:
        self.items = list(items)

    def supports(self, method: str) -> bool:
        return method == "tools/list"

    async def list(self, method: str) -> tuple[list[dict[str, Any]], list[str]]:
        return self.items, []


def tool_item(number: int, length: int = 100) -> dict[str, Any]:
    return {"name": str(number), "description": "x" * length, "inputSchema": {"type": "object"}}


async def test_a_long_list_is_registered_in_pieces() -> None:
    editor = Editor(refuses=True)
    session = MountSession(*map(tool_item, range(1000)), tool_item(1000, 3 * MAX_PIECE), tool_item(1001))
    offer = MountDefinitions(Mount("m"), editor)  # type: ignore[arg-type]
    await offer.register(await offer.read(session, ["tools/list"]))  # type: ignore[arg-type]
    assert editor.tools == [[f"m__{number}" for number in range(1002)]]
    large = [size for size in editor.sizes if size > MAX_PIECE + 500]
    assert len(large) == 1, "only the one large definition"
    assert len(offer.faults) == len(editor.sizes), "a fault of each piece"


async def test_an_unchanged_list_is_not_registered_again_but_an_empty_one_is() -> None:
    editor, session = Editor(), MountSession()
    offer = MountDefinitions(Mount("m"), editor)  # type: ignore[arg-type]
    for items in ([tool_item(1)], [tool_item(1)], [], [tool_item(1)]):
        session.items = items
        await offer.register(await offer.read(session, ["tools/list"]))  # type: ignore[arg-type]
    assert editor.tools == [["m__1"], [], ["m__1"]]


MOUNT = Mount("m")
BLOB = {"blob": "x" * 101}
RESERVED = {"mcp-tools.nvim/error": {"code": "x"}, "io.modelcontextprotocol/serverInfo": {"name": "us"}}


def forwarded(kind: str, raw: dict[str, Any], limit: int = 10_000) -> Any:
    """The forwarded result."""
    outcome = CONVERTERS[kind](MOUNT, raw, limit)
    assert outcome["kind"] == "content", outcome
    return json.loads(outcome["text"])


def test_large_integers_and_the_order_of_keys_are_kept() -> None:
    data = {"z": 1234567890123456789, "a": [2**70, -(2**63)], "m": {"y": 1, "b": 2}}
    text = {"type": "text", "text": "t", "_meta": {"a/n": 2**60}}
    raw = {"content": [text], "structuredContent": data, "_meta": {"b/n": 2**61}, "isError": True}
    outcome = CONVERTERS["tool"](MOUNT, raw, 10_000)
    assert json.loads(outcome["text"]) == raw
    assert '{"z":1234567890123456789,"a":[' in outcome["text"]
    contents = {"contents": [{"uri": "x://y", "text": "t", "_meta": {"n": 2**60}}]}
    assert forwarded("resource", contents)["contents"][0]["_meta"] == {"n": 2**60}


def test_reserved_metadata_keys_are_removed_from_results() -> None:
    meta = {"_meta": {**RESERVED, "own/key": 1}}
    inner = {"type": "resource", "resource": {"uri": "x://y", "text": "t", **meta}, **meta}
    blocks = [{"type": "text", "text": "t", **meta}, inner]
    message = {"role": "user", "content": blocks[0]}
    results = [
        forwarded("tool", {"content": blocks, **meta}),
        forwarded("resource", {"contents": [inner["resource"]], **meta}),
        forwarded("prompt", {"messages": [message], **meta}),
    ]
    for result in results:
        text = json.dumps(result)
        assert "mcp-tools.nvim/" not in text
        assert "io.modelcontextprotocol/" not in text
        assert result["_meta"] == {"own/key": 1}
    assert unreserved({"_meta": RESERVED, "a": None, "b": 1}) == {"b": 1}


def test_reserved_metadata_keys_are_removed_from_definitions() -> None:
    item = {"name": "t", "inputSchema": {"type": "object"}, "_meta": {**RESERVED, "own/key": 1}}
    assert definitions.tool_definition(MOUNT, item, None)["callers"] == {"mcp": {"meta": {"own/key": 1}}}  # type: ignore[arg-type]


def test_uris_get_the_scheme_of_the_mount() -> None:
    link = {"type": "resource_link", "uri": "nvim://x", "name": "x"}
    assert forwarded("tool", {"content": [link]})["content"][0]["uri"] == "m+nvim://x"


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        *(("tool", {"content": [{"type": "text", "text": text}]}) for text in ("x" * 101, "é" * 51)),
        *(("tool", {"content": [], "structuredContent": {"a": text}}) for text in ("x" * 101, "é" * 50)),
        ("tool", {"content": [{"type": "text", "text": ""}] * 10_001}),
        *(("resource", {"contents": [{"uri": "x://y"} | large]}) for large in ({"text": "é" * 51}, BLOB)),
        ("prompt", {"messages": [{"role": "user", "content": {"type": "text", "text": "x" * 101}}]}),
    ],
)
def test_results_that_are_too_large_are_refused(kind: str, raw: dict[str, Any]) -> None:
    assert CONVERTERS[kind](MOUNT, raw, 100)["code"] == "too_large"


def test_results_that_are_not_json_are_refused() -> None:
    raw = {"content": [], "structuredContent": {"a": float("nan")}}
    assert CONVERTERS["tool"](MOUNT, raw, 100)["code"] == "invalid_output"


def test_nesting_is_limited() -> None:
    for levels, key, value in ((90, "kind", "content"), (120, "code", "invalid_output")):
        raw = {"content": [], "structuredContent": nested(levels)}
        assert CONVERTERS["tool"](MOUNT, raw, 10_000)[key] == value


def test_the_limit_applies_to_text_before_it_is_escaped() -> None:
    outcome = CONVERTERS["tool"](MOUNT, {"content": [{"type": "text", "text": '"' * 100}]}, 100)
    assert outcome["size"] == 100
