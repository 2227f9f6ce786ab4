"""`mcp-tools disconnect CLIENT`: takes this server out of a client's configuration again."""

from __future__ import annotations

import argparse

from ...clients import change
from .. import connecting, show


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    connecting.add_client(parser, server=False)
    connecting.add_consent(parser)


def run(options: argparse.Namespace) -> int:
    """Shows, asks, writes."""
    _, client = connecting.client_of(options)
    scope, root = connecting.scope_of(options)
    try:
        made = change.disconnect(client, scope, root)
        written = not made.is_empty and connecting.agree(made, options)
        if written:
            change.apply(made)
            change.forget(made)
    except change.ChangeError as error:
        raise connecting.attempt_fault(error) from error
    if options.json:
        show.as_json(
            {"path": str(made.path), "diff": made.diff(), "written": written, "needed": not made.is_empty}
        )
    elif made.is_empty:
        print(f"{client.title} is not connected by {made.path}")
    else:
        print(f"{client.title} is disconnected." if written else "Nothing was written.")
    return 0
