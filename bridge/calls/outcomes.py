"""Outcomes that the bridge itself makes.

Receives: why a call cannot go on. Sends: outcomes. Does not know about: calls.
"""

from __future__ import annotations

from ..errors import Code
from ..model import Outcome, ToolError


def failed(code: Code, message: str) -> Outcome:
    """A failure with that code."""
    return Outcome("failed", error=ToolError(code, message))


def gone() -> Outcome:
    """There is no editor any more."""
    text = "Neovim is gone (closed or crashed), and the call with it; open it in this project and try again"
    return failed(Code.EDITOR_GONE, text)
