"""Subcommands that serve: `stdio` for an AI client, `serve` for an editor that listens."""

from __future__ import annotations

import argparse
import os
from functools import partial

from ..relay.serve import serve
from . import editors
from .show import CommandError, Exit


def add_stdio(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `stdio`."""
    editors.add_choice(parser)
    parser.add_argument("--wait", action="store_true", help="answer the client only once there is an editor")


def run_stdio(options: argparse.Namespace) -> int:
    """Until the client ends."""
    if options.url is not None:
        editors.choose_bridge(options)  # what is wrong with it is said at once
    return serve(partial(editors.wait_for_bridge if options.wait else editors.find_bridge, options))


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Its arguments; the token comes from MCP_AUTH_TOKEN, or on a terminal is made and shown."""
    parser.add_argument("--nvim", metavar="ADDRESS", help="v:servername of the editor (default: $NVIM)")
    parser.add_argument(
        "--port", type=int, metavar="PORT", help="where to listen (default: any that is free)"
    )


def run_serve(options: argparse.Namespace) -> int:
    """Until the editor or the user ends it."""
    from ..process.main import main

    address = options.nvim or os.environ.get("NVIM") or os.environ.get("NVIM_LISTEN_ADDRESS")
    if not address:
        raise CommandError("--nvim: say where the editor listens (`:echo v:servername` in it)", Exit.USAGE)
    os.environ["NVIM_LISTEN_ADDRESS"] = address
    if options.port is not None:
        if not 0 < options.port < 65536:
            raise CommandError("--port: it must be a number from 1 to 65535", Exit.USAGE)
        os.environ["MCP_PORT"] = str(options.port)
    main()
    return 0
