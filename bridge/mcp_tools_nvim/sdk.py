"""Loads the MCP SDK: this takes half a second, so it happens in a thread, one load at a time.

The packages of the SDK import each other. Two threads that import parts of it at the same moment get packages
that are not complete yet.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import threading

_lock = threading.Lock()
_loaded: set[str] = set()


async def import_sdk(module: str) -> None:
    """Imports a module that is built on the SDK.

    Args:
        module: Full name of the module.

    Raises:
        Exception: What the import raises. The next call tries it again.
    """
    if module not in _loaded:
        await asyncio.to_thread(_import, module)


def _import(module: str) -> None:
    with _lock:
        if module in _loaded:
            return
        importlib.import_module(module)
        _loaded.add(module)
        # The SDK is 10^5 permanent objects; walking them in every full collection costs 50 ms at p99.
        gc.collect()
        gc.freeze()
