"""An editor that keeps what mounts send."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mcp_tools_nvim.errors import NoAnswerError


class Editor:
    """Accepts tools while `answers` is set; with `refuses` not the first one of a piece.

    Attributes:
        sizes: of the pieces.
        tools: the names of each whole list.
        reports: the states.
        messages: of calls, beginning with their verb.
    """

    def __init__(self, *, refuses: bool = False) -> None:
        self.answers, self.refuses = True, refuses
        self.sizes: list[int] = []
        self.tools: list[list[str]] = []
        self.reports: list[dict[str, Any]] = []
        self.messages: list[tuple[Any, ...]] = []
        self.tell: Callable[..., None]
        self._begun: list[str] | None = None

    async def provide(
        self, provider: str, kind: str, definitions: str, *, first: bool, last: bool
    ) -> list[str]:
        self.sizes.append(len(definitions))
        if not self.answers:
            raise NoAnswerError("no answer")
        if kind != "tools":
            return []
        assert first == (self._begun is None)
        names = [each["name"] for each in json.loads(definitions)]
        self._begun = [*(self._begun or []), *names]
        if last:
            self.tools.append(self._begun)
            self._begun = None
        return [f"{names[0]} is refused"] if names and self.refuses else []

    def report(self, kind: str, data: dict[str, Any]) -> None:
        self.reports.append(data)

    def remote(self, verb: str, *args: Any) -> None:
        self.messages.append((verb, *args))

    def on(self, event: str, callback: Any) -> None:
        self.tell = callback

    def withdraw(self, provider: str) -> None:
        pass
