"""Our hooks in the configuration of a client: entries among those of others, or a file of their own."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import change
from .change import Change, ChangeError
from .client import AiClient, ConfigLevel, Hooks
from .formats import FormatError, jsonc, value_at

_OURS = re.compile(r"\bmcp_tools_nvim[/\\]+relay[/\\]+hook\.py\b|\bmcp-tools[\"', ]+hook\b")
"""Text in the command line of our hook."""

_PLUGIN = """\
// By mcp-tools: `connect --hooks` writes this file, `disconnect` removes it.
import { spawn } from "node:child_process"

const COMMAND = %s
const TOOLS = ["edit", "write", "patch", "apply_patch", "grep", "bash"]

function ask(directory, event) {
  return new Promise((resolve) => {
    let out = ""
    const options = { cwd: directory, stdio: ["pipe", "pipe", "ignore"], timeout: 5000 }
    const child = spawn(COMMAND[0], COMMAND.slice(1), options)
    child.on("error", () => resolve(""))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (data) => (out += data))
    child.on("close", () => {
      try {
        resolve(JSON.parse(out).hookSpecificOutput.additionalContext)
      } catch {
        resolve("") // no answer, or another program
      }
    })
    child.stdin.end(JSON.stringify({ cwd: directory, ...event }))
  })
}

export const NvimTools = async ({ directory }) => ({
  "chat.message": async ({ sessionID }, output) => {
    const event = { hook_event_name: "UserPromptSubmit", session_id: sessionID, prompt: "-" }
    const text = await ask(directory, event)
    const first = output.parts[0]
    if (!text || !first) return
    output.parts.push({ ...first, id: first.id + "0", type: "text", text, synthetic: true })
  },
  "tool.execute.after": async ({ sessionID, tool, args }, output) => {
    if (!TOOLS.includes(tool) || typeof output.output !== "string") return
    const event = { hook_event_name: "PostToolUse", session_id: sessionID, tool_name: tool, tool_input: args }
    const text = await ask(directory, event)
    if (text) output.output += "\\n\\n" + text
  },
})
"""


def add_hooks(
    entry: Change, client: AiClient, command: Sequence[str], scope: ConfigLevel, root: Path
) -> list[Change]:
    """Returns the changes of `connect` with hooks.

    Args:
        entry: the change without hooks; its file may be the same.
        client: the client.
        command: the command line of the hook.
        scope: whose files are used.
        root: the project root.

    Raises:
        ChangeError: the client has no hooks, or the file cannot be changed.
    """
    hooks, path = client.hooks, _path(client, scope, root)
    if hooks is None or path is None:
        raise ChangeError(f"{client.title} has no {scope} hooks; omit --hooks")
    if not hooks.is_own:
        return change.edited([entry], path, lambda text: _put(text, hooks, command), _removed)
    before = change.read_text(path)
    if before is not None and not _OURS.search(before):
        raise ChangeError(f"{path} is not a file of this server; nothing was changed. Move it away first")
    after = _PLUGIN % json.dumps(list(command))
    if hooks.matcher is not None:
        after = json.dumps({"version": 1, "hooks": _entries(hooks, command)}, indent=2) + "\n"
    return [entry, Change(path, before, after)]


def remove_hooks(entry: Change, client: AiClient, scope: ConfigLevel, root: Path) -> list[Change]:
    """Returns the changes of `disconnect`; raises like `add_hooks`."""
    hooks, path = client.hooks, _path(client, scope, root)
    if hooks is None or path is None:
        return [entry]
    if not hooks.is_own:
        return change.edited([entry], path, _removed, _removed)
    before = change.read_text(path)
    return [entry, Change(path, before, None)] if before and _OURS.search(before) else [entry]


def _path(client: AiClient, scope: ConfigLevel, root: Path) -> Path | None:
    name = client.hooks.files.get(scope) if client.hooks else None
    return None if name is None else change.resolve(name, root)


def _entries(hooks: Hooks, command: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Returns our entry of each event."""
    run = {"type": "command", "command": shlex.join(command), "timeout": hooks.timeout}
    entry = {"hooks": [run if hooks.name is None else {"name": hooks.name, **run}]}
    return {
        event: [entry if event != hooks.events[-1] else {"matcher": hooks.matcher, **entry}]
        for event in hooks.events
    }


def _table(text: str) -> dict[str, Any]:
    """Returns the hooks of a client."""
    table = value_at(jsonc.read(text), ("hooks",))
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise FormatError("hooks: not an object")
    return table


def _put(text: str, hooks: Hooks, command: Sequence[str]) -> str:
    for event, (entry,) in _entries(hooks, command).items():
        there = _table(text).get(event) or []
        if not isinstance(there, list):
            raise FormatError(f"hooks.{event}: not a list")
        index = next((i for i, each in enumerate(there) if _is_ours(each)), len(there))
        text = jsonc.put(
            text, ("hooks", event, str(index)) if there else ("hooks", event), entry if there else [entry]
        )
    return text


def _removed(text: str) -> str:
    for event, there in _table(text).items():
        if isinstance(there, list):
            text = jsonc.remove_where(text, ("hooks", event), lambda _, entry: _is_ours(entry))
    return text


def _is_ours(entry: Any) -> bool:
    """Whether all commands of an entry are our hook."""
    runs = entry.get("hooks") if isinstance(entry, dict) else None
    if not isinstance(runs, list) or not runs:
        return False
    return all(isinstance(run, dict) and _OURS.search(str(run.get("command"))) for run in runs)
