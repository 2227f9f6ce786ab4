"""Sessions in files, from which another bridge restores them."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_tools_nvim.instances.proof import prove
from mcp_tools_nvim.mcp import inputs
from mcp_tools_nvim.sessions import store as stores
from mcp_tools_nvim.sessions.store import MAX_AGE_SECONDS, MAX_RECORD, SessionStore, TooMuchError
from mcp_tools_nvim.values import Scope

CLIENT = {"name": "client", "version": "1"}
VERSION = "2025-11-25"
TOKEN = "token"

Clock = Callable[[], float]


def make(directory: Path | None, token: str = TOKEN, clock: Clock = time.time) -> SessionStore:
    return SessionStore(token, directory, clock)


@pytest.mark.parametrize(
    "scope", [None, Scope(("dap_status", "lsp"), read_only=True, catalogue="search"), Scope(agent="agent")]
)
def test_a_session_is_found_with_its_token_only(tmp_path: Path, scope: Scope | None) -> None:
    """Any bridge of the project reads it; its file is private."""
    capabilities = {"elicitation": {}, "roots": {"listChanged": True}}
    client = {"name": "n" * 5000, "version": "1", "icons": ["dropped"]}
    id_ = make(tmp_path / "new").save("key", VERSION, client, capabilities, scope)
    saved = make(tmp_path / "new").read(id_)
    assert (saved.key, saved.version, saved.client) == ("key", VERSION, {"name": "n" * 200, "version": "1"})
    assert (saved.capabilities, saved.scope) == (capabilities, scope)
    assert saved.agent == (scope and scope.agent)
    assert make(tmp_path / "new", "other").read(id_) is None
    (file,) = (tmp_path / "new").iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_only_a_complete_id_of_ours_is_read_or_deleted(tmp_path: Path) -> None:
    store = make(tmp_path)
    id_ = store.save("key", VERSION, CLIENT, {})
    (file,) = tmp_path.iterdir()
    changed = ("1" if id_[0] != "1" else "2") + id_[1:]
    forged = ["", ".", id_[:-1], id_ + "0", f"{id_}\n", " " + id_, "ü" * 32, changed]
    for text in (*forged, "../" + file.name, str(file), f"{id_}/../{file.name}"):
        assert store.read(text) is None, text
        store.delete(text)
    assert store.read(id_) is not None


def test_a_health_proof_is_never_a_key() -> None:
    """Whatever nonce is chosen."""
    labels = [stores._KEY_LABEL, inputs._KEY_LABEL, b"mcp-tools.nvim request state"]
    keys = {hmac.digest(label, b"token", "sha256") for label in labels}
    for nonce in ["", *(label.decode() for label in labels)]:
        proof = bytes.fromhex(prove("token", 1, nonce))
        assert proof not in keys
        assert proof not in {hmac.digest(b"token", text, "sha256") for text in (*labels, nonce.encode())}


def test_deleted_and_expired_sessions_are_gone_for_every_bridge(tmp_path: Path) -> None:
    now = [time.time()]
    first, second = (make(tmp_path, clock=lambda: now[0]) for _ in range(2))
    deleted, kept = (first.save(key, VERSION, CLIENT, {}) for key in "ab")
    assert second.read(deleted) is not None
    first.delete(deleted)
    now[0] += MAX_AGE_SECONDS
    assert (first.read(deleted), second.read(deleted)) == (None, None)
    assert second.read(kept) is not None
    now[0] += 1
    assert second.read(kept) is None


def test_the_number_of_files_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of all projects are deleted, and expired ones."""
    monkeypatch.setattr(stores, "MAX_SAVED", 3)
    monkeypatch.setattr(stores, "TIDY_EVERY", 1)
    store, other = SessionStore("token", tmp_path), SessionStore("other", tmp_path)
    expired, *ids = [each.save("key", VERSION, CLIENT, {}) for each in (store, other, store, store)]
    assert (store.read(expired), len(list(tmp_path.iterdir()))) == (None, 3)
    for at, file in enumerate(sorted(tmp_path.iterdir())):
        if at:
            os.utime(file, (1, 1))
    ids.append(store.save("key", VERSION, CLIENT, {}))
    assert store.read(ids[-1]) is not None
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_leaves_no_partial_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    resource = pytest.importorskip("resource")
    store = make(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        store.save("key", VERSION, CLIENT, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []
    assert len(caplog.records) == 1
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    os.utime(link, (1, 1), follow_symlinks=False)
    store.save("key", VERSION, CLIENT, {})
    assert not link.is_symlink()
    assert len(caplog.records) == 1


def test_capabilities_that_are_too_large_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(TooMuchError):
        make(tmp_path).save("key", VERSION, CLIENT, {"sampling": {"x": "y" * MAX_RECORD}})
    assert list(tmp_path.iterdir()) == []


def test_invalid_files_and_directories_are_unknown_sessions(tmp_path: Path) -> None:
    store = make(tmp_path)
    for text in (b"", b"[]", b"{}", b"\xff", b'{"scope": {}}', b'{"scope": null, "key": 1}', None):
        id_ = store.save("key", VERSION, CLIENT, {})
        path = store._path(id_)
        path.unlink()
        if text is None:
            os.mkfifo(path)
        else:
            path.write_bytes(text)
        assert store.read(id_) is None, text
    (tmp_path / "file").write_text("")
    for none in (make(None), make(tmp_path / "file" / "state")):
        assert none.read(none.save("key", VERSION, CLIENT, {})) is None
