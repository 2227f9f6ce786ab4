"""MCP on the kernel of its SDK, which nobody else imports: requests become verbs of the editor, and calls."""
