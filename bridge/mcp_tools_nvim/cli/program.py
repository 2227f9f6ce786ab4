"""The command line that starts this program, for the configuration of clients."""

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
_IF_ON_PATH = 'command -v "$0" >/dev/null || exit 0; exec "$0" "$@"'
_IF_PRESENT = '[ -x "$0" ] && [ -e "$1" ] || exit 0; exec "$0" -I "$@"'
_WHERE = """import sys
if sys.version_info < (3, 11): sys.exit(1)
print(sys.executable if sys.prefix == sys.base_prefix else sys._base_executable)"""
_OURS = re.compile(rb"from mcp_tools_nvim\.__main__ import|\bbridge/mcp_tools_nvim\b")
"""Text in a console script of this package, or in a script that runs a checkout of the plugin."""
_MAX_SCRIPT = 1024 * 1024


def command_line(scope: ConfigLevel, root: Path) -> list[str]:
    """Returns the beginning of a command line that starts this program.

    The file of a project is shared, so it names the command. That of the user gets absolute paths, since the
    client may have another PATH, and other programs may have the same name.

    Args:
        scope: whose configuration it is for.
        root: the project; programs inside it are not used.
    """
    if scope == "project":
        return [NAME]
    program = next((path for path in _on_path(NAME, root) if is_this(path)), None)
    return [str(program)] if program else [_python(root), "-I", str(PACKAGE)]


def hook_line(scope: ConfigLevel, root: Path, agent: str) -> list[str]:
    """Returns the command line of a hook. It stays the same, since Codex trusts a hash of it.

    It succeeds where the plugin is not installed: Python exits with 2 for a missing file, and by that code a
    hook blocks the prompt. It starts its own shell, since agents run it by the user's shell, `sh` or none.
    """
    if scope == "project":
        return ["sh", "-c", _IF_ON_PATH, NAME, "hook", agent]
    return ["sh", "-c", _IF_PRESENT, _python(root), str(PACKAGE / "relay" / "hook.py"), agent]


def path_advice(scope: ConfigLevel, root: Path) -> str:
    """Returns what the user has to do for such an entry; empty if nothing."""
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
    """Returns whether a file is this program, without running it."""
    try:
        with path.open("rb") as file:
            return _OURS.search(file.read(_MAX_SCRIPT)) is not None
    except OSError:
        return False


def _on_path(name: str, root: Path) -> list[Path]:
    """Returns the programs of a name in the order of PATH.

    Skips those inside the project and those of virtual environments, which may be active only now.
    """
    found, inside = [], os.path.realpath(root)
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        directory = Path(entry)
        # The functions of `os.path`, since those of `Path` raise for a directory that cannot be read.
        if not directory.is_absolute() or os.path.exists(directory.parent / "pyvenv.cfg"):
            continue
        if Path(os.path.realpath(directory)).is_relative_to(inside):
            continue
        path = directory / name
        if os.access(path, os.X_OK) and path.is_file():
            found.append(path)
    return found


def _python(root: Path) -> str:
    """Returns a permanent Python: the system's if it is new enough, since the plugin's own may be replaced.

    The one on PATH may be a shim of a version manager (pyenv, asdf, mise) that works in this shell only, so
    it is asked for its real path, outside of any project.
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
