"""Decodes what Neovim sends over msgpack-RPC, and encodes what it reads.

A decoder may raise any exception if the answer is not valid.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from typing import Any

from ..errors import Code
from ..values import (
    LARGE,
    AgentEndpoint,
    FieldError,
    Hello,
    HookReply,
    Inputs,
    Limits,
    Listing,
    Mode,
    Outcome,
    Progress,
    Reply,
    Scope,
    Sender,
    ServerInfo,
    Settings,
    ToolError,
)
from .clock import EditorClock

NATIVE_LEVELS = 16
"""Maximum nesting of a value that is sent as msgpack: Neovim closes the channel at 32 levels per message."""

_CALL_STATES = {"running", "waiting_approval", "waiting_input"}
_FAILED_STATES = {"failed", "timed_out", "cancelled"}
_KINDS = {"text", "json", "content", "empty"}
_TRANSPORTS = {"http", "websocket", "unix"}


def clean(text: str) -> str:
    """Replaces bytes that are not UTF-8; for texts that are displayed, not for results."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def fault_text(thrown: str, address: str) -> str:
    """Returns an error that Lua threw in `hello`, without file names and traceback."""
    if "module 'mcp-tools.rpc' not found" in thrown:
        return f"Neovim at {address} has no mcp-tools.nvim on its 'runtimepath': add it there"
    first = thrown.splitlines()[0] if thrown else ""
    return re.sub(r"^(Lua: |Error executing lua: |Vim:|\S*\.lua:\d+: |\[string [^]]*\]:\d+: )+", "", first)


def json_value(text: Any) -> Any:
    """Parses JSON text from Lua."""
    return json.loads(clean(text))


def deadline(clock_ns: Any, clock: EditorClock) -> float | None:
    """Converts a deadline to the loop's clock; None = no limit."""
    return None if clock_ns is None else clock.to_local(int(clock_ns))


def reply(raw: Any, clock: EditorClock) -> Reply:
    """Decodes the answer to `execute` or `get_result`, or the state in a wake."""
    progress = raw.get("progress")
    latest = None if progress is None else _progress(progress)
    if "size" in raw:
        return Reply(False, progress=latest, size=int(raw["size"]))
    if raw["done"]:
        return Reply(True, outcome(raw["result"]), progress=latest)
    state = _one_of(raw["state"], _CALL_STATES)
    asked = raw.get("inputs")
    inputs = None if asked is None else Inputs(int(asked["seq"]), _table(json_value(asked["json"])))
    withdrawn = int(raw.get("withdrawn", 0))
    return Reply(False, None, state, deadline(raw.get("deadline"), clock), latest, inputs, withdrawn)


def outcome(raw: Any) -> Outcome:
    """Decodes how a call ended."""
    if raw["state"] == "done":
        kind = _one_of(raw["kind"], _KINDS)
        text = raw.get("text") or ""
        if type(text) is not str:
            raise TypeError("text is not a string")
        return Outcome("done", kind, text, raw.get("structured") is True)
    state = _one_of(raw["state"], _FAILED_STATES)
    return Outcome(state, error=_error(raw["error"]), schema_bound=raw.get("schema_bound") is True)


def listing(raw: Any) -> Listing:
    """Decodes the answer to `list`."""
    if raw.get("unchanged") or raw.get("loading"):
        return Listing(int(raw["revision"]), None, bool(raw.get("loading")))
    return Listing(int(raw["revision"]), clean(raw["json"]))


def explanation(raw: Any) -> tuple[str, str]:
    """Decodes the answer to `explain`."""
    return clean(raw["path"]), clean(raw["message"])


def subscription_error(raw: Any) -> ToolError | None:
    """Decodes the answer to `subscribe`."""
    error = raw.get("error")
    return None if error is None else _error(error)


def mode(raw: Any) -> Mode:
    """Decodes the answer of `nvim_get_mode`."""
    return Mode(raw["mode"], raw["blocking"])


def hello(raw: Any) -> Hello:
    """Decodes the answer to `hello`; unknown settings are ignored."""
    return Hello(
        boot=raw["boot"],
        revisions={str(k): int(v) for k, v in _table(raw.get("revision")).items()},
        versions={str(k): str(v) for k, v in _table(raw.get("versions")).items()},
        token=raw.get("token") or None,
        settings=_settings(_table(raw.get("settings"))),
        endpoints=endpoints(raw.get("endpoints")),
        hook_token=raw.get("hook_token") or None,
    )


