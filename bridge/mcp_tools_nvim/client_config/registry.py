"""Which clients there are: the files of this folder that have a `CLIENT`.

Receives a name. Sends what is known of that client. Does not know about: what is written.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
from pathlib import Path

from .client import Client
from .places import place

_OTHERS = frozenset({"client", "registry", "change", "places", "skill"})


def names() -> list[str]:
    """All of them, as the command has them: with dashes."""
    here = [str(Path(__file__).parent)]
    modules = (each for each in pkgutil.iter_modules(here) if not each.ispkg and each.name not in _OTHERS)
    return sorted(module.name.replace("_", "-") for module in modules)


def find(name: str) -> Client | None:
    """One of them, by its name."""
    module = name.replace("-", "_")
    if name not in names():
        return None
    client: Client = importlib.import_module(f"{__package__}.{module}").CLIENT
    return client


def is_there(client: Client) -> bool:
    """Whether it seems to be installed; what cannot be looked at is not there."""
    return any(map(shutil.which, client.programs)) or any(
        os.path.isdir(place(each)) for each in client.folders
    )
