"""A property that is broken, whatever comes."""

import msgspec

from semcast.history.events import Event


class Alarm(msgspec.Struct, frozen=True):
    """What was broken, and by which events."""

    property: str
    detail: str
    events: tuple[Event, ...] = ()

    def __str__(self) -> str:
        return "\n    ".join([f"{self.property}: {self.detail}", *map(str, self.events)])