def hook_reply(raw: Any) -> HookReply:
    """Decodes the answer to an event of an agent's hook."""
    reply = _table(raw)
    return HookReply(clean(reply.get("text") or ""), reply.get("pending") is True)


def endpoints(raw: Any) -> tuple[AgentEndpoint, ...]:
    """Decodes the endpoints of agents, from `hello` or the event `endpoints`."""
    return tuple(_endpoint(each) for each in raw) if isinstance(raw, list) else ()


def _endpoint(raw: Any) -> AgentEndpoint:
    server = raw["server"]
    token, name = raw["token"], raw["name"]
    if type(token) is not str or type(name) is not str or not token or not name:
        raise ValueError("an endpoint without a name or a token")
    return AgentEndpoint(
        name=name,
        token=token,
        transport=_one_of(raw["transport"], _TRANSPORTS),
        header=str(raw["header"]).lower(),
        server=ServerInfo(str(server["name"]), str(server["version"]), server.get("title")),
        **{part: raw.get(part) for part in ("scheme", "subprotocol", "socket", "label")},
    )


def _settings(raw: dict[str, Any]) -> Settings:
    values = {f.name: raw[f.name] for f in fields(Settings) if raw.get(f.name) is not None}
    for name in ("allowed_hosts", "allowed_origins", "scoped_clients"):
        values[name] = tuple(values.get(name) or ())
    limits = _table(raw.get("limits"))
    values["limits"] = Limits(**{f.name: int(limits[f.name]) for f in fields(Limits) if f.name in limits})
    if "tool_timeout" in values:
        values["tool_timeout"] = int(values["tool_timeout"])
    return Settings(**values)


def _progress(raw: Any) -> Progress:
    message = raw.get("message")
    state = raw.get("state")
    return Progress(
        int(raw["seq"]),
        raw["done"],
        raw.get("total"),
        None if message is None else clean(message),
        None if state is None else json_value(state),
    )


def _error(raw: Any) -> ToolError:
    code = raw["code"]
    known = Code(code) if code in _CODES else Code.EXECUTION_ERROR
    faults = tuple(FieldError(clean(e["field"]), clean(e["message"])) for e in raw.get("errors") or ())
    required = _table(raw.get("required")) or None
    return ToolError(known, clean(raw["message"]), faults, required, raw.get("asked") is True)


def _one_of(value: Any, allowed: set[str]) -> Any:
    if value not in allowed:
        raise ValueError(f"{value!r} is not one of {sorted(allowed)}")
    return value


def _table(raw: Any) -> dict[str, Any]:
    """Returns a dict, which Lua sends as a list if it is empty."""
    return raw if isinstance(raw, dict) else {}


_CODES = {str(code) for code in Code}


def refused_definitions(raw: Any) -> list[str]:
    """Decodes why definitions were refused, a line each."""
    return [line for fault in raw["refused"] for line in str(fault).splitlines()]


def encode_sender(sender: Sender) -> dict[str, Any]:
    """Returns the options of `execute` that are the same for all calls of a sender."""
    fields: dict[str, Any] = {"client": sender.client._asdict(), "most": LARGE}
    if sender.host != "mcp":
        fields["host"] = sender.host
    if sender.session is not None:
        fields["session"] = sender.session
    if sender.scope is not None:
        fields["scope"] = encode_scope(sender.scope)
    if sender.capabilities:
        fields["capabilities"] = packable(sender.capabilities)
    return fields


def encode_scope(scope: Scope) -> dict[str, Any]:
    """Returns the fields of a scope that are not None."""
    return {name: value for name, value in asdict(scope).items() if value is not None}


def packable(value: dict[str, Any]) -> dict[str, Any] | str:
    """Returns a client's value, or its JSON text if msgpack or Neovim would not accept the value."""
    return value if _is_packable(value, NATIVE_LEVELS) else json.dumps(value)


def _is_packable(value: Any, levels: int) -> bool:
    kind = type(value)
    if kind is dict or kind is list:
        if levels == 0:
            return False
        for child in value.values() if kind is dict else value:
            if type(child) is not str and not _is_packable(child, levels - 1):
                return False
        return True
    return kind is not int or -(2**63) <= value < 2**63
