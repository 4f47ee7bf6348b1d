"""What drives the stacks of a simulated process: in its place a live process has a thread.

A turn comes a little after what caused it, as a thread takes its time to wake up. How much later is drawn
from the seed, so different seeds show different orders.
"""

from collections.abc import Callable
from contextvars import Context
from random import Random

from semcast.core.ids import MICROSECOND, Nanos
from semcast.net.driving import Tenancy
from semcast.sim.scheduler import Scheduler

_SOONEST, _LATEST = 5 * MICROSECOND, 60 * MICROSECOND


class TurnDriver:
    """Of one process; it may have several.

    Args:
        scheduler: virtual time.
        rng: draws how late a turn comes.
        context: in which turns are taken.
    """

    def __init__(self, scheduler: Scheduler, rng: Random, context: Context) -> None:
        self.paused = False
        self._scheduler = scheduler
        self._rng = rng
        self._context = context
        self._places: list[Tenancy] = []
        self._coming: list[Tenancy] = []
        self._next: Nanos | None = None  # when turns are taken
        self._dead = False

    # As a thread does it

    def add(self, place: Tenancy) -> None:
        """Drive this one, too, soon."""
        self._coming.append(place)
        self._plan(0)

    def remove(self, place: Tenancy) -> None:
        """Drive it no more."""
        self._coming = [each for each in self._coming if each is not place]
        self._places = [each for each in self._places if each is not place]
        place.gone.set()

    dismiss = remove

    def wait_for(self, place: Tenancy) -> None:
        """It is gone already."""

    def look_again(self, place: Tenancy) -> None:
        """Whoever has something to read says so."""

    def wake(self, place: Tenancy) -> None:
        """The application of a tenant did something."""
        place.woken = True
        self._plan(0)

    push = wake

    def close(self) -> None:
        """Nobody is driven any more."""

    # For the process

    def arrived(self, fileno: int) -> None:
        """There is something to read."""
        for place in (*self._places, *self._coming):
            if fileno in place.tenant.filenos():
                if fileno not in place.ready:
                    place.ready.append(fileno)
                self._plan(0)

    def resume(self) -> None:
        """The process was paused."""
        self.paused = False
        self._next = None
        self._plan(0)

    def end(self) -> None:
        """The process is gone: nothing is driven any more."""
        self._dead = True
        self._places, self._coming = [], []

    def _plan(self, at: Nanos) -> None:
        """Take turns then, or as soon as that can be."""
        now = self._scheduler.now
        if self._dead or self.paused:
            return
        if at <= now:
            if self._next is not None and self._next <= now + _LATEST:
                return
            at = now + self._rng.randrange(_SOONEST, _LATEST)
        if self._next is None or at < self._next:
            self._next = at
            self._scheduler.at(at, self._wake, at)

    def _wake(self, at: Nanos) -> None:
        if at == self._next and not self._dead and not self.paused:
            self._next = None
            self._context.copy().run(self._take_turns)

    def _take_turns(self) -> None:
        coming, self._coming = self._coming, []
        for place in coming:
            self._places.append(place)
            self._guarded(place, place.tenant.start)
        for place in self._places:
            if place.ready or place.woken or place.due <= self._scheduler.now:
                ready, place.ready, place.woken = place.ready, [], False
                self._guarded(place, lambda now, place=place, ready=ready: place.tenant.run(now, ready))  # type: ignore[misc]
        due = [place.due for place in self._places]
        if any(place.woken or place.ready for place in self._places) or self._coming:
            due.append(0)
        if due:
            self._plan(min(due))

    def _guarded(self, place: Tenancy, run: Callable[[Nanos], None]) -> None:
        try:
            run(self._scheduler.now)
            place.due = place.tenant.next_at()
        except Exception as error:  # the application is told, whatever it is
            self.remove(place)
            place.tenant.failed(error)
