"""Subcommands for AI clients: `stdio`, `lsp` and `hook`; `serve` for a Neovim at an address."""

from __future__ import annotations

import argparse
import os
from functools import partial
from importlib.util import find_spec

from ..instances.proof import lsp_token
from ..relay import hook, lsp
from ..relay.serve import serve
from . import editors
from .show import CommandError, Exit

BRIDGE_PACKAGES = ("mcp", "aiohttp", "msgpack", "msgspec")
"""Packages without which the bridge does not start."""


def add_stdio(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `stdio`."""
    editors.add_choice(parser)
    parser.add_argument("--wait", action="store_true", help="answer the client only once a Neovim is running")


def run_stdio(options: argparse.Namespace) -> int:
    """Serves until the client exits."""
    if options.url is not None:
        editors.choose_bridge(options)  # reports an invalid URL at once
    return serve(partial(editors.wait_for_bridge if options.wait else editors.find_bridge, options))


def add_lsp(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `lsp`."""
    editors.add_choice(parser)


def run_lsp(options: argparse.Namespace) -> int:
    """Serves until the client ends it."""
    if options.url is not None:
        editors.choose_bridge(options)  # reports an invalid URL at once
    return lsp.serve(partial(editors.find_bridge, options, lsp_token))


def add_hook(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hook`."""
    parser.add_argument("agent", nargs="?", default="", help="name of the agent, such as claude")


def run_hook(options: argparse.Namespace) -> int:
    """Answers the event on stdin; does not return."""
    hook.main([options.agent])
    return 0


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `serve`; the token is in MCP_AUTH_TOKEN, or generated and shown on a terminal."""
    parser.add_argument("--nvim", metavar="ADDRESS", help="v:servername of Neovim (default: $NVIM)")
    parser.add_argument("--port", type=int, metavar="PORT", help="port to listen on (default: any free one)")


def run_serve(options: argparse.Namespace) -> int:
    """Serves until Neovim or the user ends it."""
    if missing := [name for name in BRIDGE_PACKAGES if find_spec(name) is None]:
        names = ", ".join(missing)
        raise CommandError(f"missing packages: {names}; install mcp-tools-nvim[bridge]", Exit.FAILED)
    from ..process.main import main

    address = options.nvim or os.environ.get("NVIM") or os.environ.get("NVIM_LISTEN_ADDRESS")
    if not address:
        raise CommandError("--nvim is missing: the v:servername of Neovim (`:echo v:servername`)", Exit.USAGE)
    os.environ["NVIM_LISTEN_ADDRESS"] = address
    if options.port is not None:
        if not 0 < options.port < 65536:
            raise CommandError("--port: it must be a number from 1 to 65535", Exit.USAGE)
        os.environ["MCP_PORT"] = str(options.port)
    main()
    return 0
