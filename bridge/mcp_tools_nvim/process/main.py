"""The main function of the bridge's process. It prints the ready line on stdout, everything else on stderr.

Exit codes: 0 after a signal or the exit of Neovim; 1 if it cannot start: the last line says how to fix that.
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
    # Before the event loop has its handlers, a signal exits with 0, too.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    # Imports make little garbage; lifecycle.py enables it again.
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
    """Runs the event loop, on uvloop if installed: a call then takes 20 % less time."""
    try:
        import uvloop
    except ImportError:
        import asyncio

        asyncio.run(life)
    else:
        uvloop.run(life)


def _leave(code: int) -> None:
    """Exits without waiting for threads: one may be importing the SDK."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # the reader has closed it
    os._exit(code)
