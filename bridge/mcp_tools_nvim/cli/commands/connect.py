"""`mcp-tools connect CLIENT`: puts this server into an AI client's configuration; shows the diff first."""

from __future__ import annotations

import argparse

from ...client_config import change, skill
from .. import connecting, show


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    connecting.add_client(parser, server=True)
    connecting.add_consent(parser)


def run(options: argparse.Namespace) -> int:
    """Shows, asks, writes."""
    client = connecting.client_of(options)
    scope, root = connecting.scope_of(options)
    try:
        made = change.connect(client, connecting.server_of(options, client, scope, root), scope, root)
        added = connecting.skill_of(client, scope, root, options) if options.skill else None
        changes = [each for each in (made, added) if each is not None and not each.is_empty]
        written = bool(changes) and connecting.agree(changes, options)
        if written:
            if not made.is_empty:
                change.keep(made)
                change.apply(made)
            if added is not None and not added.is_empty:
                skill.apply(added)
    except change.ChangeError as error:
        raise connecting.attempt_fault(error) from error
    advice = connecting.advice_of(options, client, scope, root)
    if options.json:
        show.as_json(
            {
                "path": str(made.path),
                "skill": None if added is None else str(added.path),
                "diff": connecting.diff_of(changes),
                "written": written,
                "needed": bool(changes),
                "advice": advice,
            }
        )
    elif not changes:
        print(f"{client.title} is connected already ({made.path})")
    elif written:
        print(f"{client.title} is connected. {advice}".rstrip())
    else:
        print("Nothing was written.")
    return 0
