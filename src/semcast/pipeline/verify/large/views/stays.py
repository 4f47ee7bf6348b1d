"""Who owes what to whom in a view, before anybody looks at a message: small tables over stays.

A view is known by its run and number. Every stay is a debtor of its own, and those that are closed, from
which a process went on, owe something.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

from semcast.pipeline.verify.debts import PROMISED, SAME
from semcast.pipeline.verify.stays import Stays, Who
from semcast.specs.evs.configurations import Stay
from semcast.specs.vsync.views import Views, going_on_together, number_of, views_of


@dataclass(slots=True)
class ViewClaims:
    """All of it, by numbers of stays, views and sources."""

    views: dict[tuple[str, int], int] = field(default_factory=dict)
    """By run and number of the view."""

    stays: list[tuple[int, int, Who, bool]] = field(default_factory=list)
    """(stay, view, who, closed)"""

    sources: list[tuple[int, int]] = field(default_factory=list)
    """(stay, source)"""

    asked: list[tuple[int, int, str]] = field(default_factory=list)
    """(source, stay, SAME or PROMISED): what is delivered there is asked of the stay."""

    def closed(self) -> Iterator[int]:
        """The stays from which processes went on."""
        return (stay for stay, _, _, closed in self.stays if closed)


def claims_of(stays: Stays, runs: Iterable[str]) -> ViewClaims:
    """The claims in these runs."""
    claims = ViewClaims()
    sources = count()
    for run in runs:
        _claim(claims, stays, run, views_of(stays.histories[run]), sources)
    return claims


def _claim(claims: ViewClaims, stays: Stays, run: str, views: Views, sources: Iterator[int]) -> None:
    for number in views.of:
        claims.views[run, number] = len(claims.views)
    for stay in views.known.stays:
        view = claims.views[run, number_of(stay)]
        claims.stays.append((stays.number(run, stay), view, (run, stay.process), views.closed(stay)))

    def ask(whose: Iterable[Stay], debtors: Iterable[Stay], kind: str) -> None:
        source = next(sources)
        claims.sources += [(stays.number(run, stay), source) for stay in whose]
        claims.asked += [(source, stays.number(run, stay), kind) for stay in debtors]

    for together in going_on_together(views):
        if len(together) > 1:
            ask(together, together, SAME)
    for everybody in views.of.values():
        debtors = list(filter(views.closed, everybody))
        if debtors and len(everybody) > 1:
            ask([stay for stay in everybody if not views.bereft(stay)], debtors, PROMISED)
