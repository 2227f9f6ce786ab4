"""Registers this bridge as an MCP server with running OpenCode servers.

`POST /mcp` adds an MCP server to an OpenCode server, `POST /mcp/NAME/disconnect` removes it. Each server gets
its own token, valid for `/mcp` and its own sessions only, and revoked when the registration ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from ..http.guards import HeaderValues, has_token
from ..instances.files import is_loopback
from ..neovim.nvim import NvimEditor
from ..sessions.registry import Sessions

logger = logging.getLogger(__name__)

NAME = "nvim-tools"
"""Name of our entry in OpenCode, as in `:McpTools endpoint`."""
CHECK_SECONDS = 15.0
"""Interval of checks: a restarted server has lost its entries."""
CHECK_FOR = 600.0
"""Seconds after which a server is no longer checked, unless Neovim names it again."""
TIMEOUT = 3.0
"""Seconds for an answer."""
CONNECT_TIMEOUT = 15.0
"""Seconds for the answer to a registration: the server connects to us before it answers."""
END_TIMEOUT = 0.3
"""Seconds to end all registrations when the bridge ends."""
MAX_ANSWER = 1024 * 1024
"""Bytes of an answer."""
SOCKET_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Where Linux lists which user listens on a port."""
LISTENS = "0A"


def digest_of(token: str) -> str:
    """Returns what saved sessions contain of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class OpenCodeServer:
    """An OpenCode server that the user has chosen.

    Attributes:
        url: Its base URL, an address of this machine.
        headers: Sent with every request.
        registered: An earlier bridge of this editor has registered there.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    registered: bool = field(default=False, compare=False)


class _FaultError(Exception):
    """A server did not answer as OpenCode does; the text says what is wrong."""


class _GoneError(_FaultError):
    """Nothing listens there."""


class OwnToken:
    """A token for one program, valid for `/mcp` and for the sessions that were opened with it.

    Args:
        token: The token; empty while there is none.
        revoked: Receives the digest of a revoked token.

    Attributes:
        token: The token.
    """

    def __init__(self, token: str, revoked: Callable[[str], None]) -> None:
        self.token = token
        self._revoked = revoked

    def revoke(self) -> None:
        """Invalidates the token and ends its sessions."""
        token, self.token = self.token, ""
        self._revoked(digest_of(token))


