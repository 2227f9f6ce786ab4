"""JSON-RPC 2.0 as text: bytes in, checked messages out, and the bodies of errors."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
REQUEST_TIMEOUT = -32001  # the client did not answer a request
RESOURCE_NOT_FOUND = -32002  # protocol version 2026-07-28 uses INVALID_PARAMS instead
RATE_LIMITED = -32004
TOO_LARGE = -32005

MAX_DEPTH = 100
"""Maximum nesting: Lua's encoder and the SDK's validators fail above it."""

MAX_BATCH = 256
"""Maximum messages in one body."""

RequestId = int | str

_CONTAINERS = frozenset({dict, list})
_IDS = frozenset({int, str})

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


@functools.cache
def _codec() -> tuple[Callable[[bytes | str], Any], Callable[[Any], bytes], type[Exception]]:
    """Returns a decoder, an encoder and their exception; cached, since creating them is slow.

    The package is imported with the first message, since it takes a megabyte of memory.
    """
    import msgspec

    return msgspec.json.Decoder().decode, msgspec.json.Encoder().encode, msgspec.MsgspecError


@dataclass(slots=True)
class Request:
    """A message that must be answered."""

    id: RequestId
    method: str
    params: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that has no answer."""

    method: str
    params: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The client's answer to a request; `error` is None if it succeeded."""

    id: RequestId
    result: Any = None
    error: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a body, or a member of a batch, is not a message."""

    code: int
    message: str
    id: RequestId | None = None


Message = Request | Notification | Answer


@dataclass(frozen=True, slots=True)
class Batch:
    """Several messages in one body."""

    messages: tuple[Message | Fault, ...]


def parse(body: bytes) -> Message | Batch | Fault:
    """Parses a body. The last of duplicate keys in an object is used."""
    try:
        value = loads(body)
    except UnicodeDecodeError:
        return Fault(PARSE_ERROR, "Parse error: not UTF-8")
    except (ValueError, RecursionError):
        return Fault(PARSE_ERROR, "Parse error: not JSON", _id_of(body))
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and is_deep(value, MAX_DEPTH):
        return Fault(PARSE_ERROR, f"Parse error: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, list):
        if not value:
            return Fault(INVALID_REQUEST, "Invalid request: empty batch")
        if len(value) > MAX_BATCH:
            text = f"Invalid request: a batch of more than {MAX_BATCH} messages; split it"
            return Fault(INVALID_REQUEST, text)
        return Batch(tuple(_message(member) for member in value))
    return _message(value)


def _id_of(body: bytes) -> RequestId | None:
    """Returns the id of a request that `loads` rejects (for a lone surrogate, say), or None."""
    try:
        value = json.loads(body.decode())
    except (ValueError, RecursionError):
        return None
    id_ = value.get("id") if isinstance(value, dict) else None
    return id_ if type(id_) in _IDS else None


def loads(text: bytes | str) -> Any:
    """Returns the value of JSON text.

    Raises:
        ValueError: it is not JSON or UTF-8, or has a number or a lone surrogate that cannot be represented.
        RecursionError: it is nested too deep.
    """
    return _codec()[0](text)


def dumps(value: Any) -> bytes:
    """Returns compact JSON. Invalid UTF-8 from Neovim becomes `?`."""
    try:
        data = _codec()[1](value)
        # msgspec encodes NaN and infinity as `null`; here they are an error.
        if type(value) is str or b"null" not in data:
            return data
    except (_codec()[2], TypeError, ValueError, RecursionError):
        pass  # the standard library accepts more, such as lone surrogates
    text = _encode(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def result(id_: RequestId, value: Any) -> dict[str, Any]:
    """Returns the answer to a request that succeeded."""
    return {"jsonrpc": "2.0", "id": id_, "result": value}


def result_of_encoded(id_: RequestId, *parts: bytes) -> bytes:
    """Returns `result` as JSON text; `parts` are the JSON text of the value."""
    return b"".join((b'{"jsonrpc":"2.0","id":', dumps(id_), b',"result":', *parts, b"}"))


def error(id_: RequestId | None, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Returns the answer to a request that failed; `id_` is None if unknown."""
    body: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return {"jsonrpc": "2.0", "id": id_, "error": body}


def notification(method: str, params: Any = None) -> dict[str, Any]:
    """Returns a notification."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        body["params"] = params
    return body


def request(id_: RequestId, method: str, params: Any = None) -> dict[str, Any]:
    """Returns a request."""
    return notification(method, params) | {"id": id_}


def _message(value: Any) -> Message | Fault:
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return Fault(INVALID_REQUEST, "Invalid request: not a JSON-RPC 2.0 message")
    id_ = value.get("id")
    if type(id_) not in _IDS and "id" in value:
        return Fault(INVALID_REQUEST, "Invalid request: id must be a string or an integer")
    method = value.get("method")
    if type(method) is str:
        params = value.get("params")
        if params is not None and not isinstance(params, dict):
            return Fault(INVALID_PARAMS, "Invalid params: must be an object", id_)
        return Notification(method, params) if id_ is None else Request(id_, method, params)
    if "method" in value:
        return Fault(INVALID_REQUEST, "Invalid request: method must be a string", id_)
    if id_ is not None and ("result" in value) != ("error" in value):
        failure = value.get("error")
        if "error" in value and not isinstance(failure, dict):
            return Fault(INVALID_REQUEST, "Invalid request: error must be an object", id_)
        return Answer(id_, value.get("result"), failure)
    return Fault(INVALID_REQUEST, "Invalid request: neither a request nor an answer", id_)


def is_deep(value: Any, limit: int) -> bool:
    """Whether a value nests deeper than `limit` levels."""
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(limit):
        inside: list[Any] = []
        for node in level:
            children = node.values() if type(node) is dict else node
            inside += [child for child in children if type(child) in _CONTAINERS]
        if not inside:
            return False
        level = inside
    return bool(level)
