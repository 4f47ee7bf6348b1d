"""The membership state machine as data (Amir 1995, section 5.2.2, figure 5.2).

Deviations: a representative that finds nobody to join goes back to its ring, which was alive all the
time; a Form token reaches members in any state before Form; a newcomer proposes what a working ring
proposes to it at once, and waits again if that ring goes on without it.
"""

import enum
from collections import Counter


class State(enum.Enum):
    """Where a member stands."""

    OPERATIONAL = "operational"
    GATHER = "gather"
    COMMIT = "commit"
    FORM = "form"
    EVS = "evs"
    LEFT = "left"


class Cause(enum.Enum):
    """Why it moved."""

    STARTED = "started"
    FOREIGN_MESSAGE = "foreign message"
    TOKEN_LOST = "token lost"  # noqa: S105
    MEMBER_WENT = "a member gave the ring up"
    GATHER_TIMEOUT = "gather timeout"
    INVITED = "invited by a ring"
    LEFT_OUT = "left out for now"
    NOBODY_CAME = "nobody came"
    AGREED = "agreement"
    FORM_TOKEN = "form token"  # noqa: S105
    FORM_AGAIN = "form token, second time"
    RECOVERED = "everything recovered"
    LEAVING = "leaving"


MOVES: dict[tuple[State, Cause], State] = {
    (State.OPERATIONAL, Cause.STARTED): State.GATHER,
    (State.OPERATIONAL, Cause.FOREIGN_MESSAGE): State.GATHER,
    (State.OPERATIONAL, Cause.TOKEN_LOST): State.GATHER,
    (State.OPERATIONAL, Cause.MEMBER_WENT): State.GATHER,
    (State.OPERATIONAL, Cause.FORM_TOKEN): State.FORM,
    (State.GATHER, Cause.GATHER_TIMEOUT): State.COMMIT,
    (State.GATHER, Cause.INVITED): State.COMMIT,
    (State.GATHER, Cause.NOBODY_CAME): State.OPERATIONAL,
    (State.GATHER, Cause.FORM_TOKEN): State.FORM,
    (State.COMMIT, Cause.NOBODY_CAME): State.OPERATIONAL,
    (State.COMMIT, Cause.LEFT_OUT): State.GATHER,
    (State.COMMIT, Cause.AGREED): State.FORM,
    (State.COMMIT, Cause.FORM_TOKEN): State.FORM,
    (State.FORM, Cause.FORM_AGAIN): State.EVS,
    (State.FORM, Cause.TOKEN_LOST): State.GATHER,
    (State.EVS, Cause.TOKEN_LOST): State.GATHER,
    (State.EVS, Cause.RECOVERED): State.OPERATIONAL,
    (State.OPERATIONAL, Cause.LEAVING): State.LEFT,
    (State.GATHER, Cause.LEAVING): State.LEFT,
    (State.COMMIT, Cause.LEAVING): State.LEFT,
    (State.FORM, Cause.LEAVING): State.LEFT,
    (State.EVS, Cause.LEAVING): State.LEFT,
}
"""Every legal move. `tools/pictures` draws it for the docs; a test compares the picture with this table."""

_FROZEN = (State.FORM, State.EVS)
_OBEYS = (State.OPERATIONAL, State.GATHER, State.COMMIT)


class Standing:
    """Where one member stands. Every move is looked up in the table, and counted."""

    def __init__(self) -> None:
        self.state = State.OPERATIONAL
        self.moves: Counter[tuple[State, Cause]] = Counter()

    def shift_to(self, state: State, cause: Cause) -> None:
        """Move, as the table allows."""
        assert MOVES.get((self.state, cause)) is state, f"{self.state} -> {state} because of {cause}"
        self.moves[self.state, cause] += 1
        self.state = state

    @property
    def frozen(self) -> bool:
        """Whether what is left to deliver is decided together, by the five steps of 5.2.3."""
        return self.state in _FROZEN

    @property
    def obeys(self) -> bool:
        """Whether the token of the configuration, while it goes round, is this member's business."""
        return self.state in _OBEYS
