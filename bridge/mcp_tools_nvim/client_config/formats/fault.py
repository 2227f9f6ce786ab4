"""What is wrong with a file.

Receives and sends nothing. Does not know about: formats.
"""

from __future__ import annotations


class FormatError(Exception):
    """The text cannot be read, or has something else where an entry belongs; the message says where."""
