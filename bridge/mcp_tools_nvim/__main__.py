"""Entry point of the command `mcp-tools` and of the processes that Neovim starts.

python3 -I bridge/mcp_tools_nvim stdio                a subcommand of `mcp-tools`, from a checkout
python3 -I bridge/mcp_tools_nvim process.main         the function `main` of a module of the package
"""

from __future__ import annotations

import importlib
import os
import signal
import sys

if not __package__:
    # Python has put this directory on the path, where `http` and `mcp` would hide other packages.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def script() -> None:
    """Runs the command line of this process: the console scripts call it."""
    name, *arguments = sys.argv[1:] or [""]
    if "." in name and all(part.isidentifier() for part in name.split(".")):
        importlib.import_module(f"mcp_tools_nvim.{name}").main(*arguments)
        return
    if name == "hook" and not {"-h", "--help"} & {*arguments}:
        importlib.import_module("mcp_tools_nvim.relay.hook").main(arguments)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports prints no traceback
    run = importlib.import_module("mcp_tools_nvim.cli.main").run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    script()
