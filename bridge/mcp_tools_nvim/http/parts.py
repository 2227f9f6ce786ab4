"""The parts that the application is built from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..values import Hello, ServerInfo, Settings, Versions

if TYPE_CHECKING:
    from ..calls.runner import Calls
    from ..neovim import Editor
    from ..sessions.session import SessionInfo, Watcher


class Token:
    """Holds the bearer token, and hides it from `repr`, logs and tracebacks."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Token(…)"


@dataclass(slots=True)
class Parts:
    """Everything that the application needs.

    Attributes:
        settings: options of the plugin, from `hello`.
        hello: Neovim's answer to `hello`; `hello.boot` identifies the run of Neovim.
        editor: the connection to Neovim.
        calls: runs calls.
        token: the token; set before anything is served.
        versions: versions of the bridge and its packages.
        boot: identifies this run of the bridge; prefix of call ids and event ids.
        report_sessions: called with the whole list after every change; debounced.
        watcher: follows the sessions of terminal agents.
        server_info: returns the server information that an agent gets, by its name.
    """

    settings: Settings
    hello: Hello
    editor: Editor
    calls: Calls
    token: Token
    versions: Versions
    boot: str
    report_sessions: Callable[[list[SessionInfo]], None] = lambda sessions: None
    watcher: Watcher | None = None
    server_info: Callable[[str], ServerInfo | None] = lambda agent: None
