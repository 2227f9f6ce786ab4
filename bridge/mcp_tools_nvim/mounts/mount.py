"""A mount as the editor configures it, and the names of what it exposes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

SEPARATOR = "__"
"""Between the name of a mount and that of its tool or prompt."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One server that is wanted. Secrets are resolved: none of it may be logged but the name.

    Attributes:
        name: of the mount.
        command: program and arguments, when it is a process of ours.
        env: on top of the little that every child gets.
        cwd: where it runs.
        url: where it listens, when it is none.
        headers: of every request to that URL.
        allow: what it may ask of the client that called one of its tools.
        start_timeout: seconds until it must have said what it offers.
        timeout: ms for its tools; None = as for other tools.
        root: of the project.
        limit: bytes of a result.
        secrets: texts that are in no log and no error.
        generation: another one means: begin anew, although nothing else differs.
    """

    name: str
    command: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    url: str = field(default="", repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    allow: frozenset[str] = frozenset()
    start_timeout: float = 60.0
    timeout: int | None = None
    root: str = ""
    limit: int = 10 * 1024 * 1024
    secrets: tuple[str, ...] = field(default=(), repr=False)
    generation: int = 0

    def public(self, name: str) -> str:
        """What a tool or prompt of it is called here."""
        return f"{self.name}{SEPARATOR}{name}"

    def own(self, name: str) -> str:
        """The way back."""
        return name.removeprefix(self.name + SEPARATOR)

    @property
    def _scheme(self) -> str:
        return self.name.lower().replace("_", "-") + "+"

    def public_uri(self, uri: str) -> str:
        """What a resource of it is called here: two mounts may have the same, and the editor its own."""
        return self._scheme + uri

    def own_uri(self, uri: str) -> str:
        """The way back."""
        return uri.removeprefix(self._scheme)

    def clean(self, text: str) -> str:
        """A text without the secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text


def read(text: str) -> tuple[Mount, ...]:
    """The mounts of a JSON text."""
    return tuple(_mount(one) for one in json.loads(text))


def _mount(raw: dict[str, Any]) -> Mount:
    return Mount(
        name=raw["name"],
        command=tuple(raw.get("command") or ()),
        env=dict(raw.get("env") or {}),
        cwd=raw.get("cwd") or "",
        url=raw.get("url") or "",
        headers=dict(raw.get("headers") or {}),
        allow=frozenset(raw.get("allow") or ()),
        start_timeout=raw["start_timeout"] / 1000,
        timeout=raw.get("timeout"),
        root=raw.get("root") or "",
        limit=raw["limit"],
        secrets=tuple(raw.get("secrets") or ()),
        generation=raw.get("generation") or 0,
    )
