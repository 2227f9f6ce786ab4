"""Starts the bridge and notes which file calls into which: Neovim runs it in place of the bridge."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HERE = str(ROOT / "bridge") + "/"

entries: list[tuple[int, str, str]] = []
names: dict[CodeType, str] = {}


def look(frame: FrameType, event: str, argument: Any) -> None:
    """Note a call of a function of the bridge, when the last one was in another file."""
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(HERE) or code.co_name.startswith("<"):
        return
    if not entries or entries[-1][1] != code.co_filename:
        entries.append((time.monotonic_ns(), code.co_filename, code.co_qualname))


def begin(*_: object) -> None:
    """A call is about to come."""
    entries.clear()


def write(*_: object) -> None:
    """It has ended."""
    found = [(at, str(Path(file).relative_to(ROOT)), function) for at, file, function in entries]
    target = Path(sys.argv[1])
    new = target.with_suffix(".new")
    new.write_text(json.dumps(found))
    new.replace(target)


def main() -> None:
    """Become the bridge."""
    sys.path.insert(0, str(ROOT / "bridge"))
    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, write)
    from mcp_tools_nvim.process.main import main as run

    sys.setprofile(look)
    run()


if __name__ == "__main__":
    main()
