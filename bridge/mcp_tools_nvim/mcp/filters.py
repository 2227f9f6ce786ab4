"""`_meta.filter` of a list of resources: `{scheme?, mimeType?, tags?}`, all of which must hold.

The shape is that of the extension `ai.nimblebrain/host-resources`, whose lists of a host's files have it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_MEMBERS = frozenset({"scheme", "mimeType", "tags"})


class FilterError(ValueError):
    """What was sent is no filter; taking it for none would show what was not asked for."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What must hold of a resource; None, or no tags, = anything. Letter case counts in tags only."""

    scheme: str | None = None
    mime_type: str | None = None
    tags: frozenset[str] = frozenset()

    def fits(self, uri: str, definition: dict[str, Any]) -> bool:
        """Whether the resource, or template, with this URI is wanted."""
        if self.scheme is not None and scheme_of(uri) != self.scheme:
            return False
        if self.mime_type is not None and _essence(definition.get("mimeType")) != self.mime_type:
            return False
        return self.tags <= set((definition.get("_meta") or {}).get("tags", ()))


def read(value: Any, schemes: Iterable[str]) -> Filter:
    """The filter that a client sent.

    Args:
        value: as it came.
        schemes: those that there are.

    Raises:
        FilterError: it is none, or names a scheme that there is not.
    """
    if not isinstance(value, dict):
        raise FilterError("filter must be an object")
    if unknown := sorted(value.keys() - _MEMBERS):
        raise FilterError(f"filter has no member {unknown[0]!a}; it has scheme, mimeType and tags")
    scheme, mime_type, tags = (value.get(name) for name in ("scheme", "mimeType", "tags"))
    for name, text in (("scheme", scheme), ("mimeType", mime_type)):
        if name in value and (not isinstance(text, str) or not text):
            raise FilterError(f"filter.{name} must be a string")
    if "tags" in value and not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        raise FilterError("filter.tags must be a list of strings")
    if scheme is not None and scheme.lower() not in (known := sorted(set(schemes))):
        raise FilterError(f"filter.scheme: there is no {scheme!a}; there is {', '.join(known)}")
    return Filter(
        None if scheme is None else scheme.lower(),
        None if mime_type is None else _essence(mime_type),
        frozenset(tags or ()),
    )


def scheme_of(uri: str) -> str:
    """The scheme of a URI or template."""
    return uri.partition(":")[0].lower()


def _essence(mime_type: Any) -> str | None:
    """A media type without its parameters."""
    return mime_type.partition(";")[0].strip().lower() if isinstance(mime_type, str) else None
