"""Calling the tools of a running editor from a Python program: straight to Neovim, without a bridge.

What a process that an editor has started for its tools notes here, its calls go by.
"""

from __future__ import annotations

from contextvars import ContextVar
from threading import Event

home: str | None = None
"""The address of the editor that this process works for; None elsewhere."""

cancelled: ContextVar[Event | None] = ContextVar("cancelled", default=None)
"""Set when nobody waits any more for what this thread does: its own calls are cancelled then."""
