"""`mcp-tools call TOOL '{json}'`: one call; Ctrl-C cancels the tool."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from typing import Any

from ...errors import Code
from .. import editors, show
from ..client import Client, RequestError
from ..fault import CommandError, Exit

_ENDS = (signal.SIGTERM, signal.SIGHUP)


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("tool", help="its name, see `mcp-tools tools`")
    parser.add_argument("arguments", nargs="?", default="{}", help="JSON object; - reads it from stdin")
    parser.add_argument("--json", action="store_true", help="for programs: the result as MCP has it")
    editors.add_choice(parser)


def run(options: argparse.Namespace) -> int:
    """Prints what the tool gives, and its progress on a terminal's stderr."""
    arguments = read_arguments(options.arguments)
    bar = show.Bar()
    for each in _ENDS:
        if signal.getsignal(each) == signal.SIG_DFL:  # else nohup or somebody else has seen to it
            signal.signal(each, _interrupt)

    def listen(method: str, params: dict[str, Any]) -> None:
        if method == "notifications/progress":
            bar.show(params.get("progress", 0), params.get("total"), params.get("message"))
        elif method == "notifications/message":
            bar.clear()
            sys.stderr.write(show.plain(f"{params.get('level')}: {params.get('data')}") + "\n")

    with Client(editors.connect(options)) as client:
        params = {"name": options.tool, "arguments": arguments, "_meta": {"progressToken": 1}}
        try:
            result = client.request("tools/call", params, listen)
        except RequestError as error:
            if error.name == Code.UNKNOWN_TOOL:
                raise CommandError(f"{error}; `mcp-tools tools` lists those that there are") from error
            raise
        finally:
            bar.clear()
    if options.json:
        show.as_json(result)
    else:
        for block in result.get("content", []):
            show.block(block)
    return Exit.FAILED if result.get("isError") else Exit.OK


def _interrupt(*_: Any) -> None:
    """As Ctrl-C does: a tool would go on, for an end of the connection calls nothing off."""
    raise KeyboardInterrupt


def read_arguments(text: str) -> dict[str, Any]:
    """Arguments as they are typed: a JSON object, or `-` for what stdin has.

    Raises:
        CommandError: they are none.
    """
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
        # Python reads more than there is in JSON: NaN, numbers without end, halves of characters.
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise CommandError(f"arguments: this is no JSON: {error}", Exit.USAGE) from error
    if not isinstance(value, dict):
        raise CommandError('arguments: they must be a JSON object, such as \'{"path": "a.lua"}\'', Exit.USAGE)
    return value
