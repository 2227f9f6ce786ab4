"""The main function of the bridge's process. It prints one line on stdout, everything else on stderr.

Exit codes: 0 told to end or editor gone; 1 it could not start, and the last line says what to do.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING

from ..errors import BridgeError
from .environment import take

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any


logger = logging.getLogger(__name__)


def main() -> None:
    """Runs the bridge; does not return."""
    # Before the event loop has its own handlers: being told to end is no error.
    for name in ("SIGTERM", "SIGINT"):
        signal.signal(getattr(signal, name), lambda *_: os._exit(0))
    # Imports make no garbage worth a look; the lifecycle turns it on again.
    gc.disable()
    from . import log

    log.install_handler(log.LogHandler())
    try:
        environment = take(os.environ, log.is_terminal())
        handler = log.LogHandler(environment.log_file)
        log.install_handler(handler)
        if environment.token_made:
            print(f"MCP_AUTH_TOKEN was not set; token of this run: {environment.token}", file=sys.stderr)
        from .lifecycle import run

        async def life() -> None:
            _leave(await run(environment, handler))

        _run_loop(life())
    except BridgeError as error:
        logger.error("%s", error)
        _leave(1)


def _run_loop(life: Coroutine[Any, Any, None]) -> None:
    """On uvloop where there is one: a call takes a fifth less time on it."""
    try:
        import uvloop
    except ImportError:
        import asyncio

        asyncio.run(life)
    else:
        uvloop.run(life)


def _leave(code: int) -> None:
    """Ends at once: a thread that still imports the SDK must not hold the end up."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # closed by its reader
    os._exit(code)
