"""Events of sessions: the editor hears which agents are there and what they say; they hear what it pushes.

Receives: what happens to sessions of companions; pushes from the editor. Sends: each to the other side.
Does not know about: transports, what a notification means.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from .. import jsonrpc
from ..neovim import Editor
from ..rate_limit import TokenBucket
from ..sessions.registry import Sessions
from ..sessions.session import MAX_NOTICE, Session

NOTICES_PER_SECOND, NOTICES_AT_ONCE = 20, 100
"""Of one agent: they cost the editor's main thread time, and nobody waits for an answer to them."""

logger = logging.getLogger(__name__)


class SessionEvents:
    """See the head of this file; a `Watcher` of sessions."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._sessions: Sessions | None = None
        self._notices: WeakKeyDictionary[Session, TokenBucket] = WeakKeyDictionary()
        editor.on_push(self._push)

    def of(self, sessions: Sessions) -> None:
        """These are the sessions that are pushed to."""
        self._sessions = sessions

    def opened(self, session: Session) -> None:
        """It can be told things."""
        client, _ = session.peer.identity
        name, version = str(client.get("name", ""))[:200], str(client.get("version", ""))[:200]
        self._tell("opened", session, client=name, version=version)

    def notified(self, session: Session, method: str, params: Mapping[str, Any] | None) -> None:
        """It says something that MCP does not know; too much of it is dropped."""
        now = time.monotonic()
        fresh = TokenBucket(NOTICES_PER_SECOND, NOTICES_AT_ONCE, now)
        if self._notices.setdefault(session, fresh).take(now):
            logger.debug("an agent sends more notifications than the editor is told of")
            return
        text = jsonrpc.dumps(params or {})
        if len(text) + len(method) > MAX_NOTICE:
            logger.warning("an agent's notification of %d bytes is dropped", len(text))
            return
        self._tell("notified", session, method=method, params=text.decode())

    def left(self, session: Session) -> None:
        """It is gone."""
        self._tell("left", session)

    def _tell(self, event: str, session: Session, **more: str) -> None:
        data = {"companion": session.companion, "session": session.key, **more}
        self._editor.companion(event, data)

    def _push(self, companion: str, session: str | None, method: str, params: str, latest: bool) -> None:
        if self._sessions is None:
            return
        text = params.encode()
        for each in self._sessions.of_companion(companion):
            if session is None or each.key == session:
                each.tell(method, text, latest=latest)
