"""Two editors of one person, a project each: what a client reads depends on its session alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.bridge import Bridge
from tests.support.raw import Raw


async def root_of(bridge: Bridge) -> Path:
    return Path(await bridge.nvim.lua("return require('mcp-tools.files.project').root()"))


async def read(raw: Raw, uri: str) -> dict[str, object]:
    """The answer to a read, without its id."""
    _, answer = await raw.send(raw.message("resources/read", {"uri": uri}))
    del answer["id"]
    return answer


@pytest.mark.slow
@pytest.mark.nvim("0.11")
async def test_projects_are_apart(start_bridge: Callable[..., Awaitable[Bridge]], tmp_path: Path) -> None:
    """No URI reaches into the other project, whatever it says, and no session id opens the other door."""
    bridges, roots = [], []
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "secret.txt").write_text(f"of {name}\n")
        bridge = await start_bridge(cwd=tmp_path / name)
        bridges.append(bridge)
        roots.append(await root_of(bridge))
    assert roots[0] != roots[1]
    async with Raw(bridges[0]) as one, Raw(bridges[1]) as two:
        for raw in (one, two):
            await raw.initialize()
        own = await read(one, f"file://{roots[0]}/secret.txt")
        assert own["result"]["contents"][0]["text"] == "of one\n"  # type: ignore[index]
        for uri in (
            f"file://{roots[1]}/secret.txt",
            f"file://two{roots[1]}/secret.txt",
            f"file://{roots[0]}/../two/secret.txt",
            f"nvim://buffer/{roots[1]}/secret.txt",
            f"file://{roots[0]}/none.txt",
        ):
            miss = {"code": -32002, "message": "Resource not found", "data": {"uri": uri}}
            assert await read(one, uri) == {"jsonrpc": "2.0", "error": miss}
        foreign = two.session
        assert (await one.send(one.message("ping"), Mcp_Session_Id=foreign))[0] == 404
        assert (await two.send(two.message("ping")))[0] == 200
