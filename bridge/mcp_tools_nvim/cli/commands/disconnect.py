"""`mcp-tools disconnect CLIENT`: takes this server, and its skill, out of a client's configuration again."""

from __future__ import annotations

import argparse

from ...client_config import change, skill
from .. import connecting, show


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    connecting.add_client(parser, server=False)
    connecting.add_consent(parser)


def run(options: argparse.Namespace) -> int:
    """Shows, asks, writes."""
    client = connecting.client_of(options)
    scope, root = connecting.scope_of(options)
    try:
        made = change.disconnect(client, scope, root)
        gone = skill.remove(client, scope, root)
        changes = [each for each in (made, gone) if each is not None and not each.is_empty]
        written = bool(changes) and connecting.agree(changes, options)
        if written:
            if not made.is_empty:
                change.apply(made)
                change.forget(made)
            if gone is not None:
                skill.apply(gone)
    except change.ChangeError as error:
        raise connecting.attempt_fault(error) from error
    if options.json:
        show.as_json(
            {
                "path": str(made.path),
                "skill": None if gone is None else str(gone.path),
                "diff": connecting.diff_of(changes),
                "written": written,
                "needed": bool(changes),
            }
        )
    elif not changes:
        print(f"{client.title} is not connected by {made.path}")
    else:
        print(f"{client.title} is disconnected." if written else "Nothing was written.")
    return 0
