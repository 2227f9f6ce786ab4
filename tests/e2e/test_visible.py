"""Invisible characters are made visible: compared with the Unicode tables of Python."""

from __future__ import annotations

import sys
import unicodedata

from tests.support.nvim import ROOT, Spawn

HIDING = {"Cc", "Cf", "Zs", "Zl", "Zp"}
"""Categories of invisible characters: controls, formats and blanks."""


async def test_every_invisible_character_is_shown_by_its_code(spawn_nvim: Spawn) -> None:
    every = range(sys.maxunicode + 1)
    codes = [code for code in every if unicodedata.category(chr(code)) in HIDING and chr(code) != " "]
    nvim = await spawn_nvim(init_lua=f"vim.opt.runtimepath:prepend([[{ROOT}]])")
    shown = await nvim.lua(
        "return vim.tbl_map(probe.sanitize.line, ...)", [f"a{chr(code)}b" for code in codes]
    )
    assert shown == [f"a<U+{code:04X}>b" for code in codes]
