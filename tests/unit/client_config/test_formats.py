"""Configuration files are changed in place; everything else stays the same."""

from __future__ import annotations

import json
import random
from types import ModuleType
from typing import Any

import pytest

from mcp_tools_nvim.client_config.formats import FormatError, jsonc, toml, yaml

ENTRY = {"command": "python3", "args": ["a", "b"]}
PATH = ("mcpServers", "nvim-tools")

JSONC = [
    *("", "\n", "{}", "{\n}\n", '{"a": 1}', '{\n  "a": 1\n}\n'),
    '{\n    "a": 1, // why\n    /* and */ "b": [1, 2,],\n}\n',
    '{\n\t"mcpServers": {\n\t\t"other": {"url": "http://x//y"} // theirs\n\t},\n\t"z": null\n}\n',
    '{\n  "mcpServers": {},\n  "a": "}{,//\\""\n}',
    '{\r\n  "a": 1\r\n}\r\n',
    "// head\n{\n  // nothing yet\n}\n// tail\n",
    '{"mcpServers": {"other": 1,}}',
    '\ufeff{\n  "a": 1\n}\n',
]
TOML = ["", "# only this\n", "[mcp_servers]\n"]
TOML += ['a = 1 # why\n\n[mcp_servers.other]\nurl = "x"\n\n[z]\nb = 2\n']
YAML = ["", "# only this\n", "extensions:\n"]
YAML += ["a: 1  # why\nextensions:\n  other: {name: 'x', b: \"y\"}\n\nz:\n- 1\n"]


@pytest.mark.parametrize(
    ("text", "all_crlf"),
    [
        ('{\r\n  "a": 1,\n  "b": 2\n}\n', False),
        ('{\r\n  "a": 1\r\n}\r\n', True),
        ('{"a": 1}', False),
        ('{\n  "a": 1 // x\r\n}\n', False),
    ],
)
def test_jsonc_keeps_line_endings_even_if_they_are_mixed(text: str, all_crlf: bool) -> None:
    changed = jsonc.put(text, PATH, ENTRY)
    assert changed.count("\r\n") == (changed.count("\n") if all_crlf else text.count("\r\n"))


@pytest.mark.parametrize("text", JSONC)
def test_jsonc_is_changed_and_restored(text: str) -> None:
    before = jsonc.read(text)
    changed = jsonc.put(text, PATH, ENTRY)
    expected = json.loads(json.dumps(before))
    expected.setdefault("mcpServers", {})["nvim-tools"] = ENTRY
    assert jsonc.read(changed) == expected
    for line in text.splitlines():
        assert line.partition(" //")[0].strip().rstrip("}, ") in changed
        assert line.partition(" //")[2] in changed
    back = jsonc.remove(changed, PATH)
    assert {**before, "mcpServers": before.get("mcpServers", {})} == {"mcpServers": {}, **jsonc.read(back)}
    if before.get("mcpServers") and text.count("\n") > 1:
        assert back == text
    assert jsonc.put(changed, PATH, ENTRY) == changed
    assert jsonc.read(jsonc.put(changed, PATH, {"url": "x"}))["mcpServers"]["nvim-tools"] == {"url": "x"}


def _random_text(chance: random.Random, depth: int = 0) -> str:
    def space() -> str:
        return chance.choice(["", " ", "\n  ", " // note\n", "/* , { */", "\t"])

    kind = chance.choice("oas1" if depth < 3 else "s1")
    if kind == "o":
        keys = chance.sample(["a", "b", "mcpServers", "nvim-tools", 'x\\"y'], chance.randrange(4))
        inner = ",".join(
            f'{space()}"{key}"{space()}:{space()}{_random_text(chance, depth + 1)}{space()}' for key in keys
        )
        return "{" + inner + ("," if keys and chance.random() < 0.3 else "") + space() + "}"
    if kind == "a":
        items = [space() + _random_text(chance, depth + 1) + space() for _ in range(chance.randrange(3))]
        return "[" + ",".join(items) + ("," if items and chance.random() < 0.3 else "") + space() + "]"
    return '"//,}"' if kind == "s" else chance.choice(["1", "-2.5e3", "true", "null"])


def test_any_jsonc_file_changes_by_the_entry_only_or_is_refused() -> None:
    done = 0
    for seed in range(3000):
        text = _random_text(random.Random(seed))
        values = jsonc.read(text)
        try:
            changed = jsonc.put(text, PATH, ENTRY)
        except FormatError:
            holder = values.get("mcpServers") if isinstance(values, dict) else values
            assert not isinstance(values, dict) or not isinstance(holder, dict)
            continue
        done += 1
        expected = json.loads(json.dumps(values))
        expected.setdefault("mcpServers", {})["nvim-tools"] = ENTRY
        assert jsonc.read(changed) == expected
        removed = jsonc.read(jsonc.remove(changed, PATH))
        del expected["mcpServers"]["nvim-tools"]
        assert removed == expected
    assert done > 500


