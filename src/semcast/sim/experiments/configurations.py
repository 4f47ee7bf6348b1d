"""E1 and E2: what extended virtual synchrony promises (Amir 1995, chapter 4), in an example and in swarms."""

from random import Random

from semcast.core import Delivery
from semcast.core.events import TransitionalView, ViewChange
from semcast.core.ids import MILLISECOND, MemberId
from semcast.core.messages import Batch
from semcast.core.outbox import Frame, Outbox
from semcast.lab import Keeper, Lab
from semcast.protocols.ring import Ring, RingSettings
from semcast.protocols.ring.frames import Packet, Token
from semcast.sim.experiments.cells import Parameters, Result
from semcast.sim.simulate import simulate
from semcast.sim.swarm import scenario_of
from semcast.specs import Status, check
from semcast.specs.evs import EVS

AS_PUBLISHED = RingSettings(accelerated=0, adaptive=False)

DESCRIBED = {
    "p": "regular {p}, transitional {p}, regular {p q r}, m1, m2, transitional {p}, m3, m4, m5, regular {p}",
    "q": "regular {q}, transitional {q}, regular {p q r}, m1, transitional {q r}, m2, m4, regular {q r s t}",
    "r": "regular {r}, transitional {r}, regular {p q r}, m1, transitional {q r}, m2, m4, regular {q r s t}",
    "s": "regular {s}, transitional {s}, regular {s t}, m', transitional {s t}, regular {q r s t}",
    "t": "regular {t}, transitional {t}, regular {s t}, m', transitional {s t}, regular {q r s t}",
}
"""What figure 4.8 and its text say that each process is given."""


class _Listener(Keeper):
    """An application that writes down what it is given."""

    def __init__(self, story: list[str]) -> None:
        super().__init__()
        self._story = story

    def on_delivery(self, each: Delivery) -> None:
        if isinstance(each, Batch):
            self._story += [payload.decode() for payload in each.payloads]
        elif isinstance(each, ViewChange | TransitionalView):
            members = " ".join(member.name for member in each.view.members)
            kind = "regular" if isinstance(each, ViewChange) else "transitional"
            self._story.append(f"{kind} {{{members}}}")


class Example(Lab):
    """Five safe messages, sent and lost so that each process knows what the text says it knows.

    `visits` counts the token's visits to p. The first loss of m2 makes p lower aru in the second rotation,
    so that in the fourth p has released the token twice at 2, and q and r only once.
    """

    def __init__(self) -> None:
        super().__init__(latency=0)
        self.visits = 0
        self.split = [{"p", "q", "r"}, {"s", "t"}]
        self.lost_m2 = False
        self.sent: tuple[str, ...] = ()
        self.story: dict[str, list[str]] = {name: [] for name in "pqrst"}
        self.rings = {name: Ring(MemberId(name), AS_PUBLISHED, Random(name), Outbox()) for name in self.story}
        for name, ring in self.rings.items():
            self.add(MemberId(name), ring, _Listener(self.story[name]))
        self.carries = self._carries

    def tell(self) -> dict[str, str]:
        """From the beginning to the end: what each process was given."""
        self.start()
        self.run(400 * MILLISECOND)
        self.seats["s"].multicast(b"m'", safe=True)
        self.run(40 * MILLISECOND)
        self._say("p", "m1")
        self.run(1500 * MILLISECOND)
        return {name: ", ".join(seen) for name, seen in self.story.items()}

    def _say(self, who: str, what: str) -> None:
        self.sent += (what,)
        self.seats[who].multicast(what.encode(), safe=True)

    def _carries(self, source: str, dest: str, frame: Frame) -> bool:
        if not any({source, dest} <= side for side in self.split):
            return False
        if isinstance(frame, Token) and "m1" in self.sent and "p" in self.split[0] and len(self.split[0]) > 1:
            return self._on_token(dest)
        if isinstance(frame, Packet):
            [payload] = frame.parts[0].payloads
            if payload == b"m2" and dest == "p" and not self.lost_m2:
                self.lost_m2 = True
                return False
            if payload == b"m3":
                return False
        return True

    def _on_token(self, dest: str) -> bool:
        if dest == "p":
            self.visits += 1
            if self.visits == 2:
                self._say("p", "m3")
            elif self.visits == 3:
                self._say("p", "m5")
        elif dest == "q" and self.visits == 3:
            # p has let go of the token for the second time at 2: it is cut off.
            self.split = [{"p"}, {"q", "r", "s", "t"}]
            return False
        elif dest == "r" and self.visits == 2:
            self._say("r", "m4")
        elif dest == "q" and "m2" not in self.sent:
            self._say("q", "m2")
        return True


class ExampleCell(Parameters, frozen=True):
    """Which process is looked at."""

    process: str = "p"


def e1(cell: ExampleCell) -> Result:
    """What a process of the example is given, and how much of it the text does not describe."""
    told = Example().tell()[cell.process]
    given, described = told.split(", "), DESCRIBED[cell.process].split(", ")
    same = sum(one == other for one, other in zip(given, described, strict=False))
    return {"given": told, "events": len(given), "other": max(len(given), len(described)) - same}


class SpecificationCell(Parameters, frozen=True):
    """A seed: it draws members, traffic and faults."""


def e2(cell: SpecificationCell) -> Result:
    """One run with faults, judged by every specification."""
    scenario = scenario_of("ring", cell.seed)
    history = simulate(scenario).history
    verdicts = check(history, list(EVS))
    delivered = sum(event.count for event in history.events if event.kind.value == "deliver")
    return {
        "members": scenario.size,
        "faults": len(scenario.faults),
        "configurations": sum(event.kind.value == "view" for event in history.events),
        "deliveries": delivered,
        "specifications": len(verdicts),
        "held": sum(verdict.status is Status.HOLDS for verdict in verdicts),
        "violated": sum(verdict.status is Status.VIOLATED for verdict in verdicts),
    }
