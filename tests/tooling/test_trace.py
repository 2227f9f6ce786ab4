"""`make trace` draws a real call; what it shows is what CONTRIBUTING tells of the stages."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support import processes

ROOT = Path(__file__).resolve().parents[2]

STAGES = [
    "bridge/mcp_tools_nvim/http/listener.py",
    "bridge/mcp_tools_nvim/http/guards/token.py",
    "bridge/mcp_tools_nvim/http/streamable.py",
    "bridge/mcp_tools_nvim/sessions/registry.py",
    "bridge/mcp_tools_nvim/mcp/fast_path.py",
    "bridge/mcp_tools_nvim/calls/runner.py",
    "bridge/mcp_tools_nvim/neovim/rpc.py",
    "lua/mcp-tools/wire/init.lua",
    "lua/mcp-tools/call/executor.lua",
    "lua/mcp-tools/registry/store.lua",
    "lua/mcp-tools/trust/gateway.lua",
    "lua/mcp-tools/tools/buffer/list.lua",
    "lua/mcp-tools/call/result.lua",
]
"""What nobody may move without telling: the stages of a call, in this order."""


@pytest.mark.slow
def test_the_way_of_a_call_is_drawn() -> None:
    """Each line names a file that exists, and the stages come in the order in which CONTRIBUTING has them."""
    command = [sys.executable, str(ROOT / "scripts" / "trace"), "--plain"]
    done = processes.run(command, timeout=50)
    assert done.returncode == 0, done.stderr
    files = re.findall(r"^((?:bridge|lua)/\S+)", done.stdout, re.MULTILINE)
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert len(files) == len(set(files))
    assert [file for file in files if file in STAGES] == STAGES
