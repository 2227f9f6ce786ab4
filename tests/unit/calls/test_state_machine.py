"""The transition table of a call, as a table."""

from __future__ import annotations

import pytest

from mcp_tools_nvim.calls.state_machine import ENDED, TABLE, Event, IllegalMoveError, State, step

S, E = State, Event
LIVE = [S.SENT, S.WAITING_APPROVAL, S.RUNNING, S.WAITING_INPUT]
EXPECTED = {
    S.RECEIVED: {E.SEND: S.SENT, E.FAILURE: S.FAILED, E.CANCEL: S.CANCELLED},
    **{
        state: {
            E.STARTED: S.RUNNING,
            E.RUNS: S.RUNNING,
            E.ASKS_PERSON: S.WAITING_APPROVAL if state in (S.SENT, S.WAITING_APPROVAL) else state,
            E.ASKS_CLIENT: S.WAITING_INPUT,
            E.RESULT: S.DONE,
            E.FAILURE: S.FAILED,
            E.DEADLINE: S.TIMED_OUT,
            E.CANCEL: S.CANCELLED,
        }
        for state in LIVE
    },
    **{state: {} for state in ENDED},
}


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("state", State)
def test_every_state_and_event(state: State, event: Event) -> None:
    """Every pair either leads where the design says, or is refused."""
    expected = EXPECTED[state].get(event)
    if expected is not None:
        assert step(state, event) is expected
    else:
        with pytest.raises(IllegalMoveError, match=f"{event.name} cannot follow {state.name}"):
            step(state, event)


def test_ended_is_final() -> None:
    """Nothing leads out of an end."""
    assert not [state for state, _ in TABLE if state in ENDED]
