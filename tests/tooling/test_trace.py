"""`make trace` draws a real call."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support import processes

ROOT = Path(__file__).resolve().parents[2]

TOOL = "lua/mcp-tools/tools/buffer/list.lua"


@pytest.mark.slow
def test_the_way_of_a_call_is_drawn() -> None:
    """Each line names a file that exists, once: from the bridge to the tool and back."""
    command = [sys.executable, str(ROOT / "scripts" / "trace"), "--plain"]
    done = processes.run(command, timeout=50)
    assert done.returncode == 0, done.stderr
    files = re.findall(r"^((?:bridge|lua)/\S+)", done.stdout, re.MULTILINE)
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert len(files) == len(set(files))
    assert files[0].startswith("bridge/mcp_tools_nvim/http/")
    assert TOOL in files
