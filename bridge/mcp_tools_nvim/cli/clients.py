"""Subcommands for the configuration of AI clients: `clients`, `config`, `connect`, `disconnect`."""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..client_config import change, hooks, lsp, permissions, skill
from ..client_config.change import Change, ChangeError, is_for_git
from ..client_config.client import NAME, AiClient, ConfigLevel, Http, Server, Stdio, expand
from ..client_config.known import CLIENTS
from ..instances.files import Instance, home_of_account
from ..instances.proof import lsp_token
from ..relay.bridge_client import Missing
from ..relay.lsp import TOOL
from . import editors, manifest, program, show
from .client import McpClient
from .show import CommandError, Exit

PERMITTED = "permitted_tools"
"""Tool that returns the names of tools that agents may run without a question."""
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_CONNECT_OPTIONS = {
    "--http": "connect to the URL of this project's bridge instead of starting a process (stdio)",
    "--skill": "also add a skill (SKILL.md) on when to use the tools; with --project it lists them",
    "--hooks": "also add hooks: the model gets what is open, selected and unsaved, and new diagnostics",
    "--lsp": "also add the editor's language servers to the LSP client of this agent",
    "--permissions": "also allow, in your own settings of this agent, the tools that only read",
}


def add_clients(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `clients`."""
    parser.add_argument("--project", action="store_true", help="check project files, not those of the user")
    editors.add_choice(parser, "print JSON")


def run_clients(options: argparse.Namespace) -> int:
    """Prints a line for each client; installed ones first."""
    scope, root = config_level(options)
    found: list[dict[str, Any]] = [
        {"name": name, "title": client.title, "installed": client.is_installed, **_state(client, scope, root)}
        for name, client in CLIENTS.items()
    ]
    found.sort(key=lambda each: not each["installed"])
    if options.json:
        show.as_json(found)
    else:
        rows = [
            (each["name"], each["title"], "installed" if each["installed"] else "", str(each["state"]))
            for each in found
        ]
        show.table([("NAME", "CLIENT", "", "STATE"), *rows])
    return 0


def _state(client: AiClient, scope: ConfigLevel, root: Path) -> dict[str, str]:
    if scope not in client.files:
        return {"state": "has no project files"}
    try:
        made = change.remove_entry(client, scope, root)
        change.add_entry(client, Stdio(""), scope, root)
    except ChangeError as error:
        return {"state": str(error)}
    return {"state": "not connected" if made.is_empty else "connected", "path": str(made.path)}


def add_config(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `config`."""
    add_client(parser, server=True)


def run_config(options: argparse.Namespace) -> int:
    """Prints the path of the file and its text."""
    client = client_of(options)
    scope, root = config_level(options)
    if scope not in client.files:
        raise CommandError(f"{client.title} has no {scope} configuration; omit --project", Exit.USAGE)
    entry = client.entry(server_of(options, client, scope, root))
    text = change.format_of(client).put("", (*client.path, NAME), entry)
    file = expand(client.files[scope])
    advice = advice_of(options, client, scope, root)
    if options.json:
        show.as_json({"file": file, "text": text, "advice": advice})
        return 0
    print(f"# {file}\n{text.rstrip()}")
    if advice:
        print(f"# {advice}")
    return 0


def add_connect(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `connect`."""
    add_client(parser, server=True)
    add_consent(parser)


def run_connect(options: argparse.Namespace) -> int:
    """Shows the change, asks the user, and writes it."""
    client = client_of(options)
    scope, root = config_level(options)
    changes = [change.add_entry(client, server_of(options, client, scope, root), scope, root)]
    paths: dict[str, str | None] = dict.fromkeys(("skill", "hooks", "lsp", "permissions"))
    is_connected, more = changes[0].is_empty, list[str]()
    if options.hooks:
        line = program.hook_line(scope, root, client.hooks.agent if client.hooks else "")
        changes = hooks.add_hooks(changes[0], client, line, scope, root)
        paths["hooks"] = str(changes[-1].path)
        more += hooks_advice(client)
    if options.lsp:
        command = (*program.command_line(scope, root), "lsp")
        changes = lsp.add_lsp(changes, client, command, languages_of(options), scope, root)
        if client.lsp is not None:
            paths["lsp"] = str(file := lsp.path_of(client.lsp, scope, root))
            more.append(client.lsp.advice.replace("%s", shlex.quote(str(file.parent))))
    note = ""
    if options.permissions:
        rules = permissions.rules_of(client, scope)
        tools = ask_editor(options, "--permissions", PERMITTED, {})["tools"]
        changes = permissions.add_permissions(changes, rules, tools, root)
        paths["permissions"] = str(change.resolve(rules.file, root))
        note = permissions.note(client, rules, root)
    if options.skill:
        changes.append(skill_of(client, scope, root, options))
        paths["skill"] = str(changes[-1].path)
    advice = advice_of(options, client, scope, root, more, is_connected=is_connected)
    done = f"{client.title} is configured. {advice}".rstrip()
    unchanged = f"{client.title} is configured already"
    return _offer(options, changes, done, unchanged, note, **paths, advice=advice)


def add_disconnect(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `disconnect`."""
    add_client(parser, server=False)
    parser.add_argument(
        "--permissions", action="store_true", help="remove only the rules of `connect --permissions`"
    )
    add_consent(parser)


def run_disconnect(options: argparse.Namespace) -> int:
    """Shows the change, asks the user, and writes it."""
    client = client_of(options)
    scope, root = config_level(options)
    if options.permissions:
        path = change.resolve(permissions.rules_of(client, scope).file, root)
        changes = permissions.remove_permissions([], client, root) or [Change(path, None, None)]
        done, unchanged = f"{client.title} asks for all tools again.", f"{client.title} has no such rules"
        return _offer(options, changes, done, unchanged)
    changes = hooks.remove_hooks(change.remove_entry(client, scope, root), client, scope, root)
    changes = lsp.remove_lsp(changes, client, scope, root)
    if scope == "user":
        changes = permissions.remove_permissions(changes, client, root)
    text = skill.remove_skill(client, scope, root)
    changes += [text] if text else []
    advice = restart_advice(client)
    done, unchanged = f"{client.title} is disconnected. {advice}", f"{client.title} is not connected"
    return _offer(options, changes, done, unchanged, skill=str(text.path) if text else None, advice=advice)


def _offer(
    options: argparse.Namespace,
    wanted: list[Change],
    done: str,
    unchanged: str,
    note: str = "",
    **more: str | None,
) -> int:
    """Writes the changes if there are any and the user agrees, and prints the outcome.

    Args:
        options: the options of the command.
        wanted: the change of the entry, then others.
        done: printed afterwards.
        unchanged: printed if nothing has to be changed.
        note: shown above the diff.
        more: printed as JSON.

    Raises:
        ChangeError: a file cannot be written.
    """
    path, changes = wanted[0].path, [each for each in wanted if not each.is_empty]
    diff = "\n".join(filter(None, (note if changes else "", *(each.diff() for each in changes))))
    written = bool(changes) and agree(changes, diff, options)
    if written:
        change.apply(changes)
        for each in changes:
            if each.after is None and each is not wanted[0]:
                skill.remove_directory(each)
    if options.json:
        answer = {"path": str(path), "diff": diff, "written": written, "needed": bool(changes)}
        show.as_json({**answer, "files": files_of(changes), **more})
    elif not changes:
        print(f"{unchanged} ({path})")
    else:
        print(done if written else "Nothing was written.")
    return 0


def add_client(parser: argparse.ArgumentParser, *, server: bool) -> None:
    """Adds the arguments for the client and its connection."""
    parser.add_argument("client", nargs="?", help=f"one of {', '.join(CLIENTS)}")
    parser.add_argument("--project", action="store_true", help="use project files, not those of the user")
    if server:
        for option, text in _CONNECT_OPTIONS.items():
            parser.add_argument(option, action="store_true", help=text)
        text = "with --http: read the token from this variable instead of writing it into the file"
        parser.add_argument("--env", metavar="NAME", help=text)
    editors.add_choice(parser, "print JSON")


def add_consent(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the user's consent."""
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument(
        "--shown",
        metavar="SHA256",
        help="with --yes: hash of the accepted diff; if it has changed, nothing is written",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be written")
    parser.add_argument(
        "--token-into-git", action="store_true", help="write a token even into a file of a git repository"
    )


def client_of(options: argparse.Namespace) -> AiClient:
    """Returns the client that the user named.

    Raises:
        CommandError: it is unknown; the message lists known and installed ones.
    """
    if options.client in CLIENTS:
        return CLIENTS[options.client]
    installed = [name for name, client in CLIENTS.items() if client.is_installed]
    text = "name a client. " if options.client is None else f"{options.client} is unknown; "
    near = [name for name in CLIENTS if options.client and name.startswith(options.client.lower())]
    near = near or difflib.get_close_matches(options.client or "", CLIENTS, n=1)
    text += f"did you mean {' or '.join(near)}? " if near else ""
    text += f"known ones: {', '.join(CLIENTS)}"
    raise CommandError(f"{text}. Installed here: {', '.join(installed) or 'none'}", Exit.USAGE)


def config_level(options: argparse.Namespace) -> tuple[ConfigLevel, Path]:
    """Returns whose files are used, and the project root.

    Raises:
        CommandError: the directory does not exist.
    """
    chosen = editors.choose_bridge(options)
    known = isinstance(chosen, Instance) and chosen.root
    try:
        root = Path(known) if known else Path(options.root or ".").resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise CommandError(f"{options.root or 'the working directory'}: {error}", Exit.USAGE) from error
    return ("project" if options.project else "user"), root


def server_of(options: argparse.Namespace, client: AiClient, scope: ConfigLevel, root: Path) -> Server:
    """Returns how the client connects.

    Raises:
        CommandError: no Neovim was found, or the file would contain the token despite --env.
    """
    if options.env is not None and not options.http:
        raise CommandError("--env: only --http uses a token; omit --env", Exit.USAGE)
    if options.env is not None and not _VARIABLE.fullmatch(options.env):
        raise CommandError(
            f"--env: {options.env} is not a valid variable name; use letters, digits and _, such as"
            f" {editors.TOKEN}",
            Exit.USAGE,
        )
    if options.env is not None and client.reference is None:
        raise CommandError(
            f"--env: {client.title} supports no variables there, so its file would contain the token."
            " Omit --http (then no token is needed), or --env",
            Exit.USAGE,
        )
    if not options.http:
        command, *arguments = program.command_line(scope, root)
        elsewhere = () if options.url is None else ("--url", options.url)
        return Stdio(command, (*arguments, "stdio", *elsewhere))
    chosen = editors.choose_bridge(options)
    if isinstance(chosen, Missing):
        raise CommandError(f"--http: {chosen.text}", Exit.NO_EDITOR)
    return Http(chosen.url, chosen.token, options.env)


def languages_of(options: argparse.Namespace) -> dict[str, str]:
    """Returns the extensions of files that have a language server in the editor, and their languages.

    Raises:
        CommandError: no Neovim was found, or it has no language server.
    """
    arguments = {"method": "$/mcp-tools/extensions", "params": {}}
    languages: dict[str, str] = ask_editor(options, "--lsp", TOOL, arguments)
    if not languages:
        raise CommandError("--lsp: no language server here; enable one (:help lsp)")
    return languages


def ask_editor(options: argparse.Namespace, option: str, tool: str, arguments: dict[str, Any]) -> Any:
    """Calls a tool that other clients do not see, and returns its result.

    Args:
        options: see `editors.add_choice`.
        option: named in errors.
        tool: of lua/mcp-tools/agents/lsp.lua.
        arguments: of the tool.

    Raises:
        CommandError: no Neovim was found, or the tool failed.
    """
    found = editors.find_bridge(options, lsp_token)
    if isinstance(found, Missing):
        raise CommandError(f"{option}: {found.text}", Exit.NO_EDITOR)
    with McpClient(found) as client:
        result = client.request("tools/call", {"name": tool, "arguments": arguments})
    text = result["content"][0]["text"]
    if result.get("isError"):
        raise CommandError(f"{option}: {text.removeprefix('Error: ')}")
    return json.loads(text)


def skill_of(client: AiClient, scope: ConfigLevel, root: Path, options: argparse.Namespace) -> Change:
    """Returns the change for `--skill`: the skill of a project lists its tools.

    Raises:
        CommandError: no Neovim was found.
        ChangeError: see `skill.add_skill`.
    """
    found = manifest.read_manifest(editors.connect_bridge(options)) if scope == "project" else None
    return skill.add_skill(client, manifest.skill_text(program.command_line(scope, root), found), scope, root)


def advice_of(
    options: argparse.Namespace,
    client: AiClient,
    scope: ConfigLevel,
    root: Path,
    more: Sequence[str] = (),
    *,
    is_connected: bool = False,
) -> str:
    """Returns notes for the user once the client is configured.

    Args:
        options: the options of the command.
        client: the client.
        scope: whose files are used.
        root: the project root.
        more: notes on what was added besides the entry.
        is_connected: the entry was there already, so its notes are omitted.
    """
    parts = [restart_advice(client), *more]
    if not is_connected:
        parts += [client.advice, client.project_advice if scope == "project" else ""]
    if options.env is not None:
        parts.insert(
            0, f"{client.title} reads the token in ${options.env}: set it (:McpTools endpoint shows it)."
        )
    elif not options.http:
        parts.insert(0, program.path_advice(scope, root))
    return " ".join(filter(None, parts))


def hooks_advice(client: AiClient) -> list[str]:
    """Returns notes on the hooks of a client."""
    parts = [client.hooks.advice if client.hooks else ""]
    account = home_of_account()
    if Path.home().resolve() != Path(account).resolve() and not os.environ.get("XDG_STATE_HOME"):
        # The settings of a project could set HOME.
        parts.append(f"Hooks look for editors below {account}, not $HOME; set XDG_STATE_HOME for both.")
        parts.append(client.hooks.environment_advice if client.hooks else "")
    return parts


def restart_advice(client: AiClient) -> str:
    """Returns the note that a client reads its configuration when it starts."""
    return f"Restart {client.title} if it is running."


def files_of(changes: list[Change]) -> str:
    """Returns the paths of all changes as one text, the home directory as ~."""
    home = f"{Path.home()}/"
    paths = dict.fromkeys(str(each.path) for each in changes)
    return ", ".join(
        show.printable("~/" + path[len(home) :] if path.startswith(home) else path) for path in paths
    )


def agree(changes: list[Change], diff: str, options: argparse.Namespace) -> bool:
    """Shows the diff of the changes and asks whether to write them.

    Raises:
        CommandError: the user cannot be asked, or a token would be written into a repository.
    """
    exposed = [change.path for change in changes if change.secret and is_for_git(change.path)]
    if exposed and not options.token_into_git:
        raise CommandError(
            f"{exposed[0]} is in a git repository and not ignored (or git does not say): the token in it"
            " could be published. Omit --http, name a variable with --env, or omit --project"
            " (--token-into-git writes it anyway)"
        )
    if not options.json:
        print(show.printable(diff))
    if options.dry_run:
        return False
    if options.shown and options.shown != hashlib.sha256(diff.encode("utf-8", "surrogateescape")).hexdigest():
        return False
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise CommandError("nothing was written: stdin is not a terminal; use --yes to write", Exit.USAGE)
    sys.stderr.write(f"Write {files_of(changes)}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
