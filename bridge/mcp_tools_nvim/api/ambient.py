"""The surroundings of a call from Python: for which editor this process works, and what cancels its calls.

Receives: both from the process that an editor has started for its tools. Sends: nothing; calls look here.
Does not know about: calls, tools.
"""

from __future__ import annotations

from contextvars import ContextVar
from threading import Event

home: str | None = None
"""The address of the editor that this process works for; None elsewhere."""

cancelled: ContextVar[Event | None] = ContextVar("cancelled", default=None)
"""Set when nobody waits any more for what this thread does: its own calls are cancelled then."""
