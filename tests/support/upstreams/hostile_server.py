"""An MCP server without an SDK that tries to overload its client: `python hostile_server.py HOW`.

HOW selects a function below for the list of tools, and what the tool `go` does.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

SCHEMA = {"type": "object", "properties": {}}
GO = {"name": "go", "inputSchema": SCHEMA}
HOW = sys.argv[1]
asked = {"tools/list": 0}


def send(message: dict[str, Any], times: int = 1) -> None:
    sys.stdout.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n") * times)
    sys.stdout.flush()


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = SCHEMA
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def endless() -> dict[str, Any]:
    page = asked["tools/list"]
    large = [{"name": f"t{page}_{i}", "inputSchema": SCHEMA, "description": "x" * 100_000} for i in range(10)]
    return {"tools": [GO, *large] if page == 1 else large, "nextCursor": str(page)}


def changing() -> dict[str, Any]:
    time.sleep(0.1)
    return {"tools": [GO, {**GO, "name": f"t{asked['tools/list']}"}]}


def change_on_and_on(number: int) -> None:
    for _ in range(60):
        send({"method": "notifications/tools/list_changed"}, 10)
        time.sleep(0.02)
    send({"id": number, "result": {"content": [{"type": "text", "text": str(asked["tools/list"])}]}})


LISTS: dict[str, Callable[[], dict[str, Any]]] = {
    "endless": endless,
    "changing": changing,
    "bad": lambda: {"tools": [GO, *[0] * 20_000]},
    "deep": lambda: {"tools": [GO, {"name": "deep", "inputSchema": deep(150)}]},
    "names": lambda: {
        "tools": [
            GO,
            *({"name": n, "inputSchema": SCHEMA} for n in ("a\x1b[31mb", "a\u202eb", "a\nb", "a\0b")),
        ]
    },
}


def flood(number: int, token: Any) -> dict[str, Any] | None:
    match HOW:
        case "garbage":
            sys.stdout.write("{x\n" * 20_000)
        case "logs":
            send({"method": "notifications/message", "params": {"level": "info", "data": "m"}}, 5000)
        case "progress":
            params = {"progressToken": token, "progress": 1, "message": "m"}
            send({"method": "notifications/progress", "params": params}, 5000)
        case "large logs":
            params = {"level": "info", "data": "m" * 1_000_000}
            send({"method": "notifications/message", "params": params}, 20)
        case "large progress":
            params = {"progressToken": token, "progress": 1, "message": "m" * 1_000_000}
            send({"method": "notifications/progress", "params": params}, 20)
        case "changing":
            threading.Thread(target=change_on_and_on, args=(number,)).start()
            return None
        case "unreadable":
            value = '{"a":' * 500 + "1" + "}" * 500
            sys.stdout.write(f'{{"jsonrpc":"2.0","id":{number},"result":{value}}}\n')
            sys.stdout.flush()
            return None
        case "error":
            send({"id": number, "error": {"code": -32000, "message": "E" * 1_000_000}})
            return None
        case "structured":
            return {"content": [], "structuredContent": {"x": "E" * 11_000_000}}
        case "question":
            params = {"message": "m" * 11_000_000, "requestedSchema": SCHEMA}
            send({"id": "q", "method": "elicitation/create", "params": params})
            answer: dict[str, Any] = {}
            while answer.get("id") != "q":
                answer = json.loads(sys.stdin.readline())
            return {"content": [{"type": "text", "text": json.dumps(answer)}]}
        case "pings":
            name = "p" * 2000
            for i in range(3000):
                send({"id": f"{name}{i}", "method": "ping"})
            pongs = 0
            while select.select([0], [], [], 0.3)[0]:
                pongs += os.read(0, 1 << 20).count(name.encode())
            return {"content": [{"type": "text", "text": str(pongs)}]}
    return {"content": [{"type": "text", "text": str(asked["tools/list"])}]}


def result_of(method: str, number: int, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        name = "n" * 100_000 if HOW == "name" else "hostile"
        about = {"name": name, "version": "0"}
        capabilities = {"tools": {"listChanged": True}, "logging": {}}
        return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": about}
    if method == "tools/list":
        asked[method] += 1
        return LISTS.get(HOW, lambda: {"tools": [GO]})()
    if method == "tools/call":
        return flood(number, params.get("_meta", {}).get("progressToken"))
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = result_of(message["method"], message["id"], message.get("params") or {})
        if result is not None:
            send({"id": message["id"], "result": result})
