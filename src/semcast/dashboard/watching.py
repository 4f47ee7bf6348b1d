"""Live groups on the page: what their members announce once a second, heard without being in them."""

import asyncio
import time
from collections.abc import Sequence

from semcast.core.ids import SECOND
from semcast.dashboard.feed import Feed
from semcast.dashboard.picture import RATES, Picture, Seen
from semcast.net.observer import Observer, Sighting
from semcast.wire import Malformed

_EVERY = 0.5
"""Seconds between two pictures."""


async def watch(feed: Feed, observers: Sequence[tuple[str, Observer]]) -> None:
    """Show these groups until it is cancelled."""
    shown = [(Picture(group), observer) for group, observer in observers]
    for picture, _ in shown:
        feed.show(picture)  # in the order in which they were named, whoever speaks first
    async with asyncio.TaskGroup() as tasks:
        for picture, observer in shown:
            tasks.create_task(_watch(feed, picture, observer))


async def _watch(feed: Feed, picture: Picture, observer: Observer) -> None:
    while True:
        await asyncio.to_thread(observer.listen, _EVERY)
        found = observer.members()
        picture.update(time.time(), [seen_of(each) for each in found], _problem(observer, found))
        feed.show(picture)


def seen_of(sighting: Sighting) -> Seen:
    """What a member said of itself."""
    status = sighting.status
    representative = status.representative
    return Seen(
        member=sighting.member,
        phase=status.phase,
        view=status.view,
        representative="" if representative is None else representative.name,
        size=status.members,
        rates={name: sighting.rate(name) for name in RATES},
        purged=status.purged,
        retransmitted=status.retransmitted,
        buffered=status.buffered,
        unread=status.unread,
        unsent=status.unsent,
        uptime=status.uptime / SECOND,
        held_by="" if status.held_by is None else status.held_by.name,
        held_why=status.held_why,
        held_for=status.held_for / SECOND,
    )


def _problem(observer: Observer, found: Sequence[Sighting]) -> str:
    """Why nothing may be seen."""
    if found:
        return ""
    unreadable = {why: count for why, count in observer.malformed.items() if why is not Malformed.GROUP}
    if unreadable:
        reasons = ", ".join(f"{count} {why.value}" for why, count in sorted(unreadable.items(), key=str))
        return f"datagrams come that cannot be read ({reasons}): is this the key of the group?"
    return "no member has announced itself: does the group run, and is this its name?"
