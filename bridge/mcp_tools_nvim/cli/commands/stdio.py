"""`mcp-tools stdio`: what an AI client starts; it forwards to the right editor, across restarts of it."""

from __future__ import annotations

import argparse
from functools import partial

from ...relay.serve import serve
from .. import editors


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    editors.add_choice(parser)
    parser.add_argument("--wait", action="store_true", help="answer the client only once there is an editor")


def run(options: argparse.Namespace) -> int:
    """Until the client ends."""
    if options.url is not None:
        editors.choose(options)  # what is wrong with it is said at once
    return serve(partial(editors.wait if options.wait else editors.reach, options))
