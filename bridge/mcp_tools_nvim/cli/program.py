"""How another program starts this command: what `connect` writes into the configuration of a client."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from ..client_config.client import ConfigLevel

NAME = "mcp-tools"
PACKAGE = Path(__file__).resolve().parent.parent
PYTHON_SECONDS = 5.0
_WHERE = """import sys
if sys.version_info < (3, 11): sys.exit(1)
print(sys.executable if sys.prefix == sys.base_prefix else sys._base_executable)"""
_OURS = re.compile(rb"from mcp_tools_nvim\.__main__ import|\bbridge/mcp_tools_nvim\b")
"""What a console script of this package has in it, or a script around a checkout of the plugin."""
_MAX_SCRIPT = 1024 * 1024


def command_line(scope: ConfigLevel, root: Path) -> list[str]:
    """Returns the beginning of a command line that starts this program.

    The file of a project is for everyone who works on it, so it names the command. That of the user gets
    absolute paths: the client may have another PATH, and the name is one that other programs may have.

    Args:
        scope: whose configuration it is for.
        root: the project, from whose directories no program is taken.
    """
    if scope == "project":
        return [NAME]
    program = next((path for path in _on_path(NAME, root) if is_this(path)), None)
    return [str(program)] if program else [_python(root), "-I", str(PACKAGE)]


def path_advice(scope: ConfigLevel, root: Path) -> str:
    """Returns what the user of such an entry has to know; empty if there is nothing to do."""
    if scope != "project":
        return ""
    first = next(iter(_on_path(NAME, root)), None)
    checkout = PACKAGE.parent.parent
    source = str(checkout) if (checkout / "pyproject.toml").is_file() else "mcp-tools-nvim"
    text = f"The entry works for everyone who has the command {NAME} on PATH"
    if first is None:
        return f"{text}; here it is not: pipx install {source}."
    if not is_this(first):
        return f"{text}; here {first} is another program of that name."
    return f"{text}."


def is_this(path: Path) -> bool:
    """Returns whether a program is this one, by what is in it: it is not run to find that out."""
    try:
        with path.open("rb") as file:
            return _OURS.search(file.read(_MAX_SCRIPT)) is not None
    except OSError:
        return False


def _on_path(name: str, root: Path) -> list[Path]:
    """Returns the programs of a name in the order of PATH.

    Left out are those of a project, and of environments, which are on PATH only while they are active.
    """
    names = [f"{name}.exe", f"{name}.cmd"] if os.name == "nt" else [name]
    found, inside = [], os.path.realpath(root)
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        folder = Path(entry)
        # The functions of `os.path`, since those of `Path` raise for a directory that cannot be read.
        if not folder.is_absolute() or os.path.exists(folder.parent / "pyvenv.cfg"):
            continue
        if Path(os.path.realpath(folder)).is_relative_to(inside):
            continue
        found += [path for each in names if os.access(path := folder / each, os.X_OK) and path.is_file()]
    return found


def _python(root: Path) -> str:
    """Returns a Python that stays: the system's, if it is new enough; the plugin's own is replaced at times.

    It is asked where it really is: the one on PATH may be a shim of a version manager (pyenv, asdf, mise),
    which a client without this shell's environment cannot run (it may be another in the directory of a
    project, so it is asked outside of one).
    """
    system = next(iter(_on_path("python3", root)), None)
    if system is None:
        return sys.executable
    try:
        done = subprocess.run(
            [system, "-I", "-c", _WHERE], capture_output=True, timeout=PYTHON_SECONDS, check=False, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return sys.executable
    found = os.fsdecode(done.stdout).strip()
    return found if done.returncode == 0 and os.access(found, os.X_OK) else sys.executable
