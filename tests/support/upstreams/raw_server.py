"""An MCP server without an SDK that violates the protocol: `python raw_server.py HOW`.

- `malformed`: lists invalid definitions and a valid one, and prints lines that are not messages.
- `stubborn`: ignores the end of its input and TERM, and so does its child.
- `silent`: never answers.
- `hasty`: adds a tool right after it has listed them, and announces it.
- `tools`: has only tools.
- `broken`: prints a reason on stderr and exits.
- `refusing`: answers every request with an error.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

SCHEMA = {"type": "object", "properties": {}}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


late: list[dict[str, Any]] = []


def listed(method: str) -> dict[str, Any]:
    if method == "tools/list":
        return {
            "tools": [
                {"name": "good", "inputSchema": SCHEMA},
                {"name": "no_schema"},
                {"name": 7, "inputSchema": SCHEMA},
                "not a tool",
                {"name": "remote", "inputSchema": {**SCHEMA, "$ref": "https://example.com/schema.json"}},
                {"name": "good", "inputSchema": SCHEMA, "description": "again"},
                *late,
            ]
        }
    if method == "resources/list":
        return {"resources": [{"uri": "Not A URI", "name": "bad"}, {"uri": "ok://x", "name": "ok"}]}
    return {"prompts": [{"name": "fine"}, {"description": "nameless"}]}


def answer(message: dict[str, Any]) -> None:
    method, number = message.get("method", ""), message.get("id")
    if number is None:
        return
    if method == "initialize":
        about = {"name": "raw", "version": "0"}
        kinds = ("tools",) if sys.argv[1] == "tools" else ("tools", "resources", "prompts")
        capabilities: dict[str, Any] = {kind: {} for kind in kinds}
        result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": about}
        send({"id": number, "result": result})
    elif method == "resources/templates/list":
        send({"id": number, "error": {"code": -32601, "message": "no"}})
    elif method.endswith("/list"):
        send({"id": number, "result": listed(method)})
    elif method == "tools/call":
        print("this is no message\n{}\n[1]", flush=True)
        send({"id": 12345, "result": {}})
        send({"id": number, "result": {"content": [{"type": "text"}]}})
    else:
        send({"id": number, "error": {"code": -32601, "message": "no"}})


def hasten(message: dict[str, Any]) -> None:
    if message.get("method") == "tools/list" and not late:
        late.append({"name": "late", "inputSchema": SCHEMA})
        send({"method": "notifications/tools/list_changed"})


def main(how: str) -> None:
    if how == "broken":
        print("no license was found", file=sys.stderr)
        sys.exit(3)
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
    for line in sys.stdin:
        message = json.loads(line)
        if how == "refusing" and "id" in message:
            error = {"code": -32000, "message": "the licence has run out"}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        elif how != "silent":
            answer(message)
        if how == "hasty":
            hasten(message)
    if how == "stubborn":
        os.close(1)
        time.sleep(600)


main(sys.argv[1])
