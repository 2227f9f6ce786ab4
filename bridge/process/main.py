"""The main function of `python -m bridge`. Prints one line on stdout, everything else on stderr.

Exit codes: 0 told to end or editor gone; 1 it could not start, and the last line says what to do.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import TYPE_CHECKING

from ..errors import BridgeError
from .environment import take

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any


def main() -> None:
    """Runs the bridge; does not return."""
    # Before the event loop has its own handlers: being told to end is no error.
    for name in ("SIGTERM", "SIGINT"):
        signal.signal(getattr(signal, name), lambda *_: os._exit(0))
    # Imports make no garbage worth a look; the lifecycle turns it on again.
    gc.disable()
    from .log import Log, adopt_standard_logging, is_terminal

    log = Log()
    try:
        environment = take(os.environ, is_terminal())
        if environment.log_file is not None:
            log = Log(environment.log_file)
        adopt_standard_logging(log)
        if environment.token_made:
            print(f"MCP_AUTH_TOKEN was not set; token of this run: {environment.token}", file=sys.stderr)
        from .lifecycle import run

        async def life() -> None:
            _leave(await run(environment, log))

        _run_loop(life())
    except BridgeError as error:
        log.error(str(error))
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
