"""Folders for editors of tests, whose projects want ports that nobody else wants."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .nvim import Home

FIRST_PORT, PORTS = 20_000, 12_000
"""Of lua/mcp-tools/instances/identity.lua."""


def wanted_port(root: Path) -> int:
    """The sum of lua/mcp-tools/instances/identity.lua."""
    return FIRST_PORT + int(hashlib.sha256(str(root).encode()).hexdigest()[:8], 16) % PORTS


@contextlib.contextmanager
def new_home() -> Iterator[Home]:
    """Empty folders for one editor. Their path is short: a unix socket's may have 108 bytes at most."""
    while True:
        folder = tempfile.TemporaryDirectory(prefix="mcpt-")
        port = wanted_port(Path(folder.name).resolve() / "cwd")
        if _is_of_this_worker(port) and _is_free(port) and _is_free(port + 1):
            break
        folder.cleanup()
    with folder as path:
        yield Home(Path(path))


def _is_of_this_worker(port: int) -> bool:
    """Each process of a run has a share of the ports: nobody takes one between the look and the start."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return (port - FIRST_PORT) * workers // PORTS == worker


def _is_free(port: int) -> bool:
    """Does nobody listen there?"""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) != 0
