"""The states of a member as data: in no view, in one, between two, cut off, out."""

import enum


class State(enum.Enum):
    """Where a member stands."""

    JOINING = "joining"
    OPERATIONAL = "operational"
    FLUSHING = "flushing"
    """Its view is about to change: nothing is sent (t4 to t7 of figure 4.4)."""
    MINORITY = "minority"
    """And too few are within reach to agree on the next one."""
    SERVING = "serving"
    """It is not in the next view, and gives those who are what they still need."""
    LEFT = "left"


class Cause(enum.Enum):
    """Why it moved."""

    ADMITTED = "founded or let in"
    CHANGE = "a change of view"
    CUT_OFF = "no majority within reach"
    WITHIN_REACH = "a majority within reach"
    INSTALLED = "the next view"
    LEAVING = "leaving"
    PUT_OUT = "not in the next view"
    SUPERSEDED = "the others went on"
    REFUSED = "refused"
    SERVED = "nobody needs it"


MOVES: dict[tuple[State, Cause], State] = {
    (State.JOINING, Cause.ADMITTED): State.OPERATIONAL,
    (State.OPERATIONAL, Cause.CHANGE): State.FLUSHING,
    (State.FLUSHING, Cause.INSTALLED): State.OPERATIONAL,
    (State.FLUSHING, Cause.CUT_OFF): State.MINORITY,
    (State.MINORITY, Cause.WITHIN_REACH): State.FLUSHING,
    (State.MINORITY, Cause.INSTALLED): State.OPERATIONAL,
    (State.JOINING, Cause.LEAVING): State.LEFT,
    (State.OPERATIONAL, Cause.LEAVING): State.LEFT,
    (State.FLUSHING, Cause.LEAVING): State.SERVING,
    (State.MINORITY, Cause.LEAVING): State.SERVING,
    (State.FLUSHING, Cause.PUT_OUT): State.SERVING,
    (State.MINORITY, Cause.PUT_OUT): State.SERVING,
    (State.SERVING, Cause.SERVED): State.LEFT,
    (State.OPERATIONAL, Cause.SUPERSEDED): State.LEFT,
    (State.FLUSHING, Cause.SUPERSEDED): State.LEFT,
    (State.MINORITY, Cause.SUPERSEDED): State.LEFT,
    (State.JOINING, Cause.REFUSED): State.LEFT,
    (State.JOINING, Cause.SUPERSEDED): State.LEFT,
}
"""Every legal move. `tools/pictures` draws it for the docs; a test compares the picture with this table."""
