"""What is known of one AI client, and what its configuration is to say.

Receives and sends nothing: values. Does not know about: the disk, formats, which clients there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Scope = Literal["user", "project"]
Format = Literal["jsonc", "toml", "yaml"]

NAME = "nvim-tools"
"""Of the entry, in every client."""


@dataclass(frozen=True)
class Stdio:
    """A server that the client starts; it finds the editor by itself, and no token is written."""

    command: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Http:
    """The bridge of one project.

    Attributes:
        url: ends in /mcp.
        token: of the project.
        variable: of the environment, which holds the token; the client reads it there.
    """

    url: str
    token: str = field(repr=False)
    variable: str | None = None

    def headers(self, reference: str | None) -> dict[str, str]:
        """The header with the token, or with the client's way to say `variable`: `${env:%s}`, for example."""
        value = self.token
        if self.variable is not None and reference is not None:
            value = reference.replace("%s", self.variable)
        return {"Authorization": f"Bearer {value}"}


Server = Stdio | Http


@dataclass(frozen=True)
class Client:
    """One of `clients/*.py`.

    Attributes:
        title: as its makers write it.
        files: where its configuration is, as `places.py` reads it; a project's is relative to the project.
        format: of those files.
        path: where in them servers are; ends before the name.
        skills: folders of skills, like `files`; a scope that is not there has none.
        entry: what such a server looks like there.
        programs: one of them is there if the client is.
        folders: one of them is there if the client was run.
        reference: how it says a variable of the environment; None = it cannot.
        advice: what else the person has to know or do.
    """

    title: str
    files: Mapping[Scope, str]
    format: Format
    path: tuple[str, ...]
    entry: Callable[[Server, Client], dict[str, Any]]
    skills: Mapping[Scope, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    reference: str | None = None
    advice: str = ""


def common(server: Server, client: Client) -> dict[str, Any]:
    """The entry that most clients read."""
    if isinstance(server, Stdio):
        return {"command": server.command, "args": list(server.args)}
    return {"type": "http", "url": server.url, "headers": server.headers(client.reference)}
