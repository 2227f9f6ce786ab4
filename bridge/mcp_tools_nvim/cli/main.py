"""The command `mcp-tools`: parses the command line, runs one subcommand and reports its error.

A subcommand is imported when it runs, as `stdio` has to start quickly.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from .. import __version__
from ..errors import BridgeError
from .show import CommandError, Exit, printable

COMMANDS = {
    "stdio": "serve MCP on stdin and stdout, for the Neovim of this directory",
    "lsp": "serve LSP on stdin and stdout, by the language servers of that Neovim",
    "list": "list the Neovims with a running bridge",
    "tools": "list tools, or show one",
    "call": "call a tool",
    "resources": "list resources, or read one",
    "prompts": "list prompts, or show the messages of one",
    "doctor": "check the installation and connections",
    "manifest": "print all tools, prompts and resources, also as a skill (SKILL.md)",
    "clients": "list supported AI clients, and whether they are connected",
    "config": "print the configuration of an AI client",
    "connect": "add this server to an AI client's configuration",
    "disconnect": "remove it again",
    "hook": "answer an event of a terminal agent (see `connect --hooks`)",
    "serve": "start a bridge for a Neovim that listens at an address",
    "completion": "print completions for bash, zsh or fish",
}
"""Subcommand → its help text."""

_MODULES = {
    **dict.fromkeys(("call", "tools", "resources", "prompts"), "requests"),
    **dict.fromkeys(("clients", "config", "connect", "disconnect"), "clients"),
    **dict.fromkeys(("list", "doctor"), "status"),
    **dict.fromkeys(("stdio", "lsp", "hook", "serve"), "start"),
}
"""Subcommand → its module, which has `add_NAME` and `run_NAME`; the others have a module of their own."""

_EXITS = (
    "exit codes: 0 done; 1 the tool or the request failed; 2 wrong arguments; 3 no Neovim; 130 interrupted"
)


class _Help(argparse.HelpFormatter):
    """Makes room for the longest subcommand, which argparse measures without its indentation."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = max(map(len, COMMANDS)) + 4


def parser_of(name: str | None) -> argparse.ArgumentParser:
    """Returns the parser, with the arguments of one subcommand, since others would have to be imported."""
    parser = argparse.ArgumentParser(
        prog="mcp-tools",
        description="Use the tools, resources and prompts of a running Neovim from a shell.",
        epilog=_EXITS,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"mcp-tools {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for each, text in COMMANDS.items():
        child = commands.add_parser(each, help=text, description=text[0].upper() + text[1:] + ".")
        if each == name:
            _function("add", each)(child)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Runs one command line; returns the exit code."""
    _open_closed_streams()
    # Before and afterwards the default action ends the process at once, without a traceback.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _silence()  # the reader of the output has closed it
        return Exit.OK
    except OSError as error:
        _silence()
        sys.stderr.write(f"mcp-tools: {printable(str(error))}\n")
        return Exit.FAILED
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return Exit.INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run(arguments: Sequence[str]) -> int:
    name = next((word for word in arguments if not word.startswith("-")), None)
    known = name if name in COMMANDS else None
    options = parser_of(known).parse_args(arguments)
    try:
        return int(_function("run", options.command)(options))
    except BridgeError as error:
        sys.stderr.write(f"mcp-tools {options.command}: {printable(str(error))}\n")
        return error.code if isinstance(error, CommandError) else Exit.FAILED


def _open_closed_streams() -> None:
    """Opens /dev/null for closed streams, so that no connection gets their numbers.

    Characters that the encoding does not have are written as escapes.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _silence() -> None:
    """Drops unwritten output, which would otherwise be written again at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _function(verb: str, name: str) -> Any:
    module = importlib.import_module(f"{__package__}.{_MODULES.get(name, name)}")
    return getattr(module, f"{verb}_{name}")
