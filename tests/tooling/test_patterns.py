"""Lua patterns take linear time.

Lua tries an unanchored pattern at every byte. If each attempt reads a run to its end and then fails, the time
is quadratic: `[^\\n]*$` takes seconds for a line of 30 kB. A line whose text is always short may say so:
`-- bounded: why`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.nvim import ROOT

CALL = re.compile(r"\b(?:find|g?match|gsub|g?split)\s*\(")
PLAIN = re.compile(r"\s*,\s*(?:\w[\w.]*(?:\s*\+\s*\d+)?\s*,\s*true|\{[^}]*plain = true)")
LITERAL = re.compile(r"'((?:\\.|[^'\\\n])*)'|\"((?:\\.|[^\"\\\n])*)\"")
ESCAPE = re.compile(r"\\(\d{1,3}|x[0-9a-fA-F]{2}|z\s*|.)", re.S)
ITEM = re.compile(r"%b..|%f\[\^?\]?(?:%.|[^\]])*\]|%.|\[\^?\]?(?:%.|[^\]])*\]|[()]|.", re.S)
NAMED = {"a": "abtnvfr", "n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "b": "\b", "0": "\0"}
ALL = frozenset(range(256))
CLASSES = {
    "a": {c for c in range(128) if chr(c).isalpha()},
    "d": set(range(48, 58)),
    "l": set(range(97, 123)),
    "u": set(range(65, 91)),
    "s": {9, 10, 11, 12, 13, 32},
    "w": {c for c in range(128) if chr(c).isalnum()},
    "x": {ord(c) for c in "0123456789abcdefABCDEF"},
    "p": {c for c in range(33, 127) if not chr(c).isalnum()},
    "c": {*range(32), 127},
    "z": {0},
}


def decoded(literal: str) -> str:
    """The text of a Lua string literal, a character for each byte."""

    def one(found: re.Match[str]) -> str:
        text = found.group(1)
        if text[0].isdigit():
            return chr(int(text) % 256)
        if text[0] == "x" and len(text) == 3:
            return chr(int(text[1:], 16))
        return "" if text[0] == "z" else NAMED.get(text, text)

    return ESCAPE.sub(one, literal.encode().decode("latin-1"))


def class_of(letter: str) -> frozenset[int]:
    """The bytes that `%x` matches."""
    known = CLASSES.get(letter.lower())
    if known is None:
        return frozenset({ord(letter) % 256})
    return frozenset(ALL - known if letter.isupper() else known)


def set_of(item: str) -> frozenset[int]:
    """The bytes that a single item matches."""
    if item == ".":
        return ALL
    if item.startswith("%"):
        return class_of(item[1])
    if not item.startswith("[") or len(item) < 3:
        return frozenset({ord(item[0]) % 256})
    inner, out, at = item[1:-1], set(), 0
    negated = inner.startswith("^")
    inner = inner[1:] if negated else inner
    while at < len(inner):
        if inner[at] == "%" and at + 1 < len(inner):
            out |= class_of(inner[at + 1])
            at += 2
        elif at + 2 < len(inner) and inner[at + 1] == "-":
            out |= set(range(ord(inner[at]) % 256, ord(inner[at + 2]) % 256 + 1))
            at += 3
        else:
            out.add(ord(inner[at]) % 256)
            at += 1
    return frozenset(ALL - out if negated else out)


def items_of(pattern: str) -> list[tuple[str, str]]:
    """The items with their quantifiers, without captures."""
    out, at = [], 0
    while at < len(pattern):
        found = ITEM.match(pattern, at)
        assert found
        item, at = found.group(), found.end()
        if item in "()":
            continue
        quantifier = ""
        if at < len(pattern) and pattern[at] in "*+-?" and not item.startswith(("%b", "%f")):
            quantifier, at = pattern[at], at + 1
        out.append((item, quantifier))
    return out


def fault(pattern: str) -> str | None:
    """Why a pattern may take quadratic time, or None."""
    items = items_of(pattern)
    anchored = bool(items) and items[0] == ("^", "")
    ends = bool(items) and items[-1] == ("$", "")
    if ends and len(items) > 2 and items[-3] == (".", "-") and items[-2][1] in ("*", "+", "-"):
        return "`.-X*$` goes through each run of X from each of its bytes"
    if anchored:
        return None
    fixed: list[str] = []
    for at, (item, quantifier) in enumerate(items):
        if item.startswith("%b"):
            return "an unanchored %b reads to the end from each opening bracket"
        if quantifier not in ("*", "+", "-") or (item, quantifier) == ("$", ""):
            fixed.append(item)
            continue
        run = set_of(item)
        rest = items[at + 1 :]
        if not any(each not in ("*", "-", "?") for _, each in rest):
            return None  # nothing after it can fail
        if item == "." and quantifier in ("*", "+") and rest == [("$", "")] and fixed:
            return None  # it always matches
        for each in fixed:
            if each.startswith("%f"):
                if run <= set_of(each[2:]):
                    return None  # attempts start only at the start of a run
            elif not set_of(each) & run:
                return None
        return f"it can start at each byte that `{item}{quantifier}` reads"
    return None


def patterns_in(text: str) -> list[tuple[int, str]]:
    """The string literals passed to calls that take patterns, with their lines."""
    found, lines = [], text.splitlines()
    for call in CALL.finditer(text):
        literal = LITERAL.search(text, call.end(), call.end() + 500)
        if not literal:
            continue
        number = text.count("\n", 0, literal.start()) + 1
        line, between = lines[number - 1], text[call.end() : literal.start()]
        is_comment = line.lstrip().startswith("--") or "bounded: " in line.rpartition("--")[2]
        if is_comment or between.count(")") > between.count("("):  # after the call
            continue
        if not PLAIN.match(text, literal.end()):
            found.append((number, decoded(literal.group(1) or literal.group(2) or "")))
    return found


def faults_in(directory: Path) -> list[str]:
    """The faults of all Lua files in a directory."""
    out = []
    for file in sorted(directory.rglob("*.lua")):
        for number, pattern in patterns_in(file.read_text()):
            why = fault(pattern)
            if why:
                out.append(f"{file.relative_to(ROOT)}:{number}: {pattern!r}: {why}")
    return out


def test_no_pattern_takes_quadratic_time() -> None:
    assert faults_in(ROOT / "lua") + faults_in(ROOT / "plugin") == []


QUADRATIC = r"[^\n]*$  %s+$  %s*\n%s*  ([^\r]*)$  _+%w[%w_]*  %${([^}]*)}  \n%s*//  ^%s*(.-)%s*$  a%b()"
LINEAR = r'^.*\n(.*)$  %w+  %.(%w+)$  /[^/]+$  %f[%w_]([%w_]+)%s*:  \r?\n  "[^"\n]*"  Vim:(.*)$'


@pytest.mark.parametrize("pattern", QUADRATIC.split())
def test_a_quadratic_pattern_is_found(pattern: str) -> None:
    assert fault(decoded(pattern))


@pytest.mark.parametrize("pattern", LINEAR.split())
def test_a_linear_pattern_passes(pattern: str) -> None:
    assert not fault(decoded(pattern))


def test_patterns_are_read_from_calls() -> None:
    """Plain searches and bounded texts are ignored."""
    text = "a = b:match('%s+$')\nc = d:find('%s+$', 1, true)\ne = f:gsub('%s+$', '') -- bounded: a name\n"
    assert patterns_in(text) == [(1, "%s+$")]
