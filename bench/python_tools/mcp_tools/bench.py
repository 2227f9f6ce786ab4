"""The Python twin of the benched echo in bench/tools.lua."""

from mcp_tools_nvim.python_tools import mcp_tool


@mcp_tool(annotations={"read_only": True})
def py_echo(text: str) -> str:
    """Returns its text."""
    return text
