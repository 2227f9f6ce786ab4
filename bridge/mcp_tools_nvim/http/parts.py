"""Parts of the application: what it is made from; built once by the lifecycle, handed to `App`."""

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
    """Holds the bearer token; it never shows in a `repr`, a log line or a traceback."""

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
        hello: the editor's whole answer; `hello.boot` is the editor's boot id.
        editor: the seam to the editor.
        calls: runs tool calls.
        token: mutable holder; settled before anything is served.
        versions: of this side.
        boot: id of this run of the bridge; prefix of call ids and event ids.
        report_sessions: call it with the whole list whenever it changed; it is debounced.
        watcher: hears of the sessions of companions.
        server_info: what a agent's agent is told that it has found, by the agent's name.
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
