"""What a server offers goes to the editor in pieces, each small enough to be taken in at a stretch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_tools_nvim.mounts.definitions import MAX_PIECE, MountDefinitions
from mcp_tools_nvim.mounts.mount import Mount

pytestmark = pytest.mark.asyncio


class Editor:
    """Takes pieces, and refuses the first of each."""

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
    """One that lists tools."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self.items = list(items)

    def supports(self, method: str) -> bool:
        return method == "tools/list"

    async def list(self, method: str) -> tuple[list[dict[str, Any]], list[str]]:
        return self.items, []


def tool(number: int, length: int = 100) -> dict[str, Any]:
    return {"name": str(number), "description": "x" * length, "inputSchema": {"type": "object"}}


async def test_a_long_list_goes_in_pieces_and_is_whole() -> None:
    editor, session = Editor(), MountSession(*map(tool, range(1000)), tool(1000, 3 * MAX_PIECE), tool(1001))
    offer = MountDefinitions(Mount("m"), editor)  # type: ignore[arg-type]
    await offer.register(await offer.read(session, ["tools/list"]))  # type: ignore[arg-type]
    assert editor.lists == [[f"m__{number}" for number in range(1002)]]
    large = [size for size in editor.sizes if size > MAX_PIECE + 500]
    assert len(large) == 1, "but for the one definition that is larger"
    assert len(offer.faults) == len(editor.sizes), "what was refused of a piece is lost"


async def test_the_same_list_is_not_given_twice_and_an_empty_one_is_given() -> None:
    editor, session = Editor(), MountSession(tool(1))
    offer = MountDefinitions(Mount("m"), editor)  # type: ignore[arg-type]
    for items in ([tool(1)], [tool(1)], [], [tool(1)]):
        session.items = items
        await offer.register(await offer.read(session, ["tools/list"]))  # type: ignore[arg-type]
    assert editor.lists == [["m__1"], [], ["m__1"]]
