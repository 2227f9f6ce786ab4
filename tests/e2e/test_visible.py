"""What strangers write is shown as what it is: compared with the Unicode tables of Python."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Awaitable, Callable

from tests.support.nvim import ROOT, Nvim

HIDING = {"Cc", "Cf", "Zs", "Zl", "Zp"}
"""Categories without a form of their own: controls, formats and everything blank."""


async def test_no_character_hides(spawn_nvim: Callable[..., Awaitable[Nvim]]) -> None:
    """Every control, format and blank character but the space is named, wherever in Unicode it is."""
    codes = [
        code
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in HIDING and chr(code) != " "
    ]
    nvim = await spawn_nvim(init_lua=f"vim.opt.runtimepath:prepend([[{ROOT}]])")
    shown = await nvim.lua(
        "return vim.tbl_map(probe.sanitize.line, ...)", [f"a{chr(code)}b" for code in codes]
    )
    assert shown == [f"a<U+{code:04X}>b" for code in codes]
