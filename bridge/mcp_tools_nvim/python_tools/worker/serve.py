"""The main function of the worker process.

Arguments are the remote plugin's file and import paths; stdin and stdout are the msgpack-RPC channel. Output
of tools goes to stderr, and from there to the plugin's log.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import sys
import threading
import time
from typing import Any

from ...api import client as api

GRACE = 0.5
"""Seconds for tools to end when Neovim has exited or the worker is stopped."""
HIDDEN = ("NVIM", "NVIM_LISTEN_ADDRESS", "MCP_AUTH_TOKEN")
"""Variables that child processes of tools must not inherit."""
HOME = "MCP_TOOLS_EDITOR"
"""Variable with the address of Neovim, for tools that call its tools."""


serving = False
"""Whether this is our worker; the user's own Python host may load the remote plugin as well."""


def end_all() -> None:
    """End this process and all child processes of tools, which would outlive a killed Neovim."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def end_soon() -> None:
    """Call `end_all` after `GRACE`, in case a thread or the loop never ends."""

    def end() -> None:
        time.sleep(GRACE)
        end_all()

    threading.Thread(target=end, daemon=True).start()


def watch_parent() -> None:
    """End when Neovim has exited while a tool blocks the loop, which would notice the closed channel."""
    editor = os.getppid()

    def watch() -> None:
        while os.getppid() == editor:
            time.sleep(GRACE)
        end_soon()

    threading.Thread(target=watch, daemon=True).start()


def end_on_sigterm(loop: asyncio.AbstractEventLoop) -> None:
    """End on SIGTERM even if a tool blocks the loop. Does nothing in the user's own host."""

    def terminate(*_: object) -> None:
        end_soon()
        loop.call_soon_threadsafe(loop.stop)

    if serving:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, terminate)


def own_session() -> Any:
    """Returns a session on our stdin; tools and their child processes get an empty stdin."""
    import pynvim  # type: ignore[import-untyped]

    for_tools, channel, empty = sys.stdin, os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    sys.stdin = os.fdopen(channel, "rb", buffering=0)
    try:
        return pynvim.stdio_session()
    finally:
        sys.stdin = for_tools


def main(plugin: str, *import_paths: str) -> None:
    """Serve until the channel closes."""
    global serving
    serving = True
    for name in HIDDEN:
        os.environ.pop(name, None)
    api.home = os.environ.pop(HOME, None) or None
    with contextlib.suppress(OSError):
        os.setsid()  # a process group, so that child processes of tools can be ended
    watch_parent()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    sys.path.extend(import_paths)
    sys.argv = ["mcp-tools", plugin]
    import pynvim

    from ..modules import prepare_process

    prepare_process()
    # boundary: pynvim raises exceptions of several types when the channel is closed, and the process ends.
    with contextlib.suppress(Exception, SystemExit):
        pynvim.start_host(own_session())
    for stream in (sys.stdout, sys.stderr):
        # boundary: a tool may have closed it, or replaced it by an object that raises anything.
        with contextlib.suppress(Exception):
            stream.flush()
    end_all()
