"""The questions, correct answers, and additional content of answers."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Protocol

from peers import sample
from peers.mcp_client import FailedError

MOST_FAILURES = 3
"""Failures in a row after which a server is not asked again."""


class Peer(Protocol):
    """A server that answers; the text is what a model would read."""

    name: str

    async def overview(self) -> str: ...
    async def find(self) -> str: ...
    async def references(self) -> str: ...
    async def rename(self, old: str, new: str) -> str: ...
    async def diagnostics(self) -> str: ...
    async def hover(self) -> str: ...
    def places(self, text: str) -> set[sample.Place]: ...
    def present(self, text: str) -> str: ...
    async def unsaved(self) -> dict[str, str]: ...


@dataclass
class Answers:
    """The answers of one server to one question."""

    times: list[float] = field(default_factory=list)  # ms
    sizes: list[int] = field(default_factory=list)  # bytes
    right: int = 0
    asked: int = 0
    facts: frozenset[str] = frozenset()
    last: str = ""
    failures: int = 0  # in a row
    why: str = ""

    @property
    def ms(self) -> float:
        """p50."""
        return median(self.times) if self.times else float("inf")

    @property
    def bytes(self) -> float:
        """p50."""
        return median(self.sizes) if self.sizes else float("inf")

    def __str__(self) -> str:
        if not self.times:
            return self.why or "no answer"
        size = f"{self.bytes:.0f}" if self.bytes < 10_000 else f"{self.bytes / 1000:.0f} k"
        return f"{self.ms:.0f} ms / {size} B, {self.right} of {self.asked}"


def plain(text: str) -> str:
    """The text without JSON escapes."""
    return text.replace("\\n", "\n").replace('\\"', '"')


@dataclass
class Project:
    """The project of one server."""

    peer: Peer
    folder: Path
    turn: int = 0

    async def texts_differ(self, name: str) -> bool:
        """Whether the project is wrong for this name of the method, including unsaved buffers."""
        unsaved = await self.peer.unsaved()
        return any(unsaved.get(path, text) != text for path, text in sample.files(name).items()) or any(
            path not in unsaved for path in sample.differs(self.folder, name)
        )

    async def overview(self) -> tuple[str, float, bool]:
        """Whether all names are listed."""
        text, ms = await timed(self.peer.overview)
        names = ["Ledger", "Entry", *sample.METHODS, *sample.FUNCTIONS]
        return text, ms, all(re.search(rf"\b{name}\b", text) for name in names)

    async def find(self) -> tuple[str, float, bool]:
        """Whether the whole body is shown."""
        text, ms = await timed(self.peer.find)
        return text, ms, all(line.strip() in plain(text) for line in sample.BODY.splitlines())

    async def references(self) -> tuple[str, float, bool]:
        """Whether exactly the uses are listed, and maybe the definition."""
        text, ms = await timed(self.peer.references)
        return text, ms, self.peer.places(text) - {sample.definition()} == sample.uses()

    async def hover(self) -> tuple[str, float, bool]:
        """Signature and documentation."""
        text, ms = await timed(self.peer.hover)
        return text, ms, all(part in plain(text) for part in ("amount: int", "-> Entry", sample.DOC))

    async def diagnostics(self) -> tuple[str, float, bool]:
        """Whether the error of the changed file is reported, and no earlier one."""
        self.turn += 1
        text, word = sample.edited(self.turn)
        (self.folder / sample.EDITED).write_text(text)
        answer, ms = await timed(self.peer.diagnostics)
        told = set(re.findall(r"\bwrong_\d+", self.peer.present(answer)))
        return answer, ms, told == {word}

    async def restore(self) -> None:
        """Restores the files; the server is notified of the edited one."""
        self.turn = 0
        sample.write(self.folder)
        with contextlib.suppress(FailedError):
            await self.peer.diagnostics()

    async def rename(self) -> tuple[str, float, bool]:
        """Renames and renames back, and checks every file."""
        there = self.turn % 2 == 0
        old, new = (sample.NAME, sample.NEW_NAME) if there else (sample.NEW_NAME, sample.NAME)
        self.turn += 1
        answer, ms = await timed(lambda: self.peer.rename(old, new))
        return answer, ms, not await self.texts_differ(new)


QUESTIONS = ["overview", "find", "references", "hover", "diagnostics", "rename"]

LATE = len(sample.edited(1)[0].splitlines())
FACTS: dict[str, dict[str, str]] = {
    "overview": {"lines": r"\b2[78]\b", "parameters": r"\bmemo\b"},
    "find": {"file": r"ledger\.py", "lines": r"\b2[78]\b"},
    "references": {"text": r'\("sales", amount\)', "around": r"\bbill_0\b", "total": r"\b30\b"},
    "hover": {"where it is defined": r"ledger\.py|\b2[78]\b"},
    "diagnostics": {
        "line": rf"\b({LATE}|{LATE - 1})\b",
        "rule": "reportArgumentType",
        "what was fixed": r'"fixed": ?\[.',
    },
    "rename": {"files": r"billing0\d", "count": r"\b(13|30|31)\b"},
}
"""Additional content of answers, and how it is recognized."""


def facts(question: str, text: str) -> frozenset[str]:
    """The additional content of an answer."""
    return frozenset(name for name, sign in FACTS[question].items() if re.search(sign, plain(text)))


async def timed(ask: Callable) -> tuple[str, float]:
    """The answer and its time in ms."""
    begun = time.perf_counter()
    text = await ask()
    return text, (time.perf_counter() - begun) * 1000


async def ask(project: Project, question: str, answers: Answers) -> None:
    """Asks once more."""
    if answers.failures >= MOST_FAILURES:
        return
    answers.asked += 1
    try:
        text, ms, right = await getattr(project, question)()
    except FailedError as error:
        answers.failures += 1
        answers.why = str(error)
        return
    answers.failures = 0 if right else answers.failures + (ms > 4000)
    answers.times.append(ms)
    answers.sizes.append(len(text.encode()))
    answers.right += right
    answers.last = text
    if right:
        answers.facts = facts(question, text)
