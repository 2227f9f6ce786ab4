"""The values that cross module borders: frozen, typed, without behaviour worth the name.

Times: `*_ms` and `timeout` are milliseconds. Deadlines are seconds of the event loop's clock
(`loop.time()`); only `neovim/nvim.py` knows the editor's own clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import Code

PROTOCOL = 1
"""Number of the wire protocol; `hello` refuses another one."""

LARGE = 64 * 1024
"""Bytes of a result beyond which the editor only tells its size, until it is asked for the whole."""

MAX_CLIENT_NAME = 200
"""Characters of a client's name by which it is told apart from others."""

CallState = Literal["running", "waiting_approval", "waiting_input"]
OutcomeState = Literal["done", "failed", "timed_out", "cancelled"]
OutcomeKind = Literal["text", "json", "content", "empty"]
Kind = Literal["tools", "resources", "templates", "prompts"]
CallKind = Literal["tool", "resource", "prompt", "completion"]
PortHolder = Literal["none", "ours", "stranger"]
DoorTransport = Literal["http", "websocket", "unix"]
Catalogue = Literal["direct", "search"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The latest progress of a call. `done` only ever rises towards an observer."""

    seq: int
    done: float
    total: float | None = None
    message: str | None = None
    state: Any = None
    """An intermediate state of the tool that is no string; its text is `message`."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a tool asks its client for; `seq` counts its questions from 1."""

    seq: int
    requests: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault in the arguments; `field` is a dotted path (`items[0].name`, root `(root)`)."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why a call failed, as the client reads it."""

    code: Code
    message: str
    errors: tuple[FieldError, ...] = ()
    required: dict[str, Any] | None = None
    """Capabilities that the client would have to declare."""
    asked: bool = False
    """Whether the user was asked and did not allow the call."""


@dataclass(slots=True, weakref_slot=True)
class Outcome:
    """How a call ended; every call has exactly one.

    Attributes:
        state: `done`, or why not.
        kind: for `done`, what `text` holds: `text` the tool's string, `json` compact JSON text of its value,
            `content` JSON text of `{content, structuredContent?, isError?, _meta?}`, `empty` nothing.
        text: see `kind`; valid UTF-8.
        structured: for `json`: the tool has an output schema, so the value is structured content too.
        error: present exactly when `state` is not `done`.
        schema_bound: the tool has an output schema, so the error must not go into `structuredContent`.
    """

    state: OutcomeState
    kind: OutcomeKind = "empty"
    text: str = ""
    structured: bool = False
    error: ToolError | None = None
    schema_bound: bool = False


@dataclass(frozen=True, slots=True)
class Parked:
    """A call that waits for its client, who has to come back with the answers."""

    task_id: str
    inputs: Inputs


@dataclass(slots=True)
class Reply:
    """What the editor says about a call: its outcome, or that it goes on.

    Attributes:
        done: the call ended; then `outcome` is set.
        state: for a call that goes on.
        deadline: seconds of the loop's clock at which the editor itself ends the call; None = no limit.
        progress: the latest progress, if any.
        inputs: what the client is to be asked for, in the states `waiting_approval` and `waiting_input`.
        withdrawn: the `seq` of the last inputs that were taken back; those before it are not open either.
        size: the call has ended with a result of so many bytes, which is to be asked for.
    """

    done: bool
    outcome: Outcome | None = None
    state: CallState = "running"
    deadline: float | None = None
    progress: Progress | None = None
    inputs: Inputs | None = None
    withdrawn: int = 0
    size: int | None = None


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """What an AI client says that it is; self-declared, never a key to anything."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Scope:
    """What a client asks to be shown of the tools; it only narrows. What names mean is the editor's business.

    Attributes:
        tools: names of groups and tools; None = all.
        read_only: only those that change nothing.
        catalogue: all of them one by one (`direct`), or a few to find and call the others with (`search`);
            None = as the editor's options say.
        agent: to whose endpoint it came: then that agent's tools are all that there is, and neither
            resources nor prompts.
    """

    tools: tuple[str, ...] | None = None
    read_only: bool = False
    catalogue: Catalogue | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says that it is."""

    name: str
    version: str
    title: str | None = None


@dataclass(frozen=True, slots=True)
class AgentEndpoint:
    """How the agent of a agent comes in.

    Attributes:
        name: of the agent.
        token: that opens this endpoint, and no other; it never shows in a `repr`.
        transport: `http` and `websocket` at the port, `unix` at a socket of its own.
        header: in small letters, that has the token.
        server: that its agent is told.
        scheme: the word before the token, in small letters; None = nothing stands there.
        subprotocol: of a WebSocket; echoed only when it is offered.
        socket: path of the unix socket.
        label: what users call the agent, for one whose own name says nothing.
    """

    name: str
    token: str = field(repr=False)
    transport: DoorTransport
    header: str
    server: ServerInfo
    scheme: str | None = None
    subprotocol: str | None = None
    socket: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """Whose list of tools it is; `client` is the name that it gives itself."""

    client: str
    scope: Scope | None = None


@dataclass(slots=True)
class CallRequest:
    """One `tools/call`, or another request that runs a handler in the editor, free of MCP."""

    name: str
    arguments: dict[str, Any]
    client: ClientInfo
    session: str | None = None
    capabilities: dict[str, Any] | None = None
    kind: CallKind = "tool"
    host: str = "mcp"
    scope: Scope | None = None
    timeout: int | None = None
    """ms: for tools that set none, and the most that any tool gets; 0 = no limit where the tool sets none."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of definitions; `json` is None when the revision that was asked about still holds.

    Attributes:
        loading: the editor is still about to load some; it is to be asked again.
    """

    revision: int
    json: str | None
    loading: bool = False


@dataclass(frozen=True, slots=True)
class Mode:
    """Answer of `nvim_get_mode`: `name` is its short mode string."""

    name: str
    blocking: bool


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in ms, rates per second; most are options `limits.*` of the plugin."""

    request_body: int = 4 * 1024 * 1024
    tool_result: int = 10 * 1024 * 1024
    resource: int = 10 * 1024 * 1024
    resource_rate: int = 100
    resource_burst: int = 1000
    calls: int = 1024
    sessions: int = 64
    result_ttl: int = 300_000
    orphan_grace: int = 60_000
    answer: int = 60_000
    parked: int = 600_000


@dataclass(frozen=True, slots=True)
class Settings:
    """What the editor tells the bridge at `hello`; the defaults are those of the plugin's options."""

    tool_prefix: str = "nvim_"
    tool_timeout: int = 300_000
    instructions: str = ""
    root: str = ""
    cwd: str = ""
    state_dir: str = ""
    log_level: str = "info"
    preload: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions on this side of the wire."""

    bridge: str
    python: str
    sdk: str
    aiohttp: str
    msgpack: str


@dataclass(frozen=True, slots=True)
class HelloInfo:
    """What the bridge says of itself at `hello`.

    Attributes:
        launch: what the editor gave to the process that it started; empty for others.
    """

    pid: int
    port: int
    wanted_port: int
    port_holder: PortHolder
    versions: Versions
    role: Literal["bridge", "client"] = "bridge"
    launch: str = ""


@dataclass(frozen=True, slots=True)
class Hello:
    """The editor's answer to `hello`.

    Attributes:
        boot: id of this run of the editor.
        revisions: revision per kind of definition.
        versions: `nvim` and `plugin`.
        token: a new token, because a stranger holds the wanted port; replaces the environment's.
        settings: see `Settings`.
        endpoints: for the agents of companions.
    """

    boot: str
    revisions: dict[str, int]
    versions: dict[str, str]
    token: str | None
    settings: Settings
    endpoints: tuple[AgentEndpoint, ...] = ()
