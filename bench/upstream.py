"""An MCP server over stdio without an SDK, with one tool that echoes."""

import json
import sys

TOOL = {
    "name": "echo",
    "description": "Echoes.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bench", "version": "0"},
    },
    "tools/list": {"tools": [TOOL]},
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = RESULTS.get(message["method"])
        if result is None:
            result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
        sys.stdout.flush()
