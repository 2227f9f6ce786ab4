"""The configuration of a mount, and the names of its tools, prompts and resources."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

SEPARATOR = "__"
"""Separates the name of a mount from that of its tool or prompt."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One configured server. Secrets are resolved, so only the name may be logged.

    Attributes:
        name: name of the mount.
        command: executable and arguments of a child process.
        env: environment variables, added to INHERITED.
        cwd: working directory of the process.
        url: URL of a server that is not a child process.
        headers: HTTP headers of every request to `url`.
        allow: what the server may ask the client that called one of its tools.
        start_timeout: seconds until all lists must be read.
        timeout: ms for its tools; None for the general timeout.
        root: the project root.
        limit: maximum bytes of a result.
        secrets: texts to remove from logs and errors.
        generation: a change restarts the server, even if nothing else differs.
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

    def public_name(self, name: str) -> str:
        """Returns our name of a tool or prompt of the server."""
        return f"{self.name}{SEPARATOR}{name}"

    def original_name(self, name: str) -> str:
        """Returns the server's name of a tool or prompt."""
        return name.removeprefix(self.name + SEPARATOR)

    @property
    def _scheme(self) -> str:
        return self.name.lower().replace("_", "-") + "+"

    def public_uri(self, uri: str) -> str:
        """Returns our URI of a resource, unique among mounts and Neovim's resources."""
        return self._scheme + uri

    def original_uri(self, uri: str) -> str:
        """Returns the server's URI of a resource."""
        return uri.removeprefix(self._scheme)

    def clean(self, text: str) -> str:
        """Returns a text with the secrets removed."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """Returns the mounts in a JSON text."""
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
