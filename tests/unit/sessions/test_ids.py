"""Session ids that say what the session is."""

from __future__ import annotations

import hmac
import os
import threading
from pathlib import Path

import pytest

from mcp_tools_nvim.instances.proof import prove
from mcp_tools_nvim.mcp import inputs
from mcp_tools_nvim.sessions import ids as session_ids
from mcp_tools_nvim.sessions.ids import (
    MAX_AGE_SECONDS,
    MAX_DELETED,
    MAX_ID_BYTES,
    DeletedSessions,
    SessionIds,
    TooMuchError,
)
from mcp_tools_nvim.values import Scope

TOKEN = "token"
CLIENT = {"name": "client", "version": "1"}


class Clock:
    """Unix time that a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def make(token: str = TOKEN, folder: Path | None = None, clock: Clock | None = None) -> SessionIds:
    clock = clock or Clock()
    return SessionIds(token, DeletedSessions(folder, clock), clock)


def test_an_id_says_what_was_sealed() -> None:
    """It can be opened by any bridge with the same token, and by no other."""
    clock = Clock()
    capabilities = {"elicitation": {}, "roots": {"listChanged": True}}
    id_ = make(clock=clock).seal("key", "2025-11-25", CLIENT | {"icons": ["dropped"]}, capabilities)
    sealed = make(clock=clock).open(id_)
    assert sealed is not None
    assert (sealed.key, sealed.version, sealed.client) == ("key", "2025-11-25", CLIENT)
    assert sealed.capabilities == capabilities
    assert make("other", clock=clock).open(id_) is None
    assert id_.isascii()
    assert len(id_) < 300


def test_forged_ids() -> None:
    """Nothing but a whole id of ours opens, whatever is changed in it."""
    ids = make()
    id_ = ids.seal("key", "2025-11-25", CLIENT, {})
    body, _, mac = id_.partition(".")
    forged = [
        "",
        ".",
        body,
        f"{body}.",
        f".{mac}",
        f"{mac}.{body}",
        id_ + ".",
        "ü.ü",
        "a" * 3000,
        f"{body}.{mac[:-2]}",
    ]
    forged += [id_[:n] + ("A" if id_[n] != "A" else "B") + id_[n + 1 :] for n in range(0, len(id_) - 1, 7)]
    for text in forged:
        assert ids.open(text) is None, text


def test_no_proof_is_a_key() -> None:
    """Whoever lets the bridge prove itself for chosen nonces learns no key."""
    labels = [session_ids._KEY_LABEL, inputs._KEY_LABEL, b"mcp-tools.nvim request state"]
    keys = {hmac.digest(label, b"token", "sha256") for label in labels}
    for nonce in ["", *(label.decode() for label in labels)]:
        proof = bytes.fromhex(prove("token", 1, nonce))
        assert proof not in keys
        assert proof not in {hmac.digest(b"token", text, "sha256") for text in (*labels, nonce.encode())}


def test_ids_expire() -> None:
    """After seven days an id is worth nothing."""
    clock = Clock()
    ids = make(clock=clock)
    id_ = ids.seal("key", "2025-11-25", CLIENT, {})
    clock.now += MAX_AGE_SECONDS
    assert ids.open(id_) is not None
    clock.now += 1
    assert ids.open(id_) is None


def test_long_declarations() -> None:
    """Only what tools use stays of them; what still does not fit is refused."""
    ids = make()
    noise = {f"x{n}": {"v": hmac.digest(b"k", str(n).encode(), "sha256").hex()} for n in range(100)}
    kept = {"ai.nimblebrain/host-resources": {"read": {"enabled": True}}}
    declared = {"elicitation": {}, "extensions": noise | kept, "experimental": noise}
    id_ = ids.seal("key", "2025-11-25", {"name": "n" * 5000, "version": "1"}, declared)
    assert len(id_) <= MAX_ID_BYTES
    sealed = ids.open(id_)
    assert sealed is not None
    assert sealed.capabilities == {"elicitation": {}, "extensions": kept}
    assert sealed.client["name"] == "n" * 200
    with pytest.raises(TooMuchError):
        ids.seal("key", "2025-11-25", CLIENT, {"sampling": noise})


def test_deleted_ids_stay_deleted(tmp_path: Path) -> None:
    """Across restarts, and for a second bridge that shares the folder; the file is private."""
    clock = Clock()
    folder = tmp_path / "state"
    first, second = make(folder=folder, clock=clock), make(folder=folder, clock=clock)
    deleted, kept = (first.seal(key, "2025-11-25", CLIENT, {}) for key in ("a", "b"))
    assert second.open(deleted) is not None
    sealed = first.open(deleted)
    assert sealed is not None
    first.delete(sealed)
    for ids in (first, second, make(folder=folder, clock=clock)):
        assert ids.open(deleted) is None
        assert ids.open(kept) is not None
    assert (folder / "deleted-sessions").stat().st_mode & 0o777 == 0o600


def test_tombstones_are_bounded(tmp_path: Path) -> None:
    """Those that expire first go first, in memory and on disk; nonsense in the file is no error."""
    clock = Clock()
    for folder in (None, tmp_path):
        deleted = DeletedSessions(folder, clock)
        for n in range(MAX_DELETED + 10):
            deleted.add(f"key{n}", int(clock.now) + 10 + n)
        assert len(deleted) <= MAX_DELETED
        assert "key0" not in deleted
        assert f"key{MAX_DELETED + 9}" in deleted
    path = tmp_path / "deleted-sessions"
    assert len(path.read_text().splitlines()) <= MAX_DELETED
    path.write_text("nonsense\nx y\n\xff\n" + path.read_text())
    assert f"key{MAX_DELETED + 9}" in DeletedSessions(tmp_path, clock)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Then deleted ids are remembered as long as the bridge lives."""
    blocker = tmp_path / "file"
    blocker.write_text("")
    deleted = DeletedSessions(blocker / "state", Clock())
    deleted.add("key", int(Clock().now) + 10)
    assert "key" in deleted


