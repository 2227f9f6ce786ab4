"""What `connect`, `disconnect` and `config` share: which client, which server, and leave to write.

Receives options. Sends changes that the person has seen. Does not know about: a client's own format.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import re
import sys
from pathlib import Path

from ..client_config import skill
from ..client_config.change import Change, ChangeError, is_for_git
from ..client_config.client import Client, Http, Scope, Server, Stdio
from ..client_config.known import CLIENTS
from ..instances.files import Instance
from ..relay.pump import Missing
from . import editors, offered, program, show
from .fault import CommandError, Exit

_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def add_client(parser: argparse.ArgumentParser, *, server: bool) -> None:
    """Which client; and how it is to reach the editor."""
    parser.add_argument("client", nargs="?", help=f"one of {', '.join(CLIENTS)}")
    parser.add_argument("--project", action="store_true", help="in the files of the project, not in yours")
    parser.add_argument("--json", action="store_true", help="for programs")
    if server:
        parser.add_argument(
            "--http",
            action="store_true",
            help="by the URL of this project's bridge, not by a program (stdio)",
        )
        parser.add_argument(
            "--env",
            metavar="NAME",
            help="with --http: the variable that will hold the token, so no file does",
        )
        parser.add_argument(
            "--skill",
            action="store_true",
            help="and a skill (SKILL.md) that tells when to use the tools; with --project it lists them",
        )
    editors.add_choice(parser)


def add_consent(parser: argparse.ArgumentParser) -> None:
    """How the person agrees."""
    parser.add_argument("--yes", action="store_true", help="write without a question")
    parser.add_argument(
        "--shown",
        metavar="SHA256",
        help="with --yes: of the diff that was agreed to; if it is another by now, nothing is written",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be written")
    parser.add_argument(
        "--token-into-git",
        action="store_true",
        help="write a token into a file of a git repository all the same",
    )


def client_of(options: argparse.Namespace) -> Client:
    """The client that is meant.

    Raises:
        CommandError: there is none of that name; says which ones there are, and which seem to be installed.
    """
    if options.client in CLIENTS:
        return CLIENTS[options.client]
    there = [name for name, client in CLIENTS.items() if client.is_installed]
    text = "which client? " if options.client is None else f"{options.client} is not known; "
    near = [name for name in CLIENTS if options.client and name.startswith(options.client.lower())]
    near = near or difflib.get_close_matches(options.client or "", CLIENTS, n=1)
    text += f"did you mean {' or '.join(near)}? " if near else ""
    text += f"there are {', '.join(CLIENTS)}"
    raise CommandError(f"{text}. Installed here: {', '.join(there) or 'none that is known'}", Exit.USAGE)


def scope_of(options: argparse.Namespace) -> tuple[Scope, Path]:
    """Whose files, and the project's folder.

    Raises:
        CommandError: there is no such folder.
    """
    chosen = editors.choose(options)
    known = isinstance(chosen, Instance) and chosen.root
    try:
        root = Path(known) if known else Path(options.root or ".").resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise CommandError(f"{options.root or 'the working folder'}: {error}", Exit.USAGE) from error
    return ("project" if options.project else "user"), root


def server_of(options: argparse.Namespace, client: Client, scope: Scope, root: Path) -> Server:
    """How the client is to reach the editor.

    Raises:
        CommandError: there is no editor whose URL could be written; or a file would hold the token
            although a variable was named for it.
    """
    if options.env is not None and not options.http:
        raise CommandError("--env: only --http has a token; leave --env out", Exit.USAGE)
    if options.env is not None and not _VARIABLE.fullmatch(options.env):
        raise CommandError(
            f"--env: {options.env} cannot be the name of a variable; take letters, digits and _, such as"
            f" {editors.TOKEN}",
            Exit.USAGE,
        )
    if options.env is not None and client.reference is None:
        raise CommandError(
            f"--env: {client.title} reads no variables there, so its file would hold the token."
            " Leave --http out (then no token is needed), or --env",
            Exit.USAGE,
        )
    if not options.http:
        command, *arguments = program.command_line(scope, root)
        elsewhere = () if options.url is None else ("--url", options.url)
        return Stdio(command, (*arguments, "stdio", *elsewhere))
    chosen = editors.choose(options)
    if isinstance(chosen, Missing):
        raise CommandError(f"--http: {chosen.text}", Exit.NO_EDITOR)
    return Http(chosen.url, chosen.token, options.env)


def skill_of(client: Client, scope: Scope, root: Path, options: argparse.Namespace) -> Change:
    """The skill that `--skill` asks for: that of a project lists its tools, yours holds for all projects.

    Raises:
        CommandError: there is no editor whose tools could be listed.
        ChangeError: see `skill.install`.
    """
    found = offered.ask(editors.connect(options)) if scope == "project" else None
    return skill.install(client, offered.skill(program.command_line(scope, root), found), scope, root)


def advice_of(options: argparse.Namespace, client: Client, scope: Scope, root: Path) -> str:
    """Returns what the user has to know or do once the entry is in the configuration."""
    parts = [client.advice]
    if options.env is not None:
        parts.insert(
            0, f"{client.title} reads the token in ${options.env}: set it (:McpTools endpoint shows it)."
        )
    elif not options.http:
        parts.insert(0, program.advice(scope, root))
    return " ".join(filter(None, parts))


def diff_of(changes: list[Change]) -> str:
    """All of them, as they are shown."""
    return "\n".join(each.diff() for each in changes)


def agree(changes: list[Change], options: argparse.Namespace) -> bool:
    """Shows the changes, and asks for leave to write them; what was agreed to elsewhere is only that.

    Raises:
        CommandError: nobody can be asked; or a token would get into a repository.
    """
    exposed = [change.path for change in changes if change.secret and is_for_git(change.path)]
    if exposed and not options.token_into_git:
        raise CommandError(
            f"{exposed[0]} is in a git repository and not ignored (or git does not say): the token in it"
            " would be for everybody who gets that. Leave --http out, name a variable by --env, or leave"
            " --project out (--token-into-git writes it all the same)"
        )
    diff = diff_of(changes)
    if not options.json:
        print(show.plain(diff))
    if options.dry_run:
        return False
    if options.shown and options.shown != hashlib.sha256(diff.encode("utf-8", "surrogateescape")).hexdigest():
        return False
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise CommandError("nothing was written: nobody can be asked here, --yes writes it", Exit.USAGE)
    sys.stderr.write("Write this? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def attempt_fault(error: ChangeError) -> CommandError:
    """What a change that cannot be made is for the person."""
    return CommandError(str(error))
