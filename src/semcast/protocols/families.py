"""The families of protocols: what each puts on the wire.

Tags of frames are unique among all families, so that whoever watches a group can read any of them. Several
families may send the same frame (`Piece`).
"""

from collections.abc import Iterator

import msgspec

from semcast.core.outbox import Frame
from semcast.core.registry import Registry
from semcast.wire.status import Contacts, Status


class Family(msgspec.Struct, frozen=True):
    """One or several stacks, and the frames that they send."""

    name: str
    frames: tuple[type[Frame], ...]


class Families(Registry[Family]):
    """All families, with nothing said in two ways on the wire."""

    def register(self, record: Family) -> Family:
        """Add a family, unless one of its frames has the tag of another."""
        known: list[type[Frame]] = [Status, Contacts, *self.frames()]
        taken = {_tag(frame): frame for frame in known}
        for frame in record.frames:
            if taken.get(_tag(frame), frame) is not frame:
                other = taken[_tag(frame)].__name__
                raise ValueError(f"{frame.__name__} of {record.name} has the tag of {other}: {_tag(frame)}")
        return super().register(record)

    def frames(self) -> Iterator[type[Frame]]:
        """What any stack may send."""
        return iter(dict.fromkeys(frame for family in self for frame in family.frames))


def _tag(frame: type[Frame]) -> object:
    return frame.__struct_config__.tag


FAMILIES = Families("family of protocols")
