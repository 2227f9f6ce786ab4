"""Tool calls that answer at once, alone and from 16 clients, beside the floor and the peer."""

from __future__ import annotations

import load
import servers
from rounds import Measure, Rounds, interleaved
from stage import Stage
from table import Row

CLIENTS = 16
TEXT = "a line of text, as tools are given it"


async def measure(stage: Stage) -> list[Row]:
    """Run the rounds."""
    http, bridge, peer = stage.http, stage.bridge, stage.peer
    ours, theirs = servers.call("nvim_echo", TEXT), servers.call("echo", TEXT)
    endpoints = {
        "floor": servers.plain(stage.floor, "/lua", theirs, TEXT),
        "ours": await servers.with_sessions(http, bridge, ours, TEXT, CLIENTS),
        "peer": await servers.with_sessions(http, peer, theirs, TEXT, CLIENTS),
        "ours stateless": servers.stateless(bridge, ours, TEXT),
        "peer stateless": servers.stateless(peer, theirs, TEXT),
    }
    measures: dict[str, Measure] = {}
    for name, endpoint in endpoints.items():
        measures[f"{name} 1"] = lambda e=endpoint: load.run(e, stage.amount.seconds, 1)
        measures[f"{name} {CLIENTS}"] = lambda e=endpoint: load.run(e, stage.amount.seconds, CLIENTS)
    for endpoint in endpoints.values():  # so that none is measured while it warms up
        await load.run(endpoint, 1, 4)
    return rows(await interleaved(measures, stage.amount.rounds))


def rows(rounds: Rounds) -> list[Row]:
    """The figures of sessions, then those of the stateless era."""
    return [
        latency(rounds, "ours 1", "peer 1", "sync call, p50"),
        tail(rounds, "ours 1", "peer 1", "sync call, p99, alone"),
        tail(rounds, f"ours {CLIENTS}", f"peer {CLIENTS}", f"sync call, p99, {CLIENTS} clients"),
        rate(rounds, f"ours {CLIENTS}", f"peer {CLIENTS}", 2.0, f"calls/s, {CLIENTS} clients, sessions"),
        rate(
            rounds,
            f"ours stateless {CLIENTS}",
            f"peer stateless {CLIENTS}",
            1.3,
            f"calls/s, {CLIENTS} clients, stateless",
        ),
        latency(rounds, "ours stateless 1", "peer stateless 1", "sync call, stateless, p50"),
    ]


def latency(rounds: Rounds, ours: str, peer: str, figure: str) -> Row:
    """The p50 against the floor and the peer; only sessions have a reach to the floor."""
    to_floor, to_peer = rounds.ratio(ours, "floor 1", "p50"), rounds.ratio(ours, peer, "p50")
    value = (
        f"{to_floor:.2f} × floor, {to_peer:.2f} × peer ({rounds.median(ours, 'p50'):.3f} ms; "
        f"floor {rounds.median('floor 1', 'p50'):.3f}, peer {rounds.median(peer, 'p50'):.3f})"
    )
    if "stateless" in ours:
        return Row(figure, value, "< peer", to_peer < 1)
    return Row(figure, value, "≤ 1.6 × floor, < peer", to_floor <= 1.6 and to_peer < 1)


def tail(rounds: Rounds, ours: str, peer: str, figure: str) -> Row:
    """The p99 against the peer's and against its own p50."""
    to_peer, spread = rounds.ratio(ours, peer, "p99"), rounds.spread(ours)
    value = (
        f"{to_peer:.2f} × peer, {spread:.1f} × own p50 ({rounds.median(ours, 'p99'):.2f} ms; "
        f"peer {rounds.median(peer, 'p99'):.2f}, own p50 {rounds.median(ours, 'p50'):.2f})"
    )
    return Row(figure, value, "< peer, ≤ 8 × own p50", to_peer < 1 and spread <= 8)


def rate(rounds: Rounds, ours: str, peer: str, least: float, figure: str) -> Row:
    """Calls per second against the peer's; the floor's beside them, as nothing on aiohttp can do more."""
    ratio = rounds.ratio(ours, peer, "rate")
    value = (
        f"{ratio:.2f} × peer ({rounds.median(ours, 'rate'):.0f}/s; peer {rounds.median(peer, 'rate'):.0f}, "
        f"floor {rounds.median(f'floor {CLIENTS}', 'rate'):.0f})"
    )
    return Row(figure, value, f"≥ {least:g} × peer", ratio >= least)
