"""The hook of terminal agents, `python3 -I hook.py AGENT`: the event on stdin, text for the model on stdout.

Stand-alone, since an agent waits for every start of it. It prints nothing and succeeds whatever goes wrong:
without an editor nobody should notice it.

The editor is found by the instance files of this user only. The bridge must prove to know the token in that
file before it gets the event and the token of hooks.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes time
    from collections.abc import Sequence
    from typing import Any

SECONDS = 0.19
"""Time for proof and answer: an editor that is blocked delays the agent no longer."""
DIAGNOSTICS_SECONDS = 1.7
"""Time for the answer to an edit, after the proof."""
MAX_INPUT = 64 * 1024 * 1024
MAX_FILE = 64 * 1024
MAX_ANSWER = 64 * 1024
MAX_TEXT = 2000
LABEL = "mcp-tools.nvim health proof 1"
"""Same as in instances/proof.py."""

EVENTS = {
    "SessionStart": "session",
    "UserPromptSubmit": "prompt",
    "BeforeAgent": "prompt",
    "PostToolUse": "tool",
    "AfterTool": "tool",
}
# Names of the agents' own tools; those of MCP servers have prefixes.
EDITS = ("Edit", "Write", "NotebookEdit", "edit", "write", "create", "replace", "write_file")
PATCHES = ("apply_patch", "patch")
SEARCHES = ("Grep", "grep", "rg", "grep_search", "search_file_content")
SHELLS = ("Bash", "bash", "shell", "run_shell_command")
PATHS = ("file_path", "path", "filePath", "notebook_path")

_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_GREP = re.compile(
    r"""\b(?:rg|ag|ack|(?:git )?[ef]?grep)\b(?:\s+-\S+)*\s+["']?((?:\\b)?\w+(?:\\b)?)["']?(?=\s|$)"""
)
_NAME = re.compile(r"(?:\\b)?([A-Za-z_]\w{2,})(?:\\b)?")


def main(arguments: Sequence[str]) -> None:
    """Handles one event."""
    try:
        given = json.loads(sys.stdin.buffer.read(MAX_INPUT))
        cwd = given.get("cwd") if os.path.isabs(given.get("cwd") or "") else os.getcwd()
        event = event_of(given, cwd)
        instance = find_instance(cwd) if event else None
        if event and instance:
            event["agent"] = arguments[0] if arguments else ""
            if text := ask(instance, event):
                answer: dict[str, Any] = {"additionalContext": text}
                if event["agent"] != "copilot":  # Codex refuses other fields
                    answer["hookEventName"] = given["hook_event_name"]
                    answer = {"hookSpecificOutput": answer}
                sys.stdout.write(json.dumps(answer))
                sys.stdout.flush()
    except BaseException:  # noqa: BLE001, S110 - boundary: agents show errors of hooks
        pass
    os._exit(0)


def event_of(given: dict[str, Any], cwd: str) -> dict[str, Any] | None:
    """Returns the event for the editor; None if it has no use for it."""
    kind = EVENTS.get(str(given.get("hook_event_name")))
    event: dict[str, Any] = {"event": kind, "session": str(given.get("session_id", ""))[:200]}
    if kind == "prompt" and not given.get("prompt"):
        event["event"] = "continue"  # Qwen Code, before each request to its model
    elif kind == "tool":
        values, name = given.get("tool_input"), given.get("tool_name")
        values = values if isinstance(values, dict) else {}
        word = searched(name, values)
        if paths := edited(name, values):
            event["event"] = "edit"
            event["paths"] = [os.path.join(cwd, path) for path in paths][:20]
        elif word:
            event["event"], event["word"] = "search", word
        else:
            return None
    return event if kind else None


def edited(tool: Any, values: dict[str, Any]) -> list[str]:
    """Returns the paths in the arguments of an edit; empty for other tools."""
    command = str(values.get("command", ""))
    if tool in PATCHES or (tool in SHELLS and command.startswith("apply_patch")):
        # Its argument has different names: `command`, `input`, `patchText`.
        return [path.strip() for text in values.values() for path in _PATCHED.findall(str(text))]
    return [values[name] for name in PATHS if isinstance(values.get(name), str)] if tool in EDITS else []


def searched(tool: Any, values: dict[str, Any]) -> str | None:
    """Returns the name that a text search is for; None for other searches and tools."""
    text = values.get("pattern") if tool in SEARCHES else None
    if tool in SHELLS:
        found = _GREP.search(str(values.get("command", "")))
        text = found and found[1]
    found = _NAME.fullmatch(text) if isinstance(text, str) else None
    return found and found[1]


def find_instance(cwd: str) -> dict[str, Any] | None:
    """Returns the running editor of the project, the last focused of several; None if there is none."""
    here = os.path.realpath(cwd)
    found: list[Any] = []
    for directory in directories(here):
        for name in os.listdir(directory):
            one = read_instance(os.path.join(directory, name)) if name.endswith(".json") else None
            root = os.path.realpath(one["root"]).rstrip("/") if one else None
            if one and root is not None and f"{here}/".startswith(f"{root}/"):
                found.append((len(root), float(one.get("focused_at", 0)), one["pid"], len(found), one))
    return max(found)[-1] if found else None


