"""What can go wrong, as the documentation tells it: errors.toml, held against the sources.

Receives: the codes and texts that the sources have. Sends: chapter ERRORS; what differs.
Does not know about: how the texts are found (_messages.py, _messages.lua).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import _vimdoc

FILE = Path(__file__).resolve().parent / "errors.toml"

Found = dict[str, str]
"""`text` and `file`."""


def read(path: Path = FILE) -> dict[str, Any]:
    """What is said of codes and texts."""
    return tomllib.loads(path.read_text())


def shape(text: str) -> str:
    """A text in one form: what is filled in has no length."""
    return re.sub(r"…[… ]*…", "…", text)


def faults(listed: dict[str, Any], codes: Iterable[str], found: list[Found]) -> list[str]:
    """What is in the sources and not listed, listed and in no source, or listed without a cure."""
    known, said = list(codes), listed["codes"]
    groups = [(entry, group["name"]) for group in listed["group"] for entry in group["error"]]
    entries = [(text, shape(text)) for entry, _ in groups for text in entry["texts"]]
    texts, shapes = {shape(each["text"]) for each in found}, [form for _, form in entries]
    out = [f"code {code} has no entry" for code in known if code not in said]
    out += [f"there is no code {code}" for code in said if code not in known]
    out += [
        f"{each['file']}: no entry has the text: {shape(each['text'])}"
        for each in found
        if shape(each["text"]) not in shapes
    ]
    out += [f"no source has the text: {text}" for text, form in entries if form not in texts]
    out += [f"two entries have the text: {text}" for text, form in entries if shapes.count(form) > 1]
    all_entries = [*said.items(), *((entry["texts"][0], entry) for entry, _ in groups)]
    out += [
        f"{name}: say cause and cure"
        for name, entry in all_entries
        if not (entry.get("cause") and entry.get("cure"))
    ]
    return sorted(set(out))


def text_shown(text: str) -> str:
    """A text as the help shows it: bars that touch nothing are no links."""
    return re.sub(r" *\| *", " | ", shape(text))


def code_lines(listed: dict[str, Any], rows: Iterable[tuple[str, str]]) -> list[str]:
    """The codes, each with its meaning, cause and cure."""
    lines: list[str] = []
    for code, meaning in rows:
        lines += _vimdoc.tagged(f"{code} ~", f"mcp-tools-error-{code}")
        lines += [
            *_vimdoc.wrap(f"{meaning[:1].upper()}{meaning[1:]}.", 4),
            *_about(listed["codes"][code]),
            "",
        ]
    return lines[:-1]


def text_lines(listed: dict[str, Any]) -> list[str]:
    """The texts by subject, each with cause and cure."""
    lines: list[str] = []
    for group in listed["group"]:
        lines += _vimdoc.tagged(f"{group['title']} ~", f"mcp-tools-errors-{group['name']}")
        for entry in group["error"]:
            for text in entry["texts"]:
                lines += _vimdoc.wrap(text_shown(text), 2, 4, "- ")
            lines += [*_about(entry), ""]
    return lines[:-1]


def _about(entry: dict[str, str]) -> list[str]:
    return [*_vimdoc.wrap(entry["cause"], 6, 7, "Cause: "), *_vimdoc.wrap(entry["cure"], 6, 7, "Cure:  ")]
