"""AI clients, and the servers that can be written into their configuration."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ConfigLevel = Literal["user", "project"]
Entry = dict[str, Any]

NAME = "nvim-tools"
"""Name of our entry in every client."""
_OURS = {"ide", "hooks", "policies", "skills", NAME}
"""Names in a client's directory that may be there without the client."""
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


@dataclass(frozen=True)
class Stdio:
    """A server process that the client starts. It finds the editor itself, so no token is written."""

    command: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Http:
    """The bridge of one project.

    Attributes:
        url: ends in /mcp.
        token: of the project.
        variable: environment variable from which the client reads the token.
    """

    url: str
    token: str = field(repr=False)
    variable: str | None = None

    def headers(self, reference: str | None) -> dict[str, str]:
        """Returns the header with the token, or with a reference to `variable`, such as `${env:%s}`."""
        value = self.token
        if self.variable is not None and reference is not None:
            value = reference.replace("%s", self.variable)
        return {"Authorization": f"Bearer {value}"}


Server = Stdio | Http


@dataclass(frozen=True)
class Hooks:
    """How a client runs a command at its events.

    Attributes:
        agent: argument of the command.
        files: like those of `AiClient`.
        matcher: its tools whose calls are events; None = the file is a plugin.
        events: start of a session, prompt, end of a tool.
        timeout: in the unit of the client.
        is_own: the file contains nothing else.
        advice: additional notes for the user.
        environment_advice: how the user makes it use a changed environment, besides a restart.
        name: what it shows while the hook runs; None = it shows no command.
    """

    agent: str
    files: Mapping[ConfigLevel, str]
    matcher: str | None = None
    events: tuple[str, str, str] = ("SessionStart", "UserPromptSubmit", "PostToolUse")
    timeout: int = 5
    is_own: bool = False
    advice: str = ""
    environment_advice: str = ""
    name: str | None = None


@dataclass(frozen=True)
class Lsp:
    """How a client starts language servers.

    Attributes:
        files: like those of `AiClient`.
        path: keys of the table that holds servers.
        languages: field with the language of each extension; None = it has a list of extensions.
        off: its own servers, which an entry of ours would switch on.
        advice: what the user has to do; %s is replaced by the directory of the file.
    """

    files: Mapping[ConfigLevel, str]
    path: tuple[str, ...] = ()
    languages: str | None = "extensionToLanguage"
    off: tuple[str, ...] = ()
    advice: str = ""


@dataclass(frozen=True)
class Permissions:
    """How a client allows single tools without asking the user.

    Attributes:
        file: settings of the user, as `place` reads it.
        project_files: where the client looks for servers in a project and in the directories above it.
        rule: rule for a tool, %s for its name; it matches the name of the server.
        path: keys of the list of rules, or of the object that has them as keys; empty = a policy file (TOML)
            with nothing else.
        value: value of a rule in an object; None = the rules are in a list.
    """

    file: str
    project_files: tuple[str, ...]
    rule: str = "%s"
    path: tuple[str, ...] = ()
    value: str | None = None


@dataclass(frozen=True)
class AiClient:
    """One AI client.

    Attributes:
        title: product name.
        files: configuration files, as `place` reads them; a project's are relative to the project.
        skills: directories of skills, like `files`.
        commands: if one of them is on PATH, the client is installed.
        homes: if one of these directories has content that is not ours, the client is installed.
        format: module of `formats/` for those files.
        path: keys of the table that holds servers.
        reference: its syntax for an environment variable, %s for the name; None = it has none.
        url_key: field of the URL.
        stdio_fields: added to the entry of a stdio server.
        http_fields: added to the entry of an HTTP server.
        custom: makes the entry of a client with a format of its own.
        advice: additional notes for the user.
        project_advice: more of them for an entry in a project's file.
        hooks: how it runs hooks; None = it does not.
        lsp: how it starts language servers; None = it does not.
        permissions: how it allows single tools, or why we add no rules.
    """

    title: str
    files: Mapping[ConfigLevel, str]
    skills: Mapping[ConfigLevel, str]
    commands: tuple[str, ...]
    homes: tuple[str, ...]
    format: Literal["jsonc", "toml", "yaml"] = "jsonc"
    path: tuple[str, ...] = ("mcpServers",)
    reference: str | None = None
    url_key: str = "url"
    stdio_fields: Mapping[str, Any] = field(default_factory=dict)
    http_fields: Mapping[str, Any] = field(default_factory=dict)
    custom: Callable[[Server], Entry] | None = None
    advice: str = ""
    project_advice: str = ""
    hooks: Hooks | None = None
    lsp: Lsp | None = None
    permissions: Permissions | str = "no settings for single tools are known"

    def entry(self, server: Server) -> Entry:
        """Returns the entry of a server as this client reads it."""
        if self.custom is not None:
            return self.custom(server)
        if isinstance(server, Stdio):
            return {**self.stdio_fields, "command": server.command, "args": list(server.args)}
        return {**self.http_fields, self.url_key: server.url, "headers": server.headers(self.reference)}

    @property
    def is_installed(self) -> bool:
        """Whether it seems to be installed; a directory that cannot be read does not count."""
        return any(map(shutil.which, self.commands)) or any(map(_has_content, self.homes))


def _has_content(home: str) -> bool:
    """Whether a directory holds more than what Neovim creates in it."""
    try:
        return not _OURS.issuperset(os.listdir(place(home)))
    except OSError:
        return False


def expand(path: str) -> str:
    """Returns a path with each `${NAME:-default}` filled in; a variable must hold an absolute path."""

    def value(found: re.Match[str]) -> str:
        own = os.environ.get(found[1], "")
        return own if os.path.isabs(own) else found[2]

    return _VARIABLE.sub(value, path)


def place(path: str) -> Path:
    """Returns a path with its variables and `~` filled in."""
    return Path(os.path.expanduser(expand(path)))
