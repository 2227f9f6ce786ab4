"""The echo tool of bench/tools.lua in Python."""

from mcp_tools_nvim.python_tools import mcp_tool


@mcp_tool(annotations={"read_only": True})
def py_echo(text: str) -> str:
    """Returns its text."""
    return text
