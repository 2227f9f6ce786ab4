"""The cost of a subscriber for each edit of a buffer, and the rate of its notifications."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import servers
from load import Endpoint
from stage import Stage
from table import Row

COST = 10  # µs
RATE = 5  # per second
SECONDS = 2  # of a storm, per second of load that other scenarios have
LATEST = 0.2  # seconds after the last edit until its message is sent
ARRIVAL = 0.2  # seconds until it arrives
UPDATED = b"notifications/resources/updated"


@dataclass(frozen=True)
class Storm:
    """The figures of a storm of edits."""

    cost: float  # µs of processor time per edit
    rate: float  # messages per second
    edits: int


@dataclass
class Heard:
    """The number of messages to the subscriber."""

    count: int = 0


async def storm(stage: Stage, path: Path, heard: Heard) -> Storm:
    """Edit the buffer for a while."""
    heard.count = 0
    await stage.editor.lua("BENCH.storm(...)", str(path), SECONDS * 1000 * stage.amount.seconds)
    found: dict[str, Any] = await stage.editor.wait_for("return BENCH.stormed", timeout=60_000)
    await asyncio.sleep(LATEST + ARRIVAL)
    # The first message is sent at once, the others at intervals.
    return Storm(found["cost"], max(0, heard.count - 1) / (found["seconds"] + LATEST), found["edits"])


@contextlib.asynccontextmanager
async def subscribed(stage: Stage, subscribe: Endpoint, heard: Heard) -> AsyncIterator[None]:
    """A subscriber that reads its stream."""
    headers = subscribe.headers | {"Mcp-Session-Id": subscribe.sessions[0], "Accept": "text/event-stream"}
    async with stage.http.get(subscribe.url, headers=headers) as stream:

        async def read() -> None:
            async for line in stream.content:
                heard.count += UPDATED in line

        reading = asyncio.create_task(read())
        await servers.ask(stage.http, subscribe)
        try:
            yield
        finally:
            before, after = subscribe.before.replace("subscribe", "unsubscribe"), subscribe.after
            unsubscribe = replace(subscribe, before=before, after=after.replace("subscribe", "unsubscribe"))
            await servers.ask(stage.http, unsubscribe)
            reading.cancel()
            await asyncio.wait([reading])


async def measure(stage: Stage) -> list[Row]:
    """The same storm without a subscriber and with one, in turn."""
    path = stage.home.make("cwd") / "storm.txt"
    path.write_text("x\n")
    heard = Heard()
    message = {"method": "resources/subscribe", "params": {"uri": f"nvim://buffer/{path}"}}
    subscribe = await servers.with_sessions(stage.http, stage.bridge, message, '"result"')
    await storm(stage, path, heard)
    pairs = []
    for _ in range(stage.amount.rounds):
        alone = await storm(stage, path, heard)
        async with subscribed(stage, subscribe, heard):
            watched = await storm(stage, path, heard)
        assert heard.count, "the subscriber heard of nothing"
        pairs.append((alone, watched))
    cost = median(watched.cost - alone.cost for alone, watched in pairs)
    rate = median(watched.rate for _, watched in pairs)
    value = f"{cost:.1f} µs of {median(watched.cost for _, watched in pairs):.1f} µs"
    storms = f"{pairs[0][1].edits / SECONDS / stage.amount.seconds:.0f} edits per s"
    return [
        Row("main thread, what a subscriber adds to an edit", value, f"≤ {COST} µs", cost <= COST),
        Row(f"updates to that subscriber, {storms}", f"{rate:.2f} per s", f"≤ {RATE} per s", rate <= RATE),
    ]
