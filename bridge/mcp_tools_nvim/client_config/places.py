"""Where a client's files are here: many of them can be told another place by a variable of the environment.

Receives a path with `~` and `${NAME:-otherwise}`. Sends it as the client itself would read it.
Does not know about: clients, what is in files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


def named(path: str) -> str:
    """With its variables filled in; one that is empty or no absolute path counts as unset."""

    def value(found: re.Match[str]) -> str:
        own = os.environ.get(found[1], "")
        return own if os.path.isabs(own) else found[2]

    return _VARIABLE.sub(value, path)


def place(path: str) -> Path:
    """The path itself, also out of the home folder."""
    return Path(os.path.expanduser(named(path)))
