"""The states of a server as data (Amir 1995, figures 6.4 to 6.17), and those of one outside of the group."""

import enum


class State(enum.Enum):
    """Where a server stands."""

    BOOT = "boot"
    """It starts: its epoch is not on its disk yet."""
    NON_PRIM = "non-prim"
    REG_PRIM = "reg-prim"
    TRANS_PRIM = "trans-prim"
    EXCHANGE_STATES = "exchange-states"
    EXCHANGE_ACTIONS = "exchange-actions"
    CONSTRUCT = "construct"
    NO = "no"
    UN = "un"
    OUT = "out"
    """Not in the group: far behind, far ahead, or not let in yet. It pulls what it lacks."""
    STOPPED = "stopped"
    """Removed, and nobody needs it any more."""


class Cause(enum.Enum):
    """Why it moved."""

    STARTED = "the epoch is on the disk"
    REG_CONF = "a regular configuration"
    TRANS_CONF = "a transitional configuration"
    STATES = "the states of all"
    EXCHANGED = "all actions are exchanged"
    QUORUM = "a quorum to install a primary"
    INSTALLED = "all agreed to install it"
    UNDECIDED = "all agreed, but not everybody may know"
    ACTION = "an action of the primary"
    STALLED = "its disk or its service takes too long"
    ABSENT = "not counted here"
    RETURNED = "back with what it lacked"
    REMOVED = "removed"


MOVES: dict[tuple[State, Cause], State] = {
    (State.BOOT, Cause.STARTED): State.NON_PRIM,
    (State.BOOT, Cause.ABSENT): State.OUT,
    (State.NON_PRIM, Cause.REG_CONF): State.EXCHANGE_STATES,
    (State.TRANS_PRIM, Cause.REG_CONF): State.EXCHANGE_STATES,
    (State.NO, Cause.REG_CONF): State.EXCHANGE_STATES,
    (State.UN, Cause.REG_CONF): State.EXCHANGE_STATES,
    (State.REG_PRIM, Cause.TRANS_CONF): State.TRANS_PRIM,
    (State.EXCHANGE_STATES, Cause.TRANS_CONF): State.NON_PRIM,
    (State.EXCHANGE_ACTIONS, Cause.TRANS_CONF): State.NON_PRIM,
    (State.CONSTRUCT, Cause.TRANS_CONF): State.NO,
    (State.EXCHANGE_STATES, Cause.STATES): State.EXCHANGE_ACTIONS,
    (State.EXCHANGE_STATES, Cause.ABSENT): State.OUT,
    (State.EXCHANGE_ACTIONS, Cause.EXCHANGED): State.NON_PRIM,
    (State.EXCHANGE_ACTIONS, Cause.QUORUM): State.CONSTRUCT,
    (State.CONSTRUCT, Cause.INSTALLED): State.REG_PRIM,
    (State.CONSTRUCT, Cause.UNDECIDED): State.UN,
    (State.NO, Cause.UNDECIDED): State.UN,
    (State.UN, Cause.ACTION): State.TRANS_PRIM,
    (State.UN, Cause.REMOVED): State.STOPPED,
    (State.EXCHANGE_STATES, Cause.REMOVED): State.STOPPED,
    (State.OUT, Cause.REMOVED): State.STOPPED,
    (State.REG_PRIM, Cause.REMOVED): State.STOPPED,
    (State.OUT, Cause.RETURNED): State.NON_PRIM,
    (State.NON_PRIM, Cause.STALLED): State.OUT,
    (State.REG_PRIM, Cause.STALLED): State.OUT,
    (State.EXCHANGE_STATES, Cause.STALLED): State.OUT,
    (State.EXCHANGE_ACTIONS, Cause.STALLED): State.OUT,
    (State.CONSTRUCT, Cause.STALLED): State.OUT,
    (State.UN, Cause.STALLED): State.OUT,
}
"""Where each cause leads. What is not here cannot happen."""

IN_GROUP = frozenset(State) - {State.BOOT, State.OUT, State.STOPPED}
CREATES = frozenset({State.REG_PRIM, State.NON_PRIM})
"""Where new actions are made; elsewhere requests wait."""
