"""`mcp-tools` as a program: what its console scripts call, and `python -m mcp_tools_nvim.cli`.

Receives: the command line of the process. Sends: it to `main`. Does not know about: what a command line says.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # while the rest is imported, Ctrl-C prints no trace

from .main import script  # noqa: E402

__all__ = ["script"]

if __name__ == "__main__":
    script()
