"""Reads the comments of Lua files: classes, fields and documented functions (LuaCATS)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

OPENING, CLOSING = "([{<", ")]}>"


@dataclass
class Member:
    """A field, a parameter or a returned value, which may have no name."""

    name: str
    type: str
    text: str
    optional: bool = False


@dataclass
class Function:
    """A documented function or method; `owner` is the local table that contains it."""

    owner: str
    name: str
    text: str
    params: list[Member] = field(default_factory=list)
    returns: list[Member] = field(default_factory=list)
    callable: bool = True


@dataclass
class Class:
    """A class, its fields, and the local table that holds its methods, if any."""

    name: str
    text: str
    fields: list[Member] = field(default_factory=list)
    table: str = ""


@dataclass
class File:
    """The documented items of one file."""

    functions: list[Function] = field(default_factory=list)
    classes: list[Class] = field(default_factory=list)


def split_type(text: str) -> tuple[str, str]:
    """The type at the start of `text`, and the rest."""
    depth = 0
    for at, char in enumerate(text):
        if char in OPENING:
            depth += 1
        elif char in CLOSING:
            depth -= 1
        elif char == " " and depth == 0:
            rest = text[at:].lstrip()
            if text[at - 1] not in ":|," and not rest.startswith("|"):
                return text[:at], rest
    return text, ""


def split_member(text: str) -> Member:
    """`name type text` → a member, optional when its name or its type ends in `?`."""
    name, _, rest = text.partition(" ")
    kind, about = split_type(rest)
    return Member(
        name.removesuffix("?"), kind.removesuffix("?"), about, name.endswith("?") or kind.endswith("?")
    )


def split_returns(text: str) -> list[Member]:
    """The values of one `@return`: `type name text`, or several as `type name, type name`."""
    members: list[Member] = []
    while text:
        kind, rest = split_type(text)
        name, _, about = rest.partition(" ")
        more = name.endswith(",")
        optional = bool(name) and kind.endswith("?")
        shown = kind.removesuffix("?") if optional else kind
        members.append(Member(name.removesuffix(","), shown, "" if more else about, optional))
        text = about if more else ""
    return members


def blocks(text: str) -> Iterator[tuple[list[str], str]]:
    """Runs of `---` comments (continued tags joined), each with the line of code after it."""
    comment: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("---") and not stripped.startswith("----"):
            body = stripped[3:]
            if body.startswith(" ") and comment and comment[-1].startswith("@"):
                comment[-1] += " " + body.strip()
            else:
                comment.append(body.removeprefix(" "))
        elif comment:
            yield comment, stripped
            comment = []
    if comment:
        yield comment, ""


def parse(text: str) -> File:
    """Parses the comments of a file."""
    file = File()
    for comment, code in blocks(text):
        prose = "\n".join(line for line in comment if line[:1] not in ("@", "|"))
        tags = [line[1:].partition(" ")[::2] for line in comment if line.startswith("@")]
        names = [tag for tag, _ in tags]
        if "class" in names:
            file.classes.append(read_class(prose, tags, code))
        elif "alias" not in names and (function := read_function(prose, tags, code)):
            file.functions.append(function)
    return file


def read_class(prose: str, tags: list[tuple[str, str]], code: str) -> Class:
    """A class from its comment; methods belong to the table in the line after it."""
    head = next(rest for tag, rest in tags if tag == "class").removeprefix("(exact) ")
    name, _, about = head.partition(" ")
    table = re.match(r"local (\w+)", code)
    hidden = ("package ", "private ", "[")
    fields = [split_member(rest) for tag, rest in tags if tag == "field" and not rest.startswith(hidden)]
    return Class(name.rstrip(":"), prose or about, fields, table.group(1) if table else "")


def read_function(prose: str, tags: list[tuple[str, str]], code: str) -> Function | None:
    """A function from its comment and first line; None if it defines nothing public."""
    if any(tag in ("package", "private") for tag, _ in tags):
        return None
    params = [split_member(rest) for tag, rest in tags if tag == "param"]
    returns = [member for tag, rest in tags if tag == "return" for member in split_returns(rest)]
    if defined := re.match(r"function (\w+)[.:](\w+)\(", code):
        return Function(defined[1], defined[2], prose, params, returns)
    if assigned := re.match(r"(\w+)\.(\w+) = ", code):
        owner, name = assigned.groups()
        kind = next((rest for tag, rest in tags if tag == "type"), "")
        return read_typed(Function(owner, name, prose, callable=False), kind)
    return None


def read_typed(function: Function, kind: str) -> Function:
    """A function whose parameters are in its `@type fun(…): …`, or a value."""
    if signature := re.fullmatch(r"fun\((.*)\)(?::\s*(.*))?", kind):
        function.callable = True
        arguments, result = signature.groups()
        for argument in arguments.split(", "):
            name, _, argument_type = argument.partition(": ")
            function.params.append(Member(name, argument_type, ""))
        if result:
            function.returns += split_returns(result)
    return function
