"""Reads the scope of a client, that is, the tools that it requests, from the URL and headers."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from ..values import Catalogue, Scope

TOOLS_QUERY, READ_ONLY_QUERY, CATALOGUE_QUERY = "tools", "readonly", "catalogue"
TOOLSETS_HEADER, TOOLS_HEADER, READ_ONLY_HEADER = "X-MCP-Toolsets", "X-MCP-Tools", "X-MCP-Readonly"

MAX_NAMES_CHARS = 1024
"""Maximum characters of all names, since Neovim gets them with every call."""

_HEADERS = "x-mcp-"
_PARAMETER_WORDS = frozenset(
    {"tool", "tools", "toolset", "toolsets", "excludetools", "readonly", "catalogue", "catalog", "catalogs"}
)
"""Parameter names as letters only. Parameters with these letters are refused if misspelled."""

_ALL = "all"
_YES, _NO = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})
_CATALOGUES: dict[str, Catalogue] = {"direct": "direct", "search": "search"}


class ScopeError(ValueError):
    """A parameter is not valid; ignoring it would expose more tools than requested."""


def read_scope(http: web.Request) -> Scope | None:
    """Returns the scope of a request; None = all enabled tools.

    The names in the URL and in both headers are combined.

    Raises:
        ScopeError: a value is not valid, or a parameter is misspelled.
    """
    headers = http.headers
    if "?" not in http.raw_path and _HEADERS not in ",".join(headers).lower():
        return None
    named = [name for name in headers if name[: len(_HEADERS)].lower() == _HEADERS]
    query = http.query
    _refuse_misspelled(query, (TOOLS_QUERY, READ_ONLY_QUERY, CATALOGUE_QUERY), "")
    _refuse_misspelled(
        (name.lower() for name in named),
        tuple(name.lower() for name in (TOOLSETS_HEADER, TOOLS_HEADER, READ_ONLY_HEADER)),
        _HEADERS,
    )
    lists = [(TOOLS_QUERY, text) for text in query.getall(TOOLS_QUERY, ())]
    lists += [(name, text) for name in (TOOLSETS_HEADER, TOOLS_HEADER) for text in headers.getall(name, ())]
    flags = [(READ_ONLY_QUERY, text or "true") for text in query.getall(READ_ONLY_QUERY, ())]
    flags += [(READ_ONLY_HEADER, text) for text in headers.getall(READ_ONLY_HEADER, ())]
    read_only = {_flag(name, text) for name, text in flags}
    scope = Scope(_names(lists), True in read_only, _catalogue(query.getall(CATALOGUE_QUERY, ())))
    return None if scope == Scope() else scope


def _refuse_misspelled(given: Iterable[str], known: tuple[str, ...], prefix: str) -> None:
    for name in given:
        letters = "".join(filter(str.isalnum, name.removeprefix(prefix))).lower()
        if name not in known and letters in _PARAMETER_WORDS:
            raise ScopeError(f"unknown parameter {name!a}; valid ones are {', '.join(known)}")


def _names(lists: list[tuple[str, str]]) -> tuple[str, ...] | None:
    if not lists:
        return None
    names: set[str] = set()
    for parameter, text in lists:
        given = [name.strip() for name in text.split(",")]
        if "" in given:
            raise ScopeError(f"{parameter} must be a comma-separated list of groups or tools")
        if not all(name.isprintable() for name in given):
            raise ScopeError(f"{parameter} contains invalid characters")
        names.update(given)
    if sum(map(len, names)) > MAX_NAMES_CHARS:
        raise ScopeError(f"{lists[0][0]}: more than {MAX_NAMES_CHARS} characters; use group names")
    return None if _ALL in names else tuple(sorted(names))


def _flag(parameter: str, text: str) -> bool:
    value = text.strip().lower()
    if value not in _YES | _NO:
        raise ScopeError(f"{parameter} must be true or false")
    return value in _YES


def _catalogue(given: list[str] | tuple[()]) -> Catalogue | None:
    chosen = {text.strip().lower() for text in given}
    if not chosen <= _CATALOGUES.keys() or len(chosen) > 1:
        raise ScopeError(f"{CATALOGUE_QUERY} must be {' or '.join(_CATALOGUES)}")
    return _CATALOGUES[chosen.pop()] if chosen else None
