"""Formats of configuration files: each puts one entry in, or takes it out, and touches nothing else.

Each has `read(text)`, the values; `put(text, path, value)` and `remove(text, path)`, the new text; they raise
`FormatError` for a text that they cannot read.
"""
