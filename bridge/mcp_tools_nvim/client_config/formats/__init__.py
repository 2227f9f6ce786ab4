"""Formats of configuration files: each sets or removes one entry, and leaves everything else as it is.

Each module has `read(text)`, the values; `put(text, path, value)` and `remove(text, path)`, the new text.
They raise `FormatError` for a text that they cannot read.
"""


class FormatError(Exception):
    """The text cannot be read, or something else is where the entry belongs; the message says where."""
