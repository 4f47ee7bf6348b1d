"""The state of a program, checked where it leaves the program: there somebody can do something about it."""

from semcast.core.handover import StateHooks
from semcast.wire.limits import MAX_STATE


class CheckedHooks:
    """Hooks that refuse to export what cannot be handed over.

    Args:
        hooks: of the program.
    """

    def __init__(self, hooks: StateHooks) -> None:
        self._hooks = hooks

    def export(self) -> bytes:
        """The state of the program."""
        return checked_state(self._hooks.export())

    def restore(self, state: bytes) -> None:
        """Pass it on."""
        self._hooks.restore(state)


def checked_state(state: bytes) -> bytes:
    """Raise where a state cannot be handed over."""
    if type(state) is not bytes:
        raise TypeError(f"the exported state must be bytes, not {type(state).__name__}")
    if len(state) > MAX_STATE:
        raise ValueError(f"the exported state has {len(state)} bytes; at most {MAX_STATE} are allowed")
    return state
