"""What ends a command: an exit code, and a text for the person that says what to do.

Receives and sends nothing. Does not know about: commands.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes; `mcp-tools --help` names them."""

    OK = 0
    FAILED = 1  # the tool, or the request
    USAGE = 2
    NO_EDITOR = 3
    INTERRUPTED = 130


class CommandError(Exception):
    """Told on stderr, without a trace."""

    def __init__(self, text: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(text)
        self.code = code
