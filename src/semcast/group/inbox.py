"""What a program takes from its group; its state is asked for, or restored, between two things it takes.

By the time a program comes back for more, it has dealt with all that it was given, so its state is the one
at that point of the order.
"""

from collections.abc import Callable, Sequence

from semcast.core.events import StateReceived, StateRequested
from semcast.core.ids import Nanos
from semcast.core.stack import Stack
from semcast.group.events import GroupDelivery, StateHooks
from semcast.net.driver import Driver
from semcast.wire.limits import MAX_STATE


class Inbox:
    """The lists that a driver left.

    Args:
        driver: of the member.
        hooks: to the state of the application; None to hand over what is about it like anything else.
    """

    def __init__(self, driver: Driver, hooks: StateHooks | None) -> None:
        self.hooks = hooks
        self._driver = driver
        self._rest: Sequence[GroupDelivery] = ()

    def __bool__(self) -> bool:
        return bool(self._rest) or bool(self._driver.mailbox)

    def take(self) -> Sequence[GroupDelivery]:
        """The next list, up to where the program must have dealt with it; empty if there was only that.

        A hook that raises is called again the next time.
        """
        if not self._rest:
            self._rest = self._driver.mailbox.take()
            self._driver.taken()
        if self.hooks is None:
            everything, self._rest = self._rest, ()
            return everything
        first = self._rest[0]
        if isinstance(first, StateRequested | StateReceived):
            self._exchange(self.hooks, first)
            self._rest = self._rest[1:]
            return ()
        upto = next(
            (
                place
                for place, each in enumerate(self._rest)
                if isinstance(each, StateRequested | StateReceived)
            ),
            len(self._rest),
        )
        found, self._rest = self._rest[:upto], self._rest[upto:]
        return found

    def dealt_with(self) -> None:
        """The program comes back for more."""
        self._driver.mailbox.dealt_with()

    def _exchange(self, hooks: StateHooks, each: StateRequested | StateReceived) -> None:
        if isinstance(each, StateReceived):
            hooks.restore(each.state)
        else:
            self.provide(each, hooks.export())

    def provide(self, asked: StateRequested, state: bytes) -> None:
        """Hand the state over to who asked. May be called from any thread."""
        self._driver.call(_provision(asked.view, checked_state(state)))


def checked_state(state: bytes) -> bytes:
    """Refuse what cannot be handed over, where somebody can do something about it."""
    if type(state) is not bytes:
        raise TypeError(f"a state is bytes, not {type(state).__name__}")
    if len(state) > MAX_STATE:
        raise ValueError(f"a state of {len(state)} bytes: at most {MAX_STATE} can be handed over")
    return state


def _provision(view: int, state: bytes) -> Callable[[Stack, Nanos], None]:
    def provide(stack: Stack, now: Nanos) -> None:  # noqa: ARG001
        stack.provide(view, state)

    return provide