class Registration(OwnToken):
    """The registration with one server, which has the token.

    Args:
        server: The server.
        url: Our endpoint.
        hide: Receives each token, which must not be logged.
        revoked: Receives the digest of a revoked token.
        changed: Called when `state` or `fault` has changed.
        after: Task that ends an earlier registration with the same server; it runs first.

    Attributes:
        state: `waiting`, `connected`, or `others` (another process has registered a server with our name).
        fault: Why it is not connected.
    """

    def __init__(
        self,
        server: OpenCodeServer,
        url: str,
        hide: Callable[[str], None],
        revoked: Callable[[str], None],
        changed: Callable[[], None],
        after: asyncio.Task[None] | None = None,
    ) -> None:
        super().__init__("", revoked)
        self.server = server
        self.url = url
        self.state, self.fault = "waiting", ""
        self._hide, self._changed = hide, changed
        self._is_ours = server.registered
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._until = 0.0
        self._after = after
        self.check_soon()
        self._task = self._loop.create_task(self._run())

    def check_soon(self) -> None:
        """Checks the server now, and regularly for the next minutes."""
        self._until = self._loop.time() + CHECK_FOR
        self._wake.set()

    async def end(self) -> None:
        """Ends the registration."""
        was_registered = self.token != ""  # or is being registered, which revokes the token when cancelled
        self._task.cancel()
        await asyncio.wait({self._task})
        self.revoke()
        if was_registered:
            with contextlib.suppress(_FaultError):
                await self._ask("POST", f"/mcp/{NAME}/disconnect", {})
        await self._wait_for_earlier()  # a later registration waits for this one only

    async def _wait_for_earlier(self) -> None:
        if self._after is not None:
            await asyncio.wait({self._after})

    async def _run(self) -> None:
        await self._wait_for_earlier()
        while True:
            self._wake.clear()
            try:
                await self._check()
            except _GoneError as fault:
                # The next process that listens there must not get a valid token.
                self.revoke()
                self._become("waiting", str(fault))
            except _FaultError as fault:
                self._become("waiting", str(fault))
            except Exception:  # boundary: logged with its traceback; the next check tries again
                logger.exception("OpenCode at %s", self.server.url)
                self._become("waiting", "an internal error; see :McpTools log")
            pause = CHECK_SECONDS if self._loop.time() < self._until else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    async def _check(self) -> None:
        status = _status(await self._ask("GET", "/mcp"))
        if status == "connected" and not self._is_ours:
            self._become("others")
        elif status == "connected" and self.token:
            self._become("connected")
        else:
            await self._register()

    async def _register(self) -> None:
        self.revoke()
        self.token = secrets.token_hex(32)
        self._hide(self.token)
        config = {
            "type": "remote",
            "url": self.url,
            "enabled": True,
            "oauth": False,
            "headers": {"Authorization": f"Bearer {self.token}"},
        }
        try:
            entries = await self._ask("POST", "/mcp", {"name": NAME, "config": config})
            status = _status(entries)
            if status != "connected":
                entry = entries.get(NAME)
                why = str((isinstance(entry, dict) and entry.get("error")) or status)[:200]
                shown = "".join(each if each.isprintable() else "?" for each in why)
                raise _FaultError(f"it could not connect: {shown}")
        except BaseException:
            self.revoke()
            raise
        self._is_ours = True
        self._become("connected")

    def _become(self, state: str, fault: str = "") -> None:
        if (state, fault) == (self.state, self.fault):
            return
        self.state, self.fault = state, fault
        if fault:
            logger.info("OpenCode at %s: %s", self.server.url, fault)
        self._changed()

    async def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Sends one request over its own connection, to this machine only."""
        if not is_loopback(self.server.url):
            raise _FaultError(f"not an address of this machine: {self.server.url}")
        if _is_of_another_user(self.server.url):
            raise _FaultError("a process of another user listens there")
        seconds = TIMEOUT if body is None else CONNECT_TIMEOUT
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as http,
                http.request(
                    method,
                    self.server.url + path,
                    json=body,
                    headers=self.server.headers,
                    allow_redirects=False,
                ) as answer,
            ):
                if answer.status == 401:
                    raise _FaultError(
                        "it requires OPENCODE_SERVER_PASSWORD; set `password_env` to the variable that has it"
                    )
                if answer.status != 200:
                    raise _FaultError(f"HTTP status {answer.status}")
                text = await answer.content.read(MAX_ANSWER)
                while len(text) < MAX_ANSWER and (more := await answer.content.read(MAX_ANSWER)):
                    text += more
        except aiohttp.ClientConnectorError as fault:
            raise _GoneError(f"nothing listens there: {fault.strerror or fault}") from None
        except TimeoutError:
            raise _FaultError("no answer") from None
        except (aiohttp.ClientError, ValueError) as fault:
            raise _FaultError(f"invalid HTTP answer: {str(fault)[:200]}") from None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if path == "/mcp" and not isinstance(value, dict):
            raise _FaultError("the answer is not from OpenCode")
        return value if isinstance(value, dict) else {}


class Registrations:
    """The tokens of single programs: OpenCode servers that Neovim names, and agents started over ACP.

    Args:
        editor: Names the servers and the tokens of agents; gets the states of servers.
        hide: Receives each token, which must not be logged.
        sessions: Those of revoked tokens are deleted.
    """

    def __init__(self, editor: NvimEditor, hide: Callable[[str], None], sessions: Sessions) -> None:
        self._editor = editor
        self._hide = hide
        self._sessions = sessions
        self._by_url: dict[str, Registration] = {}
        self._of_agents: dict[str, OwnToken] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._closed = False
        editor.on("integrations", self._set_servers)
        editor.on("acp_tokens", self._set_tokens)

    def find_by_token(self, values: HeaderValues) -> OwnToken | None:
        """Returns the holder of the token that a request has, in constant time for wrong tokens."""
        found: OwnToken | None = None
        for each in (*self._by_url.values(), *self._of_agents.values()):
            if has_token(values, "authorization", "bearer", each.token):
                found = each
        return found

    async def close(self) -> None:
        """Ends all registrations, within `END_TIMEOUT`."""
        self._closed = True
        for registration in self._by_url.values():
            self._end(registration)
        self._by_url.clear()
        if self._ending:
            _, late = await asyncio.wait(self._ending.values(), timeout=END_TIMEOUT)
            for task in late:
                task.cancel()

    def _set_servers(self, data: Any) -> None:
        if self._closed:
            return
        url = str(data["url"])
        servers = {server.url: server for server in map(_server, data.get("servers") or ())}
        for known, registration in list(self._by_url.items()):
            if registration.server != servers.get(known) or registration.url != url:
                self._end(self._by_url.pop(known))
        for name, server in servers.items():
            if name in self._by_url:
                self._by_url[name].check_soon()
            else:
                self._by_url[name] = Registration(
                    server,
                    url,
                    self._hide,
                    self._sessions.delete_of_token,
                    self._report,
                    self._ending.get(name),
                )
        self._report()

    def _set_tokens(self, tokens: list[str]) -> None:
        for gone in self._of_agents.keys() - set(tokens):
            self._of_agents.pop(gone).revoke()
        for token in tokens:
            self._hide(token)
            self._of_agents.setdefault(token, OwnToken(token, self._sessions.delete_of_token))

    def _end(self, registration: Registration) -> None:
        url = registration.server.url
        task = self._ending[url] = asyncio.get_running_loop().create_task(registration.end())

        def ended(_: asyncio.Task[None]) -> None:
            if self._ending.get(url) is task:
                del self._ending[url]

        task.add_done_callback(ended)

    def _report(self) -> None:
        states = [
            {"url": url, "state": each.state, "fault": each.fault} for url, each in self._by_url.items()
        ]
        if not self._closed:
            self._editor.report("integrations", {"servers": states})


def _server(raw: Any) -> OpenCodeServer:
    headers = {str(name): str(value) for name, value in (raw.get("headers") or {}).items()}
    return OpenCodeServer(str(raw["url"]), headers, raw.get("registered") is True)


def _status(entries: dict[str, Any]) -> str:
    entry = entries.get(NAME)
    return str(entry.get("status")) if isinstance(entry, dict) else "none"


def _is_of_another_user(url: str) -> bool:
    """Whether a process of a user other than us or root listens on the port; False where that is unknown."""
    own = os.getuid()
    port = urlsplit(url).port or 80
    for table in SOCKET_TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue  # not Linux, or no IPv6
        for _, address, _, state, _, _, _, user, *_ in map(str.split, lines):
            if state == LISTENS and int(address.rpartition(":")[2], 16) == port and int(user) not in (0, own):
                return True
    return False