def test_an_id_has_one_spelling() -> None:
    """Padding and spare bits of base64 make no further ids: a deleted session has no other one."""
    import base64

    ids = SessionIds("token", DeletedSessions(None))
    id_ = ids.seal("key", "2025-11-25", {"name": "c"}, {})
    assert ids.open(id_) is not None
    body, _, mac = id_.partition(".")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    spare = mac[:-1] + alphabet[alphabet.index(mac[-1]) ^ 1]
    assert base64.urlsafe_b64decode(spare + "==") == base64.urlsafe_b64decode(mac + "==")
    for other in (
        f"{body}.{spare}",
        f"{body}.{mac}==",
        f"{body}=.{mac}",
        f" {id_}",
        f"{id_}\n",
        f"{body}.{mac}.",
    ):
        assert ids.open(other) is None, other


def test_a_file_that_is_none(tmp_path: Path) -> None:
    """A pipe in its place holds nobody up; ids are remembered in memory then."""
    os.mkfifo(tmp_path / "deleted-sessions")
    stones, seen = DeletedSessions(tmp_path, Clock()), []

    def use() -> None:
        seen.append("key" in stones)
        stones.add("key", int(Clock().now) + 10)
        seen.append("key" in stones)

    thread = threading.Thread(target=use, daemon=True)  # of which the test need not wait for the end
    thread.start()
    thread.join(5)
    assert seen == [False, True]


def test_a_scope_is_sealed_and_ids_without_one_are_as_before() -> None:
    """An id says what its session may see; what was sealed before there were scopes opens."""
    clock = Clock()
    ids = make(clock=clock)
    scope = Scope(("dap_status", "lsp"), read_only=True, catalogue="search")
    id_ = ids.seal("key", "2025-11-25", CLIENT, {}, scope)
    sealed = make(clock=clock).open(id_)
    assert sealed is not None
    assert (sealed.scope, sealed.client) == (scope, CLIENT)
    before = ids._write([1, "key", int(clock.now), "2025-11-25", CLIENT, {}])
    assert ids.seal("key", "2025-11-25", CLIENT, {}) == before
    opened = ids.open(before)
    assert opened is not None
    assert opened.scope is None
    assert ids.open(ids._write([4, "key", int(clock.now), "2025-11-25", CLIENT, {}])) is None


def test_to_whose_endpoint_a_session_came_is_sealed() -> None:
    """Whoever opens it knows; a bridge from before there were endpoints takes it for no id of its own."""
    ids = make()
    sealed = ids.open(ids.seal("key", "2025-11-25", CLIENT, {}, Scope(agent="agent")))
    assert sealed is not None
    assert sealed.scope == Scope(agent="agent")
