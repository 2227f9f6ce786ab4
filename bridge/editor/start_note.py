"""Where the editor notes which call it is about to run: a file that both hold open and nobody else can find.

A tool may hold up Neovim's main thread, and then no message says whether its call has begun. An event for
each call would say so, at the price of one more wake-up of this process; a note costs a few microseconds and
is read only when a call is in doubt. Where there is none (Neovim on another machine), the event is sent.

Receives: the editor's notes. Sends: the last one. Does not know about: what is done with it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile

SIZE = 96
"""Bytes of a note: `<call id> <deadline>` in the editor's clock, `-` for none, filled up with blanks."""


def make() -> Marker | None:
    """A marker; None where no temporary file can be had: then the editor sends the event."""
    try:
        return Marker(*tempfile.mkstemp(prefix="mcp-tools-"))
    except OSError:
        return None


class Marker:
    """One file, made empty and open; `hide` it as soon as the editor has opened it."""

    def __init__(self, file: int, path: str) -> None:
        self._file = file
        self.path = path

    def hide(self) -> None:
        """Takes its name away; whoever has it open keeps it."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def read(self) -> tuple[str, int | None] | None:
        """Id and deadline of the call that was begun last; None before the first."""
        call_id, _, deadline = os.pread(self._file, SIZE, 0).decode("ascii", "replace").partition(" ")
        deadline = deadline.strip()
        if deadline == "-":
            return call_id, None
        return (call_id, int(deadline)) if deadline.isdecimal() else None

    def __del__(self) -> None:
        """Lets it go with its last user."""
        os.close(self._file)
