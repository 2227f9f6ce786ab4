"""`mcp-tools stdio` compared with its endpoint: a call, the start, the memory."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import servers
from rounds import interleaved
from stage import Stage
from table import Row

from mcp_tools_nvim.relay.bridge_client import BridgeClient
from tests.support import processes

ROOT = Path(__file__).resolve().parents[2]
CALLS = 1000
ADDED_MS, READY_MS, MEMORY_MB = 0.4, 300.0, 20.0
INITIALIZE = {
    "protocolVersion": servers.SESSION_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "0"},
}


@dataclass(frozen=True)
class Took:
    """ms, and MB of memory."""

    ms: float
    mb: float = 0


class Process:
    """The command, as a client runs it; a stateless one sends no `initialize`."""

    def __init__(self, endpoint: BridgeClient, *, is_stateless: bool = False) -> None:
        env = os.environ | {"NVIM_MCP_TOKEN": endpoint.token or ""}
        command = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim"), "stdio", "--url", endpoint.url]
        self.begun = time.perf_counter()
        self.process = processes.begin(
            command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        if is_stateless:
            self.ask(0, "tools/list", {"_meta": servers.META})
            return
        self.ask(0, "initialize", INITIALIZE)
        self.ready = (time.perf_counter() - self.begun) * 1000
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, id_: int, method: str, params: dict[str, Any]) -> str:
        self.send({"id": id_, "method": method, "params": params})
        assert self.process.stdout
        while True:
            line = self.process.stdout.readline()
            if f'"id":{id_}' in line.replace(" ", ""):
                return line

    def memory(self) -> float:
        """Memory in MB, with its share of shared pages."""
        status = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        found = re.search(r"^Pss:\s+(\d+) kB", status, re.MULTILINE)
        assert found
        return int(found[1]) * 1024 / 1e6

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(10)


def through(endpoint: BridgeClient, params: dict[str, Any]) -> Took:
    """The median of many calls through the command; they are stateless if they have metadata."""
    process = Process(endpoint, is_stateless="_meta" in params)
    times = []
    for number in range(1, CALLS):
        begun = time.perf_counter()
        process.ask(number, "tools/call", params)
        times.append((time.perf_counter() - begun) * 1000)
    memory = process.memory()
    process.end()
    return Took(sorted(times)[len(times) // 2], memory)


def straight(endpoint: BridgeClient, params: dict[str, Any]) -> Took:
    """The median of many calls to the endpoint, over one connection."""

    def send(number: int | None, method: str, params: dict[str, Any]) -> str | None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        with endpoint.post(json.dumps(message).encode(), headers) as reply:
            reply.text()
            return reply.header("Mcp-Session-Id")

    headers: dict[str, str] = {}
    if "_meta" in params:
        headers = servers.stateless_headers("tools/call", params["name"])
    else:
        headers["Mcp-Session-Id"] = send(0, "initialize", INITIALIZE) or ""
        send(None, "notifications/initialized", {})
    times = []
    for number in range(1, CALLS):
        begun = time.perf_counter()
        send(number, "tools/call", params)
        times.append((time.perf_counter() - begun) * 1000)
    endpoint.close()
    return Took(sorted(times)[len(times) // 2])


def start(endpoint: BridgeClient) -> Took:
    """The time from the start to the answer to `initialize`."""
    process = Process(endpoint)
    process.end()
    return Took(process.ready)


def bare() -> Took:
    """Python alone."""
    begun = time.perf_counter()
    processes.run([sys.executable, "-c", "import http.client, json"], check=True)
    return Took((time.perf_counter() - begun) * 1000)


async def measure(stage: Stage) -> list[Row]:
    """Measures both in turn."""
    params = servers.call("nvim_echo", "a line of text")["params"]
    stateless = params | {"_meta": servers.META}
    url, token = f"{stage.bridge.url}/mcp", stage.bridge.token
    rounds = await interleaved(
        {
            "through": lambda: asyncio.to_thread(through, BridgeClient(url, token), params),
            "straight": lambda: asyncio.to_thread(straight, BridgeClient(url, token), params),
            "stateless": lambda: asyncio.to_thread(through, BridgeClient(url, token), stateless),
            "stateless straight": lambda: asyncio.to_thread(straight, BridgeClient(url, token), stateless),
            "start": lambda: asyncio.to_thread(start, BridgeClient(url, token)),
            "bare": lambda: asyncio.to_thread(bare),
        },
        stage.amount.rounds,
    )
    ready, memory = rounds.median("start", "ms"), rounds.median("through", "mb")
    added = []
    for name, *ways in (
        ("a call", "through", "straight"),
        ("a stateless call", "stateless", "stateless straight"),
    ):
        stdio, http = (rounds.median(way, "ms") for way in ways)
        value = f"{stdio - http:.2f} ms ({stdio:.2f}; over HTTP {http:.2f})"
        added.append(
            Row(f"stdio: what it adds to {name}, p50", value, f"≤ {ADDED_MS:g} ms", stdio - http <= ADDED_MS)
        )
    return [
        *added,
        Row(
            "stdio: start to the answer to initialize",
            f"{ready:.0f} ms (Python and its HTTP alone {rounds.median('bare', 'ms'):.0f})",
            f"≤ {READY_MS:.0f} ms",
            ready <= READY_MS,
        ),
        Row("stdio: memory", f"{memory:.0f} MB", f"≤ {MEMORY_MB:.0f} MB", memory <= MEMORY_MB),
    ]
