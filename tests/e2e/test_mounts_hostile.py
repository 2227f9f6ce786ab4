"""Mounted servers that want to fill or to freeze who mounts them: what each may cost is bounded."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
import pytest_asyncio

from tests.support import mounts
from tests.support.bridge import Bridge, connect
from tests.support.mounts import SERVERS
from tests.support.results import error_of, text_of
from tests.support.shared import Keep

# The bridge bounds it; the editor's part is that of every Neovim.
pytestmark = [pytest.mark.asyncio(loop_scope="session")]

SERVER = str(SERVERS / "hostile_server.py")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bridge(nvim_version: str, keep: Keep) -> AsyncIterator[Bridge]:
    """A bridge where everything may run, without mounts."""
    yield await keep(nvim_version, setup="{ approval = { default = 'allow' } }")


def client_of(bridge: Bridge) -> AbstractAsyncContextManager[Any]:
    """Who calls."""
    return connect(bridge, "sessions")


def hostile(how: str) -> dict[str, Any]:
    """The spec of the server."""
    return {"command": [sys.executable, SERVER, how]}


async def names_of(bridge: Bridge) -> list[str]:
    """Its tools."""
    names: list[str] = await bridge.nvim.lua("return vim.tbl_keys(mcp_tools.list_tools())")
    return [name for name in names if name.startswith("evil__")]


async def log_of(bridge: Bridge) -> str:
    """All that was logged."""
    path: str = await bridge.nvim.lua("return probe.log.path()")
    return Path(path).read_text()


async def test_an_endless_list_is_cut(bridge: Bridge) -> None:
    """It is not asked for on and on; what came first is offered, and it is told that there is more."""
    async with mounts.mounted(bridge, "evil", hostile("endless")) as status, client_of(bridge) as client:
        pages = int(text_of(await client.call_tool("evil__go")))
        count = len(await names_of(bridge))
    assert pages <= 3
    assert 1 < count < 30
    assert "it is too long" in str(status["faults"])


async def test_faults_are_not_counted_for_ever(bridge: Bridge) -> None:
    """Of twenty thousand items that are none some are told."""
    async with mounts.mounted(bridge, "evil", hostile("bad")) as status, client_of(bridge) as client:
        assert text_of(await client.call_tool("evil__go")) == "1"
    assert len(status["faults"]) < 100


@pytest.mark.slow
async def test_lists_that_change_all_the_time(bridge: Bridge) -> None:
    """Each look is followed by a time without one."""
    async with mounts.mounted(bridge, "evil", hostile("changing")), client_of(bridge) as client:
        looks = int(text_of(await client.call_tool("evil__go")))
    assert looks <= 4


async def test_output_that_is_none_does_not_fill_the_log(bridge: Bridge) -> None:
    """Twenty thousand lines, of which some are logged."""
    before = len((await log_of(bridge)).splitlines())
    async with mounts.mounted(bridge, "evil", hostile("garbage")), client_of(bridge) as client:
        await client.call_tool("evil__go")
    assert len((await log_of(bridge)).splitlines()) - before < 1000


@pytest.mark.parametrize("how", ["logs", "progress", "large logs", "large progress"])
async def test_events_have_a_rate_and_a_length(bridge: Bridge, how: str) -> None:
    """Five thousand at once do not reach the editor, nor megabytes of one."""
    count = """
    local remote = probe.remote
    local receive = remote.receive
    _G.Events, _G.Longest = 0, 0
    remote.receive = function(verb, ...)
      if verb ~= 'remote_result' then
        _G.Events = _G.Events + 1
        _G.Longest = math.max(_G.Longest, #tostring((select(select('#', ...), ...))))
      end
      return receive(verb, ...)
    end
    _G.Stop = function() remote.receive = receive end
    """
    await bridge.nvim.lua(count)
    async with mounts.mounted(bridge, "evil", hostile(how)), client_of(bridge) as client:
        await client.call_tool("evil__go")
    events, longest = await bridge.nvim.lua("_G.Stop() return { _G.Events, _G.Longest }")
    assert 0 < events < 2000
    assert 0 < longest < 20_000


async def test_it_is_not_asked_to_answer_everything(bridge: Bridge) -> None:
    """A server that asks 3000 things and does not read gets a part of the answers; the call goes on."""
    async with mounts.mounted(bridge, "evil", hostile("pings")), client_of(bridge) as client:
        pongs = int(text_of(await client.call_tool("evil__go")))
    assert 0 < pongs < 1000


async def test_errors_and_names_have_a_length(bridge: Bridge) -> None:
    """Megabytes of either are for nobody."""
    async with mounts.mounted(bridge, "evil", hostile("error")), client_of(bridge) as client:
        assert len(error_of(await client.call_tool("evil__go"))["message"]) < 20_000
    async with mounts.mounted(bridge, "evil", hostile("name")) as status:
        assert len(status["server"]) <= 100


async def test_a_question_has_a_length(bridge: Bridge) -> None:
    """Nobody reads megabytes before they answer; the editor is spared them."""
    spec = {**hostile("question"), "allow": ["elicitation"]}

    async def elicit(*_: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async with (
        mounts.mounted(bridge, "evil", spec),
        connect(bridge, "sessions", elicitation_callback=elicit) as client,
    ):
        answer = json.loads(text_of(await client.call_tool("evil__go")))
    assert answer["error"]["code"] == -32005
    assert "limits.tool_result" in answer["error"]["message"]


async def test_structure_counts_for_the_limit(bridge: Bridge) -> None:
    """A result is as large as all that is in it."""
    async with mounts.mounted(bridge, "evil", hostile("structured")), client_of(bridge) as client:
        assert error_of(await client.call_tool("evil__go"))["code"] == "too_large"


async def test_what_cannot_be_read_ends_what_waits_for_it(bridge: Bridge) -> None:
    """A call at once, and with it a start that says why."""
    async with mounts.mounted(bridge, "evil", hostile("unreadable")), client_of(bridge) as client:
        assert "cannot be read" in error_of(await client.call_tool("evil__go"))["message"]
    async with mounts.mounted(bridge, "evil", hostile("deep"), "waiting") as status:
        assert "nested too deep" in status["error"]


async def test_names_that_do_not_show_what_they_are(bridge: Bridge) -> None:
    """Control characters and those that turn text around are in no name."""
    async with mounts.mounted(bridge, "evil", hostile("names")) as status:
        names = await names_of(bridge)
    assert names == ["evil__go"]
    assert len(status["faults"]) == 4
