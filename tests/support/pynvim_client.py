"""A plain pynvim client that calls a tool of a running editor.

    python tests/support/pynvim_client.py SOCKET TOOL JSON

Prints the outcome as JSON.
"""

from __future__ import annotations

import json
import sys
import time

import pynvim  # type: ignore[import-untyped]

CALL = """
local name, args = ...
vim.g.outcome = nil
require('mcp-tools').call(name, args, function(result, err)
  vim.g.outcome = { result = result, err = err }
end)
"""


def main(socket: str, name: str, args: str) -> None:
    """Calls a tool and prints the outcome."""
    with pynvim.attach("socket", path=socket) as nvim:
        nvim.exec_lua(CALL, name, json.loads(args))
        deadline = time.monotonic() + 20
        while not nvim.vars.get("outcome") and time.monotonic() < deadline:
            time.sleep(0.01)
        print(json.dumps(nvim.vars.get("outcome")))


if __name__ == "__main__":
    main(*sys.argv[1:])
