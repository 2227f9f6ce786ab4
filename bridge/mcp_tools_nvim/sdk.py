"""Imports the MCP SDK in a thread, since that takes half a second.

One import at a time: the packages of the SDK import each other, and two threads would see incomplete ones.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import threading

_lock = threading.Lock()
_loaded: set[str] = set()


async def import_sdk(module: str) -> None:
    """Imports a module that imports the SDK.

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
        # The SDK has 10^5 permanent objects; a full collection that visits them takes 50 ms at p99.
        gc.collect()
        gc.freeze()
