"""The state machine of a call on this side of the wire: its states, and what may follow what.

Does not know about: why an event came, or what to do about it.
"""

from __future__ import annotations

from enum import IntEnum, auto


class State(IntEnum):
    """Where a call is, as far as the bridge knows. (Integers hash fast; every call looks up three moves.)"""

    RECEIVED = auto()  # nothing was sent to the editor
    SENT = auto()  # no sign from the editor yet: it may be blocked
    WAITING_APPROVAL = auto()
    RUNNING = auto()
    WAITING_INPUT = auto()
    DONE = auto()
    FAILED = auto()
    TIMED_OUT = auto()
    CANCELLED = auto()


class Event(IntEnum):
    """What can happen to a call."""

    SEND = auto()
    STARTED = auto()  # the editor is about to call the tool
    RUNS = auto()  # a reply says: running
    ASKS_PERSON = auto()  # a reply says: waiting_approval
    ASKS_CLIENT = auto()  # a reply says: waiting_input
    RESULT = auto()
    FAILURE = auto()  # an error, or the editor never started it, or is gone
    DEADLINE = auto()
    CANCEL = auto()


class IllegalMoveError(Exception):
    """An event that cannot happen in that state; the state stays as it was."""


_LIVE = (State.SENT, State.WAITING_APPROVAL, State.RUNNING, State.WAITING_INPUT)

TABLE: dict[tuple[State, Event], State] = {
    (State.RECEIVED, Event.SEND): State.SENT,
    (State.RECEIVED, Event.FAILURE): State.FAILED,
    (State.RECEIVED, Event.CANCEL): State.CANCELLED,
}
"""Every legal move; `started` and replies may overtake each other, so a call that runs stays so."""

for _state in _LIVE:
    TABLE |= {
        (_state, Event.STARTED): State.RUNNING,
        (_state, Event.RUNS): State.RUNNING,
        (_state, Event.ASKS_PERSON): State.WAITING_APPROVAL,
        (_state, Event.ASKS_CLIENT): State.WAITING_INPUT,
        (_state, Event.RESULT): State.DONE,
        (_state, Event.FAILURE): State.FAILED,
        (_state, Event.DEADLINE): State.TIMED_OUT,
        (_state, Event.CANCEL): State.CANCELLED,
    }
# A call that has started is past its approval: what says otherwise is old.
TABLE[State.RUNNING, Event.ASKS_PERSON] = State.RUNNING
TABLE[State.WAITING_INPUT, Event.ASKS_PERSON] = State.WAITING_INPUT

ENDED = frozenset({State.DONE, State.FAILED, State.TIMED_OUT, State.CANCELLED})


def step(state: State, event: Event) -> State:
    """The state after `event`.

    Raises:
        IllegalMoveError: the table has no such move.
    """
    try:
        return TABLE[state, event]
    except KeyError:
        raise IllegalMoveError(f"{event.name} cannot follow {state.name}") from None
