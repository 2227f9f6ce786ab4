"""Mounts: their configuration and names, and the import of their modules with the first mount."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from .. import sdk
from ..neovim.nvim import NvimEditor
from .outcomes import error_outcome

if TYPE_CHECKING:
    from .supervisor import MountedServers


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


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "command": tuple,
    "allow": frozenset,
    "start_timeout": lambda ms: ms / 1000,
    "secrets": tuple,
}


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """Returns the mounts in a JSON text."""
    return tuple(_mount(one) for one in json.loads(text))


def _mount(raw: dict[str, Any]) -> Mount:
    # Lua's empty table arrives as an empty list, also for `env` and `headers`.
    given = {each.name: raw[each.name] for each in fields(Mount) if raw.get(each.name) not in (None, [])}
    return Mount(
        **{name: _CONVERTERS[name](value) if name in _CONVERTERS else value for name, value in given.items()}
    )


logger = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""Seconds until a failed import is retried."""


class Mounts:
    """All mounts; imports their modules when needed.

    Args:
        editor: names the mounts.
        hide: receives each secret, which must not be logged.
    """

    def __init__(self, editor: NvimEditor, hide: Callable[[str], None]) -> None:
        self._editor = editor
        self._hide = hide
        self._hidden: set[str] = set()
        self._wanted: tuple[Mount, ...] = ()
        self._servers: MountedServers | None = None
        self._loading: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None
        self._closed = False
        self._error = ""
        self._early: list[tuple[str, Sequence[Any]]] = []
        editor.on("mount", self._on_event)

    def end(self, within: float) -> None:
        """Starts to end all mounts; they have `within` seconds."""
        self._closed = True
        if self._retry is not None:
            self._retry.cancel()
        if self._servers is not None and self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._servers.close(within))

    def kill(self) -> None:
        """Kills the processes of mounted servers."""
        if self._servers is not None:
            self._servers.kill()

    async def ended(self) -> None:
        """Waits until all mounts have ended."""
        if self._ending is not None:
            await self._ending

    def _on_event(self, event: str, args: Sequence[Any]) -> None:
        if event == "mounts":
            self._want(parse_mounts(args[0]))
        elif self._servers is not None:
            self._servers.on_event(event, args)
        elif self._retry is not None and event == "remote_call":
            self._refuse(args[0])
        else:
            self._early.append((event, args))

    def _want(self, mounts: tuple[Mount, ...]) -> None:
        for each in mounts:
            for secret in {*each.secrets} - self._hidden:
                self._hidden.add(secret)
                self._hide(secret)
        self._wanted = mounts
        if self._servers is not None:
            self._servers.want(mounts)
        elif mounts:
            self._load()

    def _load(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._servers is None and self._loading is None and not self._closed:
            self._loading = asyncio.get_running_loop().create_task(self._import())

    async def _import(self) -> None:
        try:
            await sdk.import_sdk(f"{__package__}.supervisor")
            from .supervisor import MountedServers

            if not self._closed:
                self._servers = MountedServers(self._editor)
                self._servers.want(self._wanted)
                for event, args in self._early:
                    self._servers.on_event(event, args)
        except Exception as fault:
            logger.exception("cannot load mounts; retrying in %g s", RETRY_SECONDS)
            self._error = str(fault)
            self._retry = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._load)
            waiting = {"state": "waiting", "error": self._error, "next_ms": round(RETRY_SECONDS * 1000)}
            for each in self._wanted:
                self._editor.report("mount", {"name": each.name, **waiting})
            for event, args in self._early:
                if event == "remote_call":
                    self._refuse(args[0])
        finally:
            self._early.clear()
            self._loading = None

    def _refuse(self, call_id: str) -> None:
        text = f"cannot load mounts ({self._error}); retrying in {RETRY_SECONDS:.0f} s"
        self._editor.remote("remote_result", call_id, error_outcome("busy", text))
