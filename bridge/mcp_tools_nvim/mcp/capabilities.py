"""What a client declares of extensions, without what is no declaration."""

from __future__ import annotations

import logging
from typing import Any

_PLACES = ("extensions", "experimental")

logger = logging.getLogger(__name__)


def well_formed(params: dict[str, Any]) -> dict[str, Any]:
    """The same parameters, or a copy without the extensions that are no objects."""
    capabilities = params.get("capabilities")
    if not isinstance(capabilities, dict):
        return params
    kept = dict(capabilities)
    for place in _PLACES:
        if place not in kept:
            continue
        declared = kept[place]
        if not isinstance(declared, dict):
            logger.info("the client's capabilities.%s is no object and counts as absent", place)
            del kept[place]
        elif malformed := [name for name, value in declared.items() if not isinstance(value, dict)]:
            names = ", ".join(map(ascii, malformed))[:200]
            logger.info("malformed in the client's capabilities.%s, hence absent: %s", place, names)
            kept[place] = {name: value for name, value in declared.items() if isinstance(value, dict)}
    return params if kept == capabilities else {**params, "capabilities": kept}
