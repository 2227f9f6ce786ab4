"""Tool calls that answer at once, from 1 and 16 clients, compared with the floor and a peer."""

from __future__ import annotations

import load
import servers
from rounds import Measure, Rounds, interleaved
from stage import Stage
from table import Row

CLIENTS = 16
TEXT = "a line of text, as tools are given it"
LATENCY = {"ours": 1.5, "ours stateless": 1.5}
"""Maximum multiple of the floor's p50."""
RATE = {"ours": 0.55, "ours stateless": 0.55}
"""Minimum multiple of the floor's calls per second."""
SPREAD = {1: 5, CLIENTS: 2.5}
"""Maximum ratio of p99 and p50, by the number of clients."""


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
    for endpoint in endpoints.values():  # warm-up
        await load.run(endpoint, 1, 4)
    return rows(await interleaved(measures, stage.amount.rounds))


def rows(rounds: Rounds) -> list[Row]:
    """The figures of sessions, each followed by that of stateless requests."""
    return [
        latency(rounds, "ours", "peer", "sync call, p50, sessions"),
        latency(rounds, "ours stateless", "peer stateless", "sync call, p50, stateless"),
        rate(rounds, "ours", "peer", f"calls/s, {CLIENTS} clients, sessions"),
        rate(rounds, "ours stateless", "peer stateless", f"calls/s, {CLIENTS} clients, stateless"),
        tail(rounds, 1, "sync call, p99, alone"),
        tail(rounds, CLIENTS, f"sync call, p99, {CLIENTS} clients"),
    ]


def latency(rounds: Rounds, ours: str, peer: str, figure: str) -> Row:
    """The p50 of one client compared with the floor."""
    ratio, reach = rounds.ratio(f"{ours} 1", "floor 1", "p50"), LATENCY[ours]
    medians = [rounds.median(f"{name} 1", "p50") for name in (ours, "floor", peer)]
    value = "{:.2f} × floor ({:.3f} ms; floor {:.3f}, peer {:.3f})".format(ratio, *medians)
    return Row(figure, value, f"≤ {reach:g} × floor", ratio <= reach)


def rate(rounds: Rounds, ours: str, peer: str, figure: str) -> Row:
    """Calls per second of all clients compared with the floor."""
    names = [f"{name} {CLIENTS}" for name in (ours, "floor", peer)]
    ratio, reach = rounds.ratio(names[0], names[1], "rate"), RATE[ours]
    medians = [rounds.median(name, "rate") for name in names]
    value = "{:.2f} × floor ({:.0f}/s; floor {:.0f}, peer {:.0f})".format(ratio, *medians)
    return Row(figure, value, f"≥ {reach:g} × floor", ratio >= reach)


def tail(rounds: Rounds, clients: int, figure: str) -> Row:
    """The p99 with sessions compared with its p50."""
    ours, peer = f"ours {clients}", f"peer {clients}"
    spread, reach = rounds.spread(ours), SPREAD[clients]
    names = [(ours, "p99"), (ours, "p50"), (f"floor {clients}", "p99"), (peer, "p99"), (ours, "p99_at_rate")]
    medians = [rounds.median(name, key) for name, key in names]
    value = (
        "{:.1f} × own p50 ({:.2f} ms; own p50 {:.2f}, floor's p99 {:.2f}, peer's {:.2f}; "
        "{:.2f} for clients that keep to a rate)"
    ).format(spread, *medians)
    return Row(figure, value, f"≤ {reach:g} × own p50", spread <= reach)
