"""Definitions, results and URIs of a mounted server, as they are forwarded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_tools_nvim.mounts import definitions
from mcp_tools_nvim.mounts.definitions import MAX_PIECE, MountDefinitions
from mcp_tools_nvim.mounts.mount import Mount
from mcp_tools_nvim.mounts.outcomes import CONVERTERS, unreserved


class PieceEditor:
    """Accepts pieces, and refuses the first definition of each."""

    def __init__(self) -> None:
        self.lists: list[list[str]] = []
        self.sizes: list[int] = []
        self._begun: list[str] | None = None

    async def provide(
        self, provider: str, kind: str, definitions: str, *, first: bool, last: bool
    ) -> list[str]:
        assert first == (self._begun is None)
        names = [each["name"] for each in json.loads(definitions)]
        self._begun = [*(self._begun or []), *names]
        self.sizes.append(len(definitions))
        if last:
            self.lists.append(self._begun)
            self._begun = None
        return [f"{names[0]} is refused"] if names else []


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
    editor, session = (
        PieceEditor(),
        MountSession(*map(tool_item, range(1000)), tool_item(1000, 3 * MAX_PIECE), tool_item(1001)),
    )
    offer = MountDefinitions(Mount("m"), editor)  # type: ignore[arg-type]
    await offer.register(await offer.read(session, ["tools/list"]))  # type: ignore[arg-type]
    assert editor.lists == [[f"m__{number}" for number in range(1002)]]
    large = [size for size in editor.sizes if size > MAX_PIECE + 500]
    assert len(large) == 1, "only the one large definition"
    assert len(offer.faults) == len(editor.sizes), "a fault of each piece"


async def test_an_unchanged_list_is_not_registered_again_but_an_empty_one_is() -> None:
    editor, session = PieceEditor(), MountSession(tool_item(1))
    offer = MountDefinitions(Mount("m"), editor)  # type: ignore[arg-type]
    for items in ([tool_item(1)], [tool_item(1)], [], [tool_item(1)]):
        session.items = items
        await offer.register(await offer.read(session, ["tools/list"]))  # type: ignore[arg-type]
    assert editor.lists == [["m__1"], [], ["m__1"]]


MOUNT = Mount("m")
LONG = {"type": "text", "text": "x" * 101}
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
    ("kind", "raw", "code"),
    [
        ("tool", {"content": [LONG]}, "too_large"),
        ("tool", {"content": [{"type": "text", "text": "é" * 51}]}, "too_large"),
        ("tool", {"content": [], "structuredContent": {"a": "é" * 50}}, "too_large"),
        ("resource", {"contents": [{"uri": "x://y", "text": "é" * 51}]}, "too_large"),
        ("tool", {"content": [], "structuredContent": {"a": "x" * 101}}, "too_large"),
        ("tool", {"content": [{"type": "text", "text": ""}] * 10_001}, "too_large"),
        ("resource", {"contents": [{"uri": "x://y", "blob": "x" * 101}]}, "too_large"),
        ("prompt", {"messages": [{"role": "user", "content": LONG}]}, "too_large"),
        ("tool", {"content": [], "structuredContent": {"a": float("nan")}}, "invalid_output"),
    ],
)
def test_results_that_are_too_large_or_not_json_are_refused(
    kind: str, raw: dict[str, Any], code: str
) -> None:
    assert CONVERTERS[kind](MOUNT, raw, 100)["code"] == code


def test_nesting_is_limited() -> None:
    for levels, key, value in ((90, "kind", "content"), (120, "code", "invalid_output")):
        raw = {"content": [], "structuredContent": nested(levels)}
        assert CONVERTERS["tool"](MOUNT, raw, 10_000)[key] == value


def test_the_limit_applies_to_text_before_it_is_escaped() -> None:
    outcome = CONVERTERS["tool"](MOUNT, {"content": [{"type": "text", "text": '"' * 100}]}, 100)
    assert outcome["size"] == 100
