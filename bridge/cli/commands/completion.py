"""`mcp-tools completion SHELL`: a script for the shell's start-up file."""

from __future__ import annotations

import argparse

from ..main import COMMANDS

_TOOLS = "mcp-tools tools 2>/dev/null | cut -d' ' -f1 | LC_ALL=C grep -x '[A-Za-z0-9_./-]*'"
"""Their names, but for those that a shell would act on: servers that are mounted name theirs as they like."""

_SCRIPTS = {
    "bash": """\
_mcp_tools() {
  local word="${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "@COMMANDS@" -- "$word"))
  elif [ "$COMP_CWORD" -eq 2 ] && { [ "${COMP_WORDS[1]}" = call ] || [ "${COMP_WORDS[1]}" = tools ]; }; then
    COMPREPLY=($(compgen -W "$(@TOOLS@)" -- "$word"))
  else
    COMPREPLY=($(compgen -W "--instance --root --url --json --help" -- "$word"))
  fi
}
complete -o default -F _mcp_tools mcp-tools""",
    "zsh": """\
#compdef mcp-tools
_mcp_tools() {
  if (( CURRENT == 2 )); then
    compadd @COMMANDS@
  elif (( CURRENT == 3 )) && [[ $words[2] == (call|tools) ]]; then
    compadd -- ${(f)"$(@TOOLS@)"}
  else
    compadd -- --instance --root --url --json --help
  fi
}
compdef _mcp_tools mcp-tools""",
    "fish": """\
complete -c mcp-tools -f
complete -c mcp-tools -n __fish_use_subcommand -a "@COMMANDS@"
complete -c mcp-tools -n "__fish_seen_subcommand_from call tools" \\
  -a "(mcp-tools tools 2>/dev/null | string split -f1 ' ' | string match -r '^[A-Za-z0-9_./-]+$')"
complete -c mcp-tools -l instance -r
complete -c mcp-tools -l root -r -F
complete -c mcp-tools -l url -r
complete -c mcp-tools -l json""",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("shell", choices=sorted(_SCRIPTS), help="put its output where that shell looks")


def run(options: argparse.Namespace) -> int:
    """Prints the script."""
    print(_SCRIPTS[options.shell].replace("@COMMANDS@", " ".join(COMMANDS)).replace("@TOOLS@", _TOOLS))
    return 0
