"""`mcp-tools config CLIENT`: what belongs into a client's configuration, to be put there by hand."""

from __future__ import annotations

import argparse
import importlib

from ...clients import places
from ...clients.client import NAME
from .. import connecting, show


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    connecting.add_client(parser, server=True)


def run(options: argparse.Namespace) -> int:
    """Prints the file's name and what belongs into it."""
    _, client = connecting.client_of(options)
    scope, _ = connecting.scope_of(options)
    entry = client.entry(connecting.server_of(options, client), client)
    form = importlib.import_module(f"...clients.formats.{client.format}", __package__)
    text = form.put("", (*client.path, NAME), entry)
    file = places.named(client.files.get(scope) or client.files["user"])
    if options.json:
        show.as_json({"file": file, "text": text, "advice": client.advice})
        return 0
    print(f"# {file}\n{text.rstrip()}")
    if client.advice:
        print(f"# {client.advice}")
    return 0
