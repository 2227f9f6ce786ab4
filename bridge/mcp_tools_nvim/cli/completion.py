"""Subcommand `completion`: prints a completion script for a shell."""

from __future__ import annotations

import argparse

from ..client_config.known import CLIENTS
from .main import COMMANDS

_TOOLS = "mcp-tools tools 2>/dev/null | cut -d' ' -f1 | LC_ALL=C grep -x '[A-Za-z0-9_./-]*'"
"""Prints the names of tools, without names with special characters, which mounted servers may have."""

_SCRIPTS = {
    "bash": """\
_mcp_tools() {
  local word="${COMP_WORDS[COMP_CWORD]}"
  local names="--instance --root --url --json --help"
  case "$COMP_CWORD ${COMP_WORDS[1]}" in
    "1 "*) names="@COMMANDS@" ;;
    "2 call" | "2 tools") names="$(@TOOLS@)" ;;
    "2 config" | "2 connect" | "2 disconnect") names="@CLIENTS@ --project --json --help" ;;
    "2 completion") names="@SHELLS@" ;;
  esac
  COMPREPLY=($(compgen -W "$names" -- "$word"))
}
complete -o default -F _mcp_tools mcp-tools""",
    "zsh": """\
#compdef mcp-tools
_mcp_tools() {
  if (( CURRENT == 2 )); then
    compadd @COMMANDS@
  elif (( CURRENT == 3 )) && [[ $words[2] == (call|tools) ]]; then
    compadd -- ${(f)"$(@TOOLS@)"}
  elif (( CURRENT == 3 )) && [[ $words[2] == (config|connect|disconnect) ]]; then
    compadd @CLIENTS@
  elif (( CURRENT == 3 )) && [[ $words[2] == completion ]]; then
    compadd @SHELLS@
  else
    compadd -- --instance --root --url --json --help
  fi
}
compdef _mcp_tools mcp-tools""",
    "fish": """\
complete -c mcp-tools -f
complete -c mcp-tools -n __fish_use_subcommand -a "@COMMANDS@"
complete -c mcp-tools -n "__fish_seen_subcommand_from call tools" \\
  -a "(mcp-tools tools 2>/dev/null | string split -f1 ' ' | string match -r '^[A-Za-z0-9_./-]+\\$')"
complete -c mcp-tools -n "__fish_seen_subcommand_from config connect disconnect" -a "@CLIENTS@"
complete -c mcp-tools -n "__fish_seen_subcommand_from completion" -a "@SHELLS@"
complete -c mcp-tools -l instance -r
complete -c mcp-tools -l root -r -F
complete -c mcp-tools -l url -r
complete -c mcp-tools -l json""",
}


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `completion`."""
    parser.add_argument("shell", choices=sorted(_SCRIPTS), help="the shell")


def run_completion(options: argparse.Namespace) -> int:
    """Prints the script."""
    script = _SCRIPTS[options.shell].replace("@TOOLS@", _TOOLS)
    for mark, names in (("COMMANDS", COMMANDS), ("CLIENTS", CLIENTS), ("SHELLS", sorted(_SCRIPTS))):
        script = script.replace(f"@{mark}@", " ".join(names))
    print(script)
    return 0
