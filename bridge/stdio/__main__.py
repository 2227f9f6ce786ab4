"""`python -m bridge.stdio`: relays to the one bridge that the environment names; for `acp_server()`.

The environment says where it is: MCP_TOOLS_URL and MCP_TOOLS_TOKEN.
"""

from __future__ import annotations

import os
import sys

from .endpoint import Endpoint
from .pump import Missing
from .serve import serve


def main() -> int:
    """Relays until stdin ends."""
    url, token = os.environ.get("MCP_TOOLS_URL"), os.environ.pop("MCP_TOOLS_TOKEN", None)
    if not url:
        sys.stderr.write("MCP_TOOLS_URL is not set: it names the bridge, and ends in /mcp\n")
        return 2
    try:
        endpoint = Endpoint(url, token)
    except ValueError as error:
        sys.stderr.write(f"MCP_TOOLS_URL: {error}\n")
        return 2

    def find() -> Endpoint | Missing:
        if endpoint.is_ours():
            return endpoint
        return Missing(f"No editor answers at {url}; start it again (:McpTools start)", soon=True)

    return serve(find)


if __name__ == "__main__":
    sys.exit(main())
