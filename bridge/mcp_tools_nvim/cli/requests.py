"""Subcommands for the contents of a Neovim: `call`, `tools`, `resources`, `prompts`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from typing import Any

from ..errors import Code
from ..values import AWAITS_APPROVAL
from . import editors, show
from .client import McpClient, RequestError
from .show import CommandError, Exit

_ENDS = (signal.SIGTERM, signal.SIGHUP)


def add_call(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `call`."""
    parser.add_argument("tool", help="name of the tool, see `mcp-tools tools`")
    parser.add_argument("arguments", nargs="?", default="{}", help="JSON object; - reads it from stdin")
    editors.add_choice(parser, "print the MCP result as JSON")


def run_call(options: argparse.Namespace) -> int:
    """Prints the result of a tool, and its progress on a terminal's stderr."""
    arguments = read_arguments(options.arguments)
    bar, told = show.Bar(), False
    for each in _ENDS:
        if signal.getsignal(each) == signal.SIG_DFL:  # else nohup or the parent ignores it
            signal.signal(each, _interrupt)

    def listen(method: str, params: dict[str, Any]) -> None:
        nonlocal told
        if method == "notifications/progress" and params.get("message") == AWAITS_APPROVAL:
            bar.clear()
            sys.stderr.write("" if told else "waiting for the answer in Neovim\n")
            told = True
        elif method == "notifications/progress":
            bar.show(params.get("progress", 0), params.get("total"), params.get("message"))
        elif method == "notifications/message":
            bar.clear()
            sys.stderr.write(show.printable(f"{params.get('level')}: {params.get('data')}") + "\n")

    with McpClient(editors.connect_bridge(options)) as client:
        params = {"name": options.tool, "arguments": arguments, "_meta": {"progressToken": 1}}
        try:
            result = client.request("tools/call", params, listen)
        except RequestError as error:
            if error.name == Code.UNKNOWN_TOOL:
                raise CommandError(f"{error}; `mcp-tools tools` lists the tools") from error
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
    """Cancels like Ctrl-C: the end of the connection would not cancel the tool."""
    raise KeyboardInterrupt


def read_arguments(text: str) -> dict[str, Any]:
    """Returns arguments from a JSON object, or `-` for stdin.

    Raises:
        CommandError: they are not a JSON object.
    """
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
        # Python accepts values that JSON does not have: NaN, infinity, lone surrogates.
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise CommandError(f"arguments: not valid JSON: {error}", Exit.USAGE) from error
    if not isinstance(value, dict):
        raise CommandError('arguments: they must be a JSON object, such as \'{"path": "a.lua"}\'', Exit.USAGE)
    return value


def add_tools(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `tools`."""
    parser.add_argument("tool", nargs="?", help="show the definition of this tool")
    editors.add_choice(parser, "print MCP definitions as JSON")


def run_tools(options: argparse.Namespace) -> int:
    """Prints a line for each tool, or one definition."""
    with McpClient(editors.connect_bridge(options)) as client:
        tools = list(client.pages("tools/list", "tools"))
    if options.tool is not None:
        tools = [
            tool
            for tool in tools
            if tool["name"] == options.tool or tool["name"].endswith(f"_{options.tool}")
        ]
        exact = [tool for tool in tools if tool["name"] in (options.tool, f"nvim_{options.tool}")]
        tools = exact or tools
        if not tools:
            raise CommandError(f"unknown tool {options.tool}; `mcp-tools tools` lists the tools", Exit.FAILED)
    if options.json:
        show.as_json(tools)
    elif options.tool is not None:
        for tool in tools:
            print(show.printable(f"{tool['name']}\n\n{tool.get('description', '')}\n"))
            show.as_json(tool["inputSchema"])
    else:
        show.table([(tool["name"], tool.get("description", "").split("\n")[0]) for tool in tools])
    return 0


def add_resources(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `resources`."""
    parser.add_argument("uri", nargs="?", help="read this resource, such as nvim://buffers")
    editors.add_choice(parser, "print MCP results as JSON")


def run_resources(options: argparse.Namespace) -> int:
    """Prints a line for each, templates last; or the contents of one."""
    with McpClient(editors.connect_bridge(options)) as client:
        if options.uri is not None:
            contents = client.request("resources/read", {"uri": options.uri}).get("contents", [])
            if options.json:
                show.as_json(contents)
            else:
                for each in contents:
                    show.block({"type": "resource", "resource": each})
            return 0
        found = list(client.pages("resources/list", "resources"))
        templates = list(client.pages("resources/templates/list", "resourceTemplates"))
    if options.json:
        show.as_json({"resources": found, "resourceTemplates": templates})
    else:
        rows = [(each["uri"], each.get("description") or each["name"]) for each in found]
        rows += [(each["uriTemplate"], each.get("description") or each["name"]) for each in templates]
        show.table(rows)
    return 0


def add_prompts(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `prompts`."""
    parser.add_argument("prompt", nargs="?", help="show the messages of this prompt")
    parser.add_argument(
        "arguments", nargs="?", default="{}", help="JSON object of strings; - reads it from stdin"
    )
    editors.add_choice(parser, "print MCP results as JSON")


def run_prompts(options: argparse.Namespace) -> int:
    """Prints a line for each, or the messages of one."""
    arguments = read_arguments(options.arguments)
    with McpClient(editors.connect_bridge(options)) as client:
        found: Any
        if options.prompt is None:
            found = list(client.pages("prompts/list", "prompts"))
        else:
            found = client.request("prompts/get", {"name": options.prompt, "arguments": arguments})
    if options.json:
        show.as_json(found)
    elif options.prompt is None:
        show.table([(each["name"], each.get("description", "")) for each in found])
    else:
        for message in found.get("messages", []):
            print(show.printable(f"{message['role']}:"))
            show.block(message["content"])
    return 0
