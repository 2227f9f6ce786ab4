"""Chooses the Neovim of a command: by `--url`, `--instance`, the project of the directory, or $NVIM."""

from __future__ import annotations

import argparse
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from ..instances.choose import VARIABLES, holds, is_alive, names, nearest, read_own
from ..instances.files import Instance
from ..relay.bridge_client import BridgeClient, Missing
from .show import CommandError, Exit

WAIT_INTERVAL = 0.5
CONNECT_SECONDS = 1.0
"""Time to connect to the address of a Neovim."""
TOKEN = "NVIM_MCP_TOKEN"  # noqa: S105 - the name of a variable
"""The variable with the token of a Neovim on another machine."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def add_choice(parser: argparse.ArgumentParser, json: str | None = None) -> None:
    """Adds the options that choose a Neovim, and `--json` with the help text `json`."""
    if json is not None:
        parser.add_argument("--json", action="store_true", help=json)
    group = parser.add_argument_group("choice of Neovim")
    group.add_argument(
        "--instance",
        metavar="WHICH",
        help="process id, v:servername or project directory of Neovim (see `mcp-tools list`)",
    )
    group.add_argument(
        "--root", metavar="DIR", help="use the project of this directory instead of the working directory"
    )
    group.add_argument(
        "--url",
        metavar="URL",
        help=f"a Neovim on another machine, whose port is forwarded to this one; its token is in ${TOKEN}",
    )


def choose_bridge(options: argparse.Namespace) -> Instance | Missing:
    """Returns the chosen Neovim; `Missing` lists the available ones.

    Raises:
        CommandError: `--url` is not the URL of a bridge.
    """
    if options.url is not None:
        return _elsewhere(options.url)
    found = read_own()
    if options.instance is not None:
        return _named(options.instance, found)
    own = _surrounding(found) if options.root is None else None
    if isinstance(own, Missing):
        return own
    try:
        here = Path(options.root or ".").resolve(strict=True)
    except OSError as error:
        return own or Missing(f"{options.root or 'the working directory'}: {error.strerror or error}")
    if own is not None and holds(own.root, here):
        return own
    chosen = nearest(here, found)
    if isinstance(chosen, Instance):
        return chosen
    return own or Missing(
        f"{chosen.message}. Start Neovim there (and :McpTools start), or name one by --instance"
    )


def find_bridge(
    options: argparse.Namespace, derive: Callable[[str], str] | None = None
) -> BridgeClient | Missing:
    """Returns a client of the chosen Neovim's bridge, which has proved to know the token.

    Args:
        options: see `add_choice`.
        derive: returns the token to send instead, from that of the bridge.
    """
    chosen = choose_bridge(options)
    if isinstance(chosen, Missing):
        # A running Neovim has no instance file while its bridge restarts.
        return chosen if chosen.may_start else Missing(chosen.text, is_alive(getattr(options, "pid", 0)))
    options.pid = chosen.pid
    try:
        own = {"Authorization": f"Bearer {derive(chosen.token)}"} if derive is not None else None
        endpoint = BridgeClient(chosen.url, chosen.token, own)
    except ValueError as error:
        return Missing(
            f"the Neovim of {chosen.root} (process {chosen.pid}): {error}; run :McpTools restart in it"
        )
    if endpoint.is_ours():
        return endpoint
    if options.url is not None:
        port = endpoint.port
        text = f"no bridge with the token of ${TOKEN} answers at {chosen.url}: is the tunnel up, and its port"
        return Missing(f"{text} the same on both sides (ssh -L {port}:127.0.0.1:{port} HOST)?", True)
    return Missing(
        f"the bridge of {chosen.root} (process {chosen.pid}) does not answer at {chosen.url}:"
        " run :McpTools restart in it",
        True,
    )


def connect_bridge(options: argparse.Namespace) -> BridgeClient:
    """Like `find_bridge`, for a command that cannot wait.

    Raises:
        CommandError: no bridge was found.
    """
    found = find_bridge(options)
    if isinstance(found, Missing):
        raise CommandError(found.text, Exit.NO_EDITOR)
    return found


def wait_for_bridge(options: argparse.Namespace) -> BridgeClient:
    """Waits for the chosen Neovim and returns a client of its bridge."""
    while isinstance(found := find_bridge(options), Missing):
        time.sleep(WAIT_INTERVAL)
    return found


def _surrounding(found: list[Instance]) -> Instance | Missing | None:
    """Returns the Neovim in which this command runs; None if there is none, or if it has ended.

    A process may outlive the Neovim that started it, and serve other projects: $NVIM is then out of date.
    """
    for variable in VARIABLES:
        if address := os.environ.get(variable):
            if inside := next((one for one in found if _same(one.socket, address)), None):
                return inside
            if _answers(address):
                text = f"the Neovim at ${variable} ({address}) has no running bridge"
                return Missing(f"{text}: run :McpTools start in it", True)
    return None


def _answers(address: str) -> bool:
    """Returns whether a process listens at a `v:servername`."""
    host, _, port = address.rpartition(":")
    try:
        if "/" not in address and port.isdecimal():
            socket.create_connection((host.strip("[]") or "127.0.0.1", int(port)), CONNECT_SECONDS).close()
        else:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(CONNECT_SECONDS)
                connection.connect(address)
    except (OSError, OverflowError, ValueError):
        return False
    return True


def _elsewhere(url: str) -> Instance:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if port is None or parts.scheme != "http":
        raise CommandError(
            f"--url: {url} is not the URL of a bridge, such as http://127.0.0.1:7777/mcp", Exit.USAGE
        )
    if host not in _LOOPBACK:
        raise CommandError(
            f"--url: {host} is another machine, and the token would be sent unencrypted;"
            f" forward the port (ssh -L {port}:127.0.0.1:{port} {host}) and name 127.0.0.1",
            Exit.USAGE,
        )
    token = os.environ.get(TOKEN)
    if not token:
        raise CommandError(
            f"--url: ${TOKEN} is not set; :McpTools endpoint shows the token there", Exit.USAGE
        )
    return Instance(0, port, token, url=url)


def _named(which: str, found: list[Instance]) -> Instance | Missing:
    fitting = [
        one for one in found if which == str(one.pid) or _same(one.socket, which) or _same(one.root, which)
    ]
    if fitting:
        return max(fitting, key=lambda one: one.focused_at)
    there = f"running: {names(found)}" if found else "no Neovim has a running bridge"
    return Missing(
        f"--instance: no Neovim is called {which}; {there}", which.isdecimal() and is_alive(int(which))
    )


def _same(one: str, other: str) -> bool:
    if not one:
        return False
    try:
        return one == other or (os.sep in other and Path(one).resolve() == Path(other).expanduser().resolve())
    except (OSError, RuntimeError, ValueError):  # ~NOBODY, for example
        return False
