"""The command `mcp-tools`: the editor's tools, resources and prompts from a shell; one file a subcommand."""