def directories(cwd: str, home: str | None = None) -> list[str]:
    """Returns the private directories of instance files.

    The home directory, by default as the system knows it, may be a repository.

    The settings of a project may set variables, so a directory that one of them names may not be in a
    repository, a repository itself, or below the current directory.
    """
    import pwd

    uid, environ = os.getuid(), os.environ
    home = home or pwd.getpwuid(uid).pw_dir
    name = environ.get("NVIM_APPNAME") or "nvim"
    runtime, state = environ.get("XDG_RUNTIME_DIR"), environ.get("XDG_STATE_HOME")
    found = [f"/run/user/{uid}/mcp-tools", f"{home}/.local/state/nvim/mcp-tools/instances"]
    named = [f"{runtime}/mcp-tools", f"{state or home + '/.local/state'}/{name}/mcp-tools/instances"]
    if os.path.isabs(name):
        named.pop()
    here = [cwd]
    with contextlib.suppress(FileNotFoundError):  # the current directory was removed
        here.append(os.getcwd())
    here = [each for each in here if not is_below(home, each)]
    for path in named:
        is_in_project = in_repository(path, home) or any(is_below(path, each) for each in here)
        if path not in found and os.path.isabs(path) and ".." not in path.split("/") and not is_in_project:
            found.append(path)
    return [path for path in found if os.path.isdir(path) and is_private(os.lstat(path))]


def is_below(path: str, directory: str) -> bool:
    """Whether a path is a directory or in it."""
    path, directory = os.path.realpath(path), os.path.realpath(directory)
    return os.path.commonpath([path, directory]) == directory


def in_repository(path: str, home: str) -> bool:
    """Whether a path is in a git repository other than the home directory, or is one."""
    path, home = os.path.realpath(path), os.path.realpath(home)
    while path == home or not os.path.lexists(os.path.join(path, ".git")):
        path, before = os.path.dirname(path), path
        if path == before:
            return False
    return True


def is_private(about: os.stat_result) -> bool:
    """Whether only this user can use a file or directory."""
    return about.st_uid == os.getuid() and not about.st_mode & 0o077


def read_instance(path: str) -> dict[str, Any] | None:
    """Returns the content of an instance file; None if it is not usable or its editor has ended."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            if not is_private(os.fstat(file.fileno())):
                return None
            one = json.loads(os.fsdecode(file.read(MAX_FILE)))
        if one["pid"] <= 0:
            return None
        os.kill(one["pid"], 0)
        float(one.get("focused_at", 0))
        os.path.realpath(one["root"])
        texts = [one[name] for name in ("root", "token", "hook", "url")]
        return one if all(texts) and all(isinstance(text, str) for text in texts) else None
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def ask(instance: dict[str, Any], event: dict[str, Any]) -> str | None:
    """Returns the text of the bridge for an event; None if another process listens there."""
    import hmac

    port = int(instance["port"])
    host = "::1" if "://[::1]" in instance["url"] else "127.0.0.1"
    name = f"[{host}]" if ":" in host else host
    nonce = os.urandom(16).hex()
    message = f"{LABEL}\0{port}\0{nonce}".encode()
    wanted = hmac.new(instance["token"].encode(), message, "sha256").hexdigest()
    until = time.monotonic() + SECONDS
    with socket.create_connection((host, port), SECONDS) as connection:
        head = f"GET /health?nonce={nonce} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n"
        proof = str(exchange(connection, head.encode(), until).get("proof"))
        if not hmac.compare_digest(proof.encode("utf-8", "replace"), wanted.encode()):
            return None
        body = json.dumps(event).encode()
        head = (
            f"POST /hook HTTP/1.1\r\nHost: {name}:{port}\r\nAuthorization: Bearer {instance['hook']}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        if event["event"] == "edit":
            until = time.monotonic() + DIAGNOSTICS_SECONDS
        text = exchange(connection, head.encode() + body, until).get("text")
    return cut(text) if isinstance(text, str) else None


def cut(text: str) -> str:
    """Returns at most MAX_TEXT bytes without control characters, whatever the bridge sent."""
    text = re.sub(r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f-\x9f]", " ", text)
    return text.encode("utf-8", "replace")[:MAX_TEXT].decode("utf-8", "ignore")


def exchange(connection: socket.socket, request: bytes, until: float) -> dict[str, Any]:
    """Sends a request and returns the JSON object in the body of the answer."""
    connection.sendall(request)
    data, size = b"", None
    while size is None or len(data) < size:
        left = until - time.monotonic()
        if left <= 0 or len(data) > MAX_ANSWER:
            raise TimeoutError
        connection.settimeout(left)
        part = connection.recv(MAX_ANSWER)
        if not part:
            raise ConnectionError
        data += part
        end = data.find(b"\r\n\r\n")
        if size is None and end >= 0:
            status, _, fields = data[:end].partition(b"\r\n")
            length = re.search(rb"(?im)^content-length:\s*(\d+)\s*$", fields)
            if status.split(b" ")[1:2] != [b"200"] or not length:
                raise ConnectionError
            size = end + 4 + int(length[1])
    answer = json.loads(data[end + 4 :])
    return answer if isinstance(answer, dict) else {}


if __name__ == "__main__":
    main(sys.argv[1:])