BROKEN = ["{", '{"a" 1}', '{"a": 1 "b": 2}', "[1 2]", '{"a": }', "{}{}", '{"a": tru}']


@pytest.mark.parametrize("text", [*BROKEN, "[" * 10_000, '{"a": "x\n"}'])
def test_invalid_jsonc_is_refused_with_its_line(text: str) -> None:
    for attempt in (lambda: jsonc.read(text), lambda: jsonc.put(text, PATH, ENTRY)):
        with pytest.raises(FormatError, match="line 1"):
            attempt()


@pytest.mark.parametrize(
    ("form", "text", "table"),
    [(toml, text, "mcp_servers") for text in TOML] + [(yaml, text, "extensions") for text in YAML],
)
def test_toml_and_yaml_are_changed_and_restored(form: ModuleType, text: str, table: str) -> None:
    path = (table, "nvim-tools")
    before: dict[str, Any] = form.read(text)
    changed = form.put(text, path, ENTRY)
    after = form.read(changed)
    assert after[table].pop("nvim-tools") == ENTRY
    assert {**before, table: before.get(table) or {}} == after
    assert all(line in changed.splitlines() for line in text.splitlines() if "#" in line)
    back = form.read(form.remove(changed, path))
    assert {**before, table: before.get(table) or {}} == {table: {}, **back} or back == before
    assert form.remove(text, path) == text


LINES = "nvim-tools:\n    command: python3\n    args:\n    - a\n    - b\n"
INLINE = '"nvim-tools": {"command": "python3", "args": ["a", "b"]}'
ALIGNED = "---\nGOOSE_MODEL:   'x'   # aligned\nextensions:\n    other:\n        a:   [1,2]\n"
FOLDED = "extensions:\n    other: >-\n        folded\n        text\n    # not now\n"


@pytest.mark.parametrize(
    ("before", "added", "after"),
    [
        *((ALIGNED, LINES, "\n# tail\n"), (FOLDED, LINES, "z: {a: 1,  b: 2}\n")),
        ("extensions:  # none yet\n", LINES, "z:\n- 1\n"),
        ("a:    1\n# end\n", "extensions:\n" + LINES, "...\n"),
        ("extensions: { other: {x: 1}", ", " + INLINE, " } # tail\n"),
        ("extensions: {", INLINE, "}\nz:   1\n"),
    ],
)
def test_an_entry_of_yaml_is_added_without_other_changes(before: str, added: str, after: str) -> None:
    path = ("extensions", "nvim-tools")
    changed = yaml.put(before + after, path, ENTRY)
    assert changed.startswith(before)
    assert changed.endswith(after)
    between = changed[len(before) : -len(after)]
    assert "".join(between.split()) == "".join(added.split())
    assert yaml.read(changed)["extensions"]["nvim-tools"] == ENTRY
    assert yaml.read(yaml.put(changed, path, {"url": "x"}))["extensions"]["nvim-tools"] == {"url": "x"}
    back = yaml.remove(changed, path)
    assert back.startswith(before)
    assert back.endswith(after)


@pytest.mark.parametrize("entry", ["  nvim-tools:\n", "  nvim-tools:\n    cmd: x\n    description: \n"])
def test_an_entry_of_yaml_that_ends_with_an_empty_value_is_replaced_and_removed(entry: str) -> None:
    path, rest = ("extensions", "nvim-tools"), "  other: 1\n"
    text = "extensions:\n" + entry + rest
    assert yaml.read(yaml.put(text, path, ENTRY)) == {"extensions": {"nvim-tools": ENTRY, "other": 1}}
    assert yaml.remove(text, path) == "extensions:\n" + rest


def test_yaml_that_cannot_be_changed_in_place_stays_the_same() -> None:
    for text in ("null\n", "extensions:\n  nvim-tools: &a {}\nz: *a\n"):
        assert yaml.put(text, ("extensions", "nvim-tools"), ENTRY) == text


@pytest.mark.parametrize(("form", "text"), [(toml, "a = "), (yaml, "a: [1"), (yaml, "- 1\n")])
def test_invalid_toml_and_yaml_are_refused(form: ModuleType, text: str) -> None:
    with pytest.raises(FormatError):
        form.put(text, PATH, ENTRY)
