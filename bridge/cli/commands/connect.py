"""`mcp-tools connect CLIENT`: puts this server into an AI client's configuration; shows the diff first."""

from __future__ import annotations

import argparse

from ...clients import change
from .. import connecting, show


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    connecting.add_client(parser, server=True)
    connecting.add_consent(parser)


def run(options: argparse.Namespace) -> int:
    """Shows, asks, writes."""
    _, client = connecting.client_of(options)
    scope, root = connecting.scope_of(options)
    try:
        made = change.connect(client, connecting.server_of(options), scope, root)
        written = not made.is_empty and connecting.agree(made, options)
        if written:
            change.keep(made)
            change.apply(made)
    except change.ChangeError as error:
        raise connecting.attempt_fault(error) from error
    if options.json:
        show.as_json(
            {
                "path": str(made.path),
                "diff": made.diff(),
                "written": written,
                "needed": not made.is_empty,
                "advice": client.advice,
            }
        )
    elif made.is_empty:
        print(f"{client.title} is connected already ({made.path})")
    elif written:
        print(f"{client.title} is connected. {client.advice}".rstrip())
    else:
        print("Nothing was written.")
    return 0
