"""Filters of resource lists."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from mcp_tools_nvim.mcp.pages import Filter, FilterError, parse_filter
from tests.support.served import Served, served

SCHEMES = ("file", "test")


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served() as running:
        for uri, more in (
            ("test://a", {"mimeType": "text/markdown; charset=utf-8", "_meta": {"tags": ["x", "y"]}}),
            ("test://b", {"mimeType": "text/markdown", "_meta": {"tags": ["x"]}}),
            ("test://c", {}),
            ("other://d", {"mimeType": "TEXT/Markdown", "_meta": {}}),
            ("file:///{+path}", {"_meta": {"tags": ["x"]}}),
            ("test://t/{id}", {}),
        ):
            running.editor.add_resource(uri, lambda ctx, params: "", **more)
        yield running


async def listed(bridge: Served, era: str, method: str = "resources/list", **params: Any) -> dict[str, Any]:
    if era == "sessions":
        return await bridge.ask(await bridge.initialize(), method, params)
    return (await bridge.answer_stateless(method, params))[1]


def uris(answer: dict[str, Any]) -> list[str]:
    return [item["uri"] for item in answer["result"]["resources"]]


@pytest.mark.parametrize("era", ["sessions", "stateless"])
async def test_all_members_of_a_filter_must_match(bridge: Served, era: str) -> None:
    """An empty filter matches everything, and no filter is remembered."""
    everything = ["other://d", "test://a", "test://b", "test://c"]
    for wanted, expected in (
        ({}, everything),
        ({"scheme": "test"}, everything[1:]),
        ({"scheme": "TEST"}, everything[1:]),
        ({"scheme": "file"}, []),
        ({"mimeType": "text/markdown"}, everything[:3]),
        ({"mimeType": "Text/Markdown; charset=x", "scheme": "test"}, everything[1:3]),
        ({"tags": ["x"]}, ["test://a", "test://b"]),
        ({"tags": ["x", "y"]}, ["test://a"]),
        ({"tags": ["X"]}, []),
        ({"tags": []}, everything),
        ({"mimeType": "image/png"}, []),
        ({"scheme": "test", "mimeType": "text/markdown", "tags": ["y"]}, ["test://a"]),
    ):
        assert uris(await listed(bridge, era, _meta={"filter": wanted})) == expected, wanted
        assert uris(await listed(bridge, era)) == everything
    assert uris(await listed(bridge, era, _meta={"filter": None})) == everything


@pytest.mark.parametrize("era", ["sessions", "stateless"])
@pytest.mark.parametrize("method", ["resources/list", "resources/templates/list"])
async def test_an_invalid_filter_or_cursor_is_refused(bridge: Served, era: str, method: str) -> None:
    for wanted, message in (
        (5, "filter must be an object"),
        ([], "filter must be an object"),
        ("test", "filter must be an object"),
        ({"scheme": 1}, "filter.scheme must be a string"),
        ({"scheme": ""}, "filter.scheme must be a string"),
        ({"scheme": None}, "filter.scheme must be a string"),
        ({"scheme": "ftp"}, "filter.scheme: unknown scheme 'ftp'; available: file, other, test"),
        ({"mimeType": ["text/plain"]}, "filter.mimeType must be a string"),
        ({"tags": "x"}, "filter.tags must be a list of strings"),
        ({"tags": ["x", 1]}, "filter.tags must be a list of strings"),
        ({"tags": {"x": True}}, "filter.tags must be a list of strings"),
        ({"mime_type": "x"}, "unknown filter member 'mime_type'; valid ones are scheme, mimeType and tags"),
    ):
        error = (await listed(bridge, era, method, _meta={"filter": wanted}))["error"]
        assert (error["code"], error["message"]) == (-32602, message)
    error = (await listed(bridge, era, method, cursor="x", _meta={"filter": {"scheme": "test"}}))["error"]
    assert (error["code"], error["message"]) == (-32602, "Invalid cursor")


async def test_templates_are_filtered_by_scheme_and_tags(bridge: Served) -> None:
    for wanted, expected in (
        ({"scheme": "file"}, ["file:///{+path}"]),
        ({"scheme": "other"}, []),
        ({"tags": ["x"]}, ["file:///{+path}"]),
    ):
        answer = await listed(bridge, "sessions", "resources/templates/list", _meta={"filter": wanted})
        assert [item["uriTemplate"] for item in answer["result"]["resourceTemplates"]] == expected


async def test_a_page_is_filled_with_matches_and_its_cursor_keeps_the_filter(bridge: Served) -> None:
    for n in range(2002):
        bridge.editor.add_resource(f"many://{n:04}", lambda ctx, params: "", _meta={"tags": [str(n % 2)]})
    wanted = {"filter": {"tags": ["1"]}}
    first = (await listed(bridge, "sessions", _meta=wanted))["result"]
    assert len(first["resources"]) == 1000
    rest = (await listed(bridge, "sessions", cursor=first["nextCursor"], _meta=wanted))["result"]
    assert [item["uri"] for item in rest["resources"]] == ["many://2001"]
    assert "nextCursor" not in rest


async def test_other_lists_ignore_a_filter(bridge: Served) -> None:
    bridge.editor.add_tool("echo", lambda ctx, arguments: "")
    answer = await listed(bridge, "sessions", "tools/list", _meta={"filter": 5})
    assert [tool["name"] for tool in answer["result"]["tools"]] == ["nvim_echo"]


def test_a_definition_without_a_type_or_tags_does_not_match() -> None:
    assert not Filter(mime_type="text/plain").fits("a:b", {"mimeType": 5})
    assert not Filter(tags=frozenset({"x"})).fits("a:b", {"_meta": None})
    assert Filter().fits("a:b", {})
    with pytest.raises(FilterError, match="file, test"):
        parse_filter({"scheme": "a\n"}, SCHEMES)
