"""A bench on which a test moves frames between members of a ring by hand."""

from random import Random

from semcast.core import Batch, MemberId, Outbox, TransitionalView, ViewChange
from semcast.core.events import Delivery
from semcast.core.handover import Handover
from semcast.core.ids import MILLISECOND
from semcast.protocols.ring import Ring, RingSettings
from semcast.testing import Application, Keeper, Lab


class Listener(Keeper):
    """An application that says what it sees, in words."""

    def __init__(self, words: list[str]) -> None:
        super().__init__()
        self._words = words

    def on_delivery(self, each: Delivery) -> None:
        if isinstance(each, Batch):
            self._words += [payload.decode() for payload in each.payloads]
        elif isinstance(each, ViewChange | TransitionalView):
            members = " ".join(member.name for member in each.view.members)
            kind = "regular" if isinstance(each, ViewChange) else "transitional"
            self._words.append(f"{kind} {{{members}}}")


class RingLab(Lab):
    """Members by name; frames travel in order and in no time, unless `carries` says that they are lost."""

    def __init__(self, names: str, settings: RingSettings, kind: type[Ring] = Ring) -> None:
        super().__init__()
        self.ids = {name: MemberId(name) for name in names}
        self.rings = {
            name: kind(member, settings, Random(name), Outbox()) for name, member in self.ids.items()
        }
        self.story: dict[str, list[str]] = {name: [] for name in names}
        """What each application saw, in words."""
        for name, ring in self.rings.items():
            self.add(self.ids[name], ring, self.application(name), self.handover())

    def application(self, name: str) -> Application:
        return Listener(self.story[name])

    def handover(self) -> Handover | None:
        return None

    def run_for(self, milliseconds: int) -> None:
        self.run(milliseconds * MILLISECOND)

    def multicast(self, name: str, payload: bytes, *, safe: bool = False) -> None:
        assert self.seats[name].multicast(payload, safe=safe) == 1
