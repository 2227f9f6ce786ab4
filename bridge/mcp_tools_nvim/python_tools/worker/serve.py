"""The host's process, as the editor starts it.

Receives: the remote plugin's file and import paths as arguments; then msgpack-RPC on stdin and stdout.
Sends: nothing of its own. Everything that tools print goes to stderr, and from there to the plugin's log.
Does not know about: tools.
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
"""s that tools have when the editor is gone or the host is to end."""
HIDDEN = ("NVIM", "NVIM_LISTEN_ADDRESS", "MCP_AUTH_TOKEN")
"""What programs that tools start must not inherit."""
HOME = "MCP_TOOLS_EDITOR"
"""The address of the editor, for tools that call its tools."""


serving = False
"""Is this process ours? A person's own host may load the remote plugin, too."""


def end_all() -> None:
    """End this process with all that tools have started, which would outlive an editor that was killed."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def end_soon() -> None:
    """The same in a while, in case a thread or the loop goes on for ever."""

    def end() -> None:
        time.sleep(GRACE)
        end_all()

    threading.Thread(target=end, daemon=True).start()


def watch_parent() -> None:
    """End when the editor is gone and a tool blocks the loop, which would notice the closed channel."""
    editor = os.getppid()

    def watch() -> None:
        while os.getppid() == editor:
            time.sleep(GRACE)
        end_soon()

    threading.Thread(target=watch, daemon=True).start()


def end_on_sigterm(loop: asyncio.AbstractEventLoop) -> None:
    """Heed SIGTERM although a tool blocks the loop; does nothing in processes that are not ours."""

    def terminate(*_: object) -> None:
        end_soon()
        loop.call_soon_threadsafe(loop.stop)

    if serving and hasattr(signal, "SIGTERM") and os.name == "posix":
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, terminate)


def own_session() -> Any:
    """A session on our stdin; tools, and what they start, find theirs empty instead."""
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
    with contextlib.suppress(AttributeError, OSError):
        os.setsid()  # a group of its own, so that what tools have started can be ended with it
    watch_parent()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                line_buffering=True, errors="backslashreplace"
            )  # what tools print comes at once
    sys.path.extend(import_paths)
    sys.argv = ["mcp-tools", plugin]
    import pynvim

    from ..modules import prepare_process

    prepare_process()
    # pynvim raises whatever has closed the channel; nobody is there to hear of it.
    with contextlib.suppress(Exception, SystemExit):
        pynvim.start_host(own_session())
    for stream in (sys.stdout, sys.stderr):
        # Last words: a tool may have closed it or put another there, and Neovim may be gone.
        with contextlib.suppress(Exception):
            stream.flush()
    end_all()
