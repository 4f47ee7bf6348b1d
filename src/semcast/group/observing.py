"""From settings to an observer: whoever may join a group may watch it."""

from collections.abc import Sequence

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame
from semcast.group.families import FAMILIES
from semcast.group.machine import MACHINE
from semcast.group.sealing import check_exposure, codec_of, keyring_of
from semcast.group.settings import GroupSettings, check_group
from semcast.group.stacks import bind_address, fixed_members, open_endpoint
from semcast.net.observer import Observer
from semcast.protocols.families import FAMILIES as PROTOCOLS
from semcast.wire import Datagram, DatagramCodec, Malformed


def observe(group: str, settings: GroupSettings) -> Observer:
    """Open the sockets of somebody who only listens, where the members announce themselves.

    With `multicast = false` they do so at their `peers` only: then this must be bound to one of those.
    """
    check_group(group)
    machine = MACHINE.get()
    bind = bind_address(settings)
    check_exposure(bind, settings, machine)
    keyring = keyring_of(settings)
    members = fixed_members(settings)
    endpoint = open_endpoint(group, settings, bind)
    name = f"observer-{machine.random_bytes(4).hex()}"
    kinds = [kind for family in FAMILIES for kind in family.kinds]
    frames = tuple(PROTOCOLS.frames())
    made = [
        codec_of(machine, group, alike, endpoint.datagram_bytes, name, keyring, settings, frames)
        for alike in (members, *kinds)
    ]
    files = [keys for _, keys in made if keys is not None]

    def tend() -> None:
        for each in files:
            each.tend()

    return Observer(
        endpoint, AnyCodec([codec for codec, _ in made]), MemberId(name), clock=machine.clock, tend=tend
    )


class AnyCodec:
    """Reads what members of a group say, whatever their stack.

    Args:
        codecs: of each way to set a group up; the first is asked first.
    """

    def __init__(self, codecs: Sequence[DatagramCodec]) -> None:
        self._codecs = list(codecs)

    @property
    def group(self) -> bytes:
        """Of the one that read something last."""
        return self._codecs[0].group

    @property
    def authentic(self) -> bool:
        """Where every one of them is."""
        return all(codec.authentic for codec in self._codecs)

    def encode(self, source: MemberId, frames: Sequence[Frame]) -> list[bytes]:
        """As the one that read something last would."""
        return self._codecs[0].encode(source, frames)

    def decode(self, data: bytes) -> Datagram | Malformed:
        """A datagram, or why it is none for anybody in a group of this name."""
        for place, codec in enumerate(self._codecs):
            found = codec.decode(data)
            if found is not Malformed.GROUP:
                if place:
                    self._codecs.insert(0, self._codecs.pop(place))
                return found
        return Malformed.GROUP
