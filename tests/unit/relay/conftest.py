"""Bridges and clients that end with the test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from .fakes import INITIALIZE, TOKEN, Answer, Client, Connect, FakeBridge, Serve, Stream, answered


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a bridge."""
    with contextlib.ExitStack() as stack:

        def start(answer: Answer = answered, token: str | None = TOKEN, port: int = 0) -> FakeBridge:
            stack.callback((bridge := FakeBridge(token, answer, port)).stop)
            return bridge

        yield start


@pytest.fixture
def connect(serve: Serve) -> Iterator[Connect]:
    """Returns a client with a session of a bridge, by default of a new one."""
    with contextlib.ExitStack() as stack:

        def make(
            to: FakeBridge | Answer = answered, stream: Stream | None = None, *, opens: bool = True
        ) -> Client:
            bridge = to if isinstance(to, FakeBridge) else serve(to)
            bridge.stream = stream or bridge.stream
            stack.callback((client := Client(bridge)).close)
            if opens:
                client.ask(INITIALIZE)
                assert "result" in client.answer(0)
            return client

        yield make
