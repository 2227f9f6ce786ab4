"""Values of `model` → what msgpack and Neovim take."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ..values import LARGE, CallRequest, Scope

NATIVE_LEVELS = 16
"""What nests deeper goes as JSON text: Neovim closes the channel at 32 levels, counted from the message."""


def caller(request: CallRequest, timeout_ms: int) -> dict[str, Any]:
    """All that stays the same in the calls of one caller."""
    client = request.client
    fields: dict[str, Any] = {
        "client": {"name": client.name, "version": client.version},
        "host": request.host,
        "timeout": timeout_ms,
        "most": LARGE,
    }
    if request.session is not None:
        fields["session"] = request.session
    if request.scope is not None:
        fields["scope"] = scope(request.scope)
    if request.capabilities is not None:
        fields["capabilities"] = packable(request.capabilities)
    return fields


def packable(value: dict[str, Any]) -> dict[str, Any] | str:
    """What a client sent, or its JSON text when msgpack or Neovim would not take it as it is."""
    return value if _crosses(value, NATIVE_LEVELS) else json.dumps(value)


def scope(asked: Scope | None) -> dict[str, Any] | None:
    """What a client asked for, without what it did not say."""
    if asked is None:
        return None
    return {name: value for name, value in asdict(asked).items() if value is not None}


def _crosses(value: Any, levels: int) -> bool:
    kind = type(value)
    if kind is dict or kind is list:
        if levels == 0:
            return False
        for child in value.values() if kind is dict else value:
            if type(child) is not str and not _crosses(child, levels - 1):
                return False
        return True
    return kind is not int or -(2**63) <= value < 2**63
