"""The licences of what a user of the bridge installs, from the metadata of the packages themselves."""

from __future__ import annotations

import re
from email import message_from_string
from importlib import metadata
from pathlib import Path

# As SPDX has them; older metadata is free text.
SPDX = {
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "MIT License": "MIT",
}
# Of other systems, so not here to be asked; as their metadata has it.
ELSEWHERE = {"pywin32": ("PSF-2.0", "https://github.com/mhammond/pywin32")}
# No system that has a Neovim.
NOWHERE = "sys_platform == 'emscripten'"
_PIN = re.compile(r"^([\w.-]+)==([^\s;\\]+)([^\\\n]*)", re.MULTILINE)


def names(lock: Path) -> list[str]:
    """The packages that a lock installs somewhere."""
    return [name for name, _, marker in _PIN.findall(lock.read_text()) if NOWHERE not in marker]


def of(name: str) -> tuple[str, str]:
    """Licence and address of a package.

    Raises:
        ValueError: it does not say.
    """
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    about = message_from_string(metadata.distribution(name).read_text("METADATA") or "")
    free = (about.get("License") or "").strip()
    licence = about.get("License-Expression") or SPDX.get(free, free)
    if not licence or "\n" in licence:
        raise ValueError(f"{name} does not say its licence in a line; say it in scripts/_licences.py")
    links = [each.partition(", ")[::2] for each in about.get_all("Project-URL", [])]
    chosen = [url for label, url in links if re.search("source|repo|github|code|home", label, re.IGNORECASE)]
    return licence, about.get("Home-page") or (chosen or [url for _, url in links] or [""])[0]


def table(lock: Path) -> list[str]:
    """A row for each package, by its name."""
    rows = ["| Package | Licence | |", "| --- | --- | --- |"]
    for name in sorted(names(lock)):
        licence, address = of(name)
        rows.append(f"| {name} | {licence} | {f'<{address}>' if address else ''} |")
    return rows
