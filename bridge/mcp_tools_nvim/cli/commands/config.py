"""`mcp-tools config CLIENT`: what belongs into a client's configuration, to be put there by hand."""

from __future__ import annotations

import argparse

from ...client_config import change
from ...client_config.client import NAME, expand
from .. import connecting, show
from ..fault import CommandError, Exit


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    connecting.add_client(parser, server=True)


def run(options: argparse.Namespace) -> int:
    """Prints the file's name and what belongs into it."""
    client = connecting.client_of(options)
    scope, root = connecting.scope_of(options)
    if scope not in client.files:
        raise CommandError(
            f"{client.title} has no configuration of a {scope}; leave --project out", Exit.USAGE
        )
    entry = client.entry(connecting.server_of(options, client, scope, root))
    try:
        text = change.format_of(client).put("", (*client.path, NAME), entry)
    except change.ChangeError as error:
        raise connecting.attempt_fault(error) from error
    file = expand(client.files[scope])
    advice = connecting.advice_of(options, client, scope, root)
    if options.json:
        show.as_json({"file": file, "text": text, "advice": advice})
        return 0
    print(f"# {file}\n{text.rstrip()}")
    if advice:
        print(f"# {advice}")
    return 0
