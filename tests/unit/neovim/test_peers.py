"""Callers cross once, and never as somebody else."""

from __future__ import annotations

from mcp_tools_nvim.neovim.peers import MAX_PEERS, Peers
from mcp_tools_nvim.values import CallRequest, ClientInfo, Scope


def request(session: str | None = "s", name: str = "client", **more: object) -> CallRequest:
    return CallRequest("tool", {}, ClientInfo(name, "1"), session, **more)  # type: ignore[arg-type]


def introduce(peers: Peers, asked: CallRequest, timeout: int = 1000) -> tuple[int, bool]:
    """The number of a caller, and whether it was told anew."""
    key = peers.key(asked, timeout)
    number = peers.find(key, asked)
    if number is not None:
        return number, False
    number = peers.number(key)
    peers.sent(key, number, asked)
    return number, True


def test_a_caller_is_told_once() -> None:
    """The second call of a client names it by its number alone."""
    peers = Peers()
    assert introduce(peers, request()) == (1, True)
    assert introduce(peers, request()) == (1, False)


def test_who_differs_is_another() -> None:
    """Name, session, host, scope and time limit are all part of who calls."""
    peers = Peers()
    others = [
        request(),
        request(None),
        request("t"),
        request(name="other"),
        request(host="python"),
        request(scope=Scope(("lsp",))),
        request(scope=Scope(("lsp",), read_only=True)),
    ]
    assert [introduce(peers, each) for each in others] == [(i + 1, True) for i in range(len(others))]
    assert introduce(peers, request(), timeout=2000) == (len(others) + 1, True)
    assert [introduce(peers, each) for each in others] == [(i + 1, False) for i in range(len(others))]


def test_other_capabilities_are_told_anew() -> None:
    """A client that declares something else is told again, by the number that it had."""
    peers = Peers()
    assert introduce(peers, request(capabilities={"roots": {}})) == (1, True)
    assert introduce(peers, request(capabilities={"roots": {}})) == (1, False)
    assert introduce(peers, request(capabilities={"elicitation": {}})) == (1, True)
    assert introduce(peers, request(capabilities=None)) == (1, True)


def test_a_number_stands_for_one_caller() -> None:
    """Of too many the oldest gives its number away, and is told anew."""
    peers = Peers()
    first = [introduce(peers, request(str(i))) for i in range(MAX_PEERS)]
    assert first == [(i + 1, True) for i in range(MAX_PEERS)]
    assert introduce(peers, request("more")) == (1, True)
    assert introduce(peers, request("0")) == (2, True)
    assert introduce(peers, request("more")) == (1, False)


def test_what_was_not_sent_is_not_known() -> None:
    """A caller counts as told when the message was written, not before."""
    peers = Peers()
    key = peers.key(request(), 1000)
    peers.number(key)
    assert peers.find(key, request()) is None
