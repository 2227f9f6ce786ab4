"""Explains why Neovim is blocked, and how to unblock it."""

from __future__ import annotations

from ..values import Mode

_TABLE: tuple[tuple[str, str], ...] = (
    ("rm", 'it shows a "-- More --" prompt: press Space or q in it'),
    ("r?", "it asks a question (a confirm dialog): answer it there"),
    ("r", "it shows a hit-enter prompt: press Enter in it"),
    ("!", "a shell command runs in it: wait until that ends, or press Ctrl-C there"),
    ("no", "an operator waits for its motion: press Esc in it"),
    ("n", 'a command waits for its next key (as after g, " or Ctrl-W): press Esc in it'),
    ("i", "insert mode waits for a key (as after Ctrl-R): press Esc in it"),
    ("R", "replace mode waits for a key: press Esc in it"),
    *((mode, "visual mode waits for a key: press Esc in it") for mode in "vV\x16"),
    ("s", "select mode waits for a key: press Esc in it"),
    ("c", "its command line waits for a key: press Esc in it"),
    ("t", "its terminal mode waits for a key: press Esc in it"),
)
"""The first matching prefix applies; see `:help mode()`."""


def advice(mode: Mode | None) -> str:
    """Returns why Neovim does not answer, and what to press; `mode` is None if Neovim did not return it."""
    if mode is None:
        return "Neovim is busy: no answer for 2 s"
    for prefix, text in _TABLE:
        if mode.name.startswith(prefix):
            return f'Neovim is blocked (mode "{mode.name}"): {text}'
    return f'Neovim is blocked (mode "{mode.name}"): press Esc in it'


def blocked_text(mode: Mode | None) -> str:
    """Returns the error of a call that was not started."""
    return f"{advice(mode)}. The tool did not run and will not run later; try again when Neovim responds."
