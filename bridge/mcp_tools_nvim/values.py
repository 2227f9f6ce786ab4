"""Data classes that are passed between packages.

Times: `*_ms` and `timeout` are milliseconds. Deadlines are seconds of the event loop's clock
(`loop.time()`); only `neovim/nvim.py` knows the editor's own clock.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from .errors import Code

PROTOCOL = 1
"""Number of the wire protocol; `hello` refuses another one."""

LARGE = 64 * 1024
"""Neovim returns only the size of results above this many bytes, until the whole is requested."""

MAX_CLIENT_NAME = 200
"""Maximum characters of a client's name."""

AWAITS_APPROVAL = "waiting for the user's approval"
"""Progress message of a call while Neovim asks the user to approve it."""

CallState = Literal["running", "waiting_approval", "waiting_input"]
OutcomeState = Literal["done", "failed", "timed_out", "cancelled"]
OutcomeKind = Literal["text", "json", "content", "empty"]
Kind = Literal["tools", "resources", "templates", "prompts"]
CallKind = Literal["tool", "resource", "prompt", "completion"]
PortHolder = Literal["none", "ours", "foreign"]
EndpointTransport = Literal["http", "websocket", "unix"]
Catalogue = Literal["direct", "search"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The latest progress of a call. Observers only see rising values of `done`."""

    seq: int
    done: float
    total: float | None = None
    message: str | None = None
    state: Any = None
    """An intermediate state of the tool that is not a string; its text is `message`."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Questions of a tool to its client; `seq` numbers them from 1."""

    seq: int
    requests: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault in the arguments; `field` is a dotted path (`items[0].name`, root `(root)`)."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why a call failed, for the client."""

    code: Code
    message: str
    errors: tuple[FieldError, ...] = ()
    required: dict[str, Any] | None = None
    """Capabilities that the client must declare."""
    refused_by_user: bool = False
    """Whether the user, not a rule, refused the call."""

    def details(self) -> dict[str, Any]:
        """Returns `{code, message, errors?}`."""
        details: dict[str, Any] = {"code": str(self.code), "message": self.message}
        if self.errors:
            details["errors"] = [asdict(fault) for fault in self.errors]
        return details


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
    """A call whose client must send the request again with its answers."""

    task_id: str
    inputs: Inputs


@dataclass(slots=True)
class Reply:
    """Neovim's state of a call.

    Attributes:
        done: the call has ended; then `outcome` is set.
        state: state of a call that has not ended.
        deadline: when Neovim ends the call, by the loop's clock; None = no limit.
        progress: the latest progress, if any.
        inputs: questions to the client, in the states `waiting_approval` and `waiting_input`.
        withdrawn: `seq` of the last withdrawn question; earlier ones are not open either.
        size: bytes of a large result that must be requested: the tool has ended, the call has not.
    """

    done: bool
    outcome: Outcome | None = None
    state: CallState = "running"
    deadline: float | None = None
    progress: Progress | None = None
    inputs: Inputs | None = None
    withdrawn: int = 0
    size: int | None = None


class ClientInfo(NamedTuple):
    """Declared name and version of a client; not used for access control."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Which tools a client requests. Neovim resolves the names.

    Attributes:
        tools: names of groups and tools; None = all.
        read_only: only tools that change nothing.
        catalogue: list all tools (`direct`), or tools to find and call the others (`search`); None = the
            plugin's option.
        agent: the terminal agent whose endpoint the client uses; it then has only that agent's tools, and no
            resources or prompts.
    """

    tools: tuple[str, ...] | None = None
    read_only: bool = False
    catalogue: Catalogue | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Server information in `initialize`."""

    name: str
    version: str
    title: str | None = None


@dataclass(frozen=True, slots=True)
class AgentEndpoint:
    """The endpoint of a terminal agent.

    Attributes:
        name: name of the agent.
        token: token of this endpoint only.
        transport: `http` and `websocket` at the port, `unix` at its own socket.
        header: lower-case name of the header with the token.
        server: server information that the agent gets.
        scheme: lower-case word before the token; None = none.
        subprotocol: WebSocket subprotocol; sent only if the agent requests it.
        socket: path of the unix socket.
        label: name of the agent for users, if its client name is generic.
    """

    name: str
    token: str = field(repr=False)
    transport: EndpointTransport
    header: str
    server: ServerInfo
    scheme: str | None = None
    subprotocol: str | None = None
    socket: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What determines a client's list of tools; `client` is its declared name."""

    client: str
    scope: Scope | None = None


@dataclass(slots=True)
class Sender:
    """The client of calls; one object for all calls of a session.

    Attributes:
        client: declared name and version.
        session: the session's id for tools.
        capabilities: declared capabilities.
        scope: scope of the client.
        host: kind of the caller, as tools see it: "mcp" or "python".
        encoded: the sender as Neovim gets it; set by `neovim/`.
    """

    client: ClientInfo
    session: str | None = None
    capabilities: dict[str, Any] | None = None
    scope: Scope | None = None
    host: str = "mcp"
    encoded: dict[str, Any] | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class CallRequest:
    """A `tools/call`, or another request that runs a handler in Neovim."""

    name: str
    arguments: dict[str, Any]
    sender: Sender
    kind: CallKind = "tool"
    timeout: int | None = None
    """Default and maximum timeout in ms; 0 = none for tools that set none; None = the plugin's option."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of definitions; `json` is None when it has not changed since the known revision.

    Attributes:
        loading: Neovim is still loading definitions; request the list again.
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
    task_after: int = 10_000
    hook: int = 150


@dataclass(frozen=True, slots=True)
class Settings:
    """Options from `hello`; the defaults are those of the plugin."""

    tool_prefix: str = "nvim_"
    tool_timeout: int = 300_000
    instructions: str = ""
    scoped_clients: tuple[str, ...] = ()
    root: str = ""
    cwd: str = ""
    state_dir: str = ""
    log_level: str = "info"
    preload: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class HelloInfo:
    """The bridge's parameters of `hello`.

    Attributes:
        versions: of the bridge, Python, and the bridge's packages.
        launch: id from Neovim, if it started the process; else empty.
    """

    pid: int
    port: int
    wanted_port: int
    port_holder: PortHolder
    versions: dict[str, str]
    role: Literal["bridge", "client"] = "bridge"
    launch: str = ""


@dataclass(frozen=True, slots=True)
class Hello:
    """Neovim's answer to `hello`.

    Attributes:
        boot: id of this run of Neovim.
        revisions: revision per kind of definition.
        versions: `nvim` and `plugin`.
        token: a new token, because a foreign process holds the wanted port; replaces the environment's.
        settings: see `Settings`.
        endpoints: endpoints of terminal agents.
        hook_token: token of agents' hooks; None = they are off.
    """

    boot: str
    revisions: dict[str, int]
    versions: dict[str, str]
    token: str | None
    settings: Settings
    endpoints: tuple[AgentEndpoint, ...] = ()
    hook_token: str | None = field(default=None, repr=False)


class HookReply(NamedTuple):
    """Neovim's answer to an event of an agent's hook; `pending`: the event `hook` brings it later."""

    text: str
    pending: bool = False
