"""What clients were told stays true (Amir 1995, chapter 7)."""

from collections.abc import Iterator

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.specs.replication.kinds import (
    COLOUR,
    DONE,
    DURABLE,
    GREEN,
    PHASE,
    REPLY,
    REQUEST,
    SNAPSHOT,
    STORE,
)
from semcast.specs.replication.ledger import (
    ANSWERS,
    FOREVER,
    Action,
    GreenPlace,
    Ledger,
    Life,
    ledger_of,
    text_of,
)
from semcast.specs.replication.rest import blocked
from semcast.specs.verdict import Findings, Verdict, unknown

PRIMARY = "reg-prim"


def _answers(ledger: Ledger, level: str) -> Iterator[tuple[Life, Event]]:
    for life in ledger.lives:
        for event in life.events:
            if event.kind is REPLY and event.level == level and (event.order or 0) <= life.given_up:
                yield life, event


def repl_answered(history: History) -> Verdict:
    """What was answered at a position is there for ever, at all servers, through crashes of all."""
    ledger = ledger_of(history)
    findings = Findings("repl_answered")
    green = _greens_by_position(ledger)
    for _, reply in _answers(ledger, "strict"):
        assert reply.sender is not None
        assert reply.order is not None
        action = reply.sender, reply.seq
        wanted = ledger.client_of(action)
        for life, place in green.get(reply.order, ()):
            client = ledger.client_of(place.action)
            if place.action != action and (client is None or client != wanted):
                findings.count(1)
                reason = f"({reply.sender},{reply.seq}) was answered at {reply.order}, where {life.process}"
                findings.example(f"{reason} has ({place.action[0]},{place.action[1]})", reply, place.event)
    return findings.verdict()


def _greens_by_position(ledger: Ledger) -> dict[int, list[tuple[Life, GreenPlace]]]:
    """Which actions have this place for ever, at which servers."""
    found: dict[int, list[tuple[Life, GreenPlace]]] = {}
    for life in ledger.lives:
        upto = life.counts_upto
        for position, place in life.places():
            if position <= upto:
                found.setdefault(position, []).append((life, place))
    return found


def repl_queued(history: History) -> Verdict:
    """What was answered as queued is done once, everywhere, when all is at rest."""
    name = "repl_queued"
    ledger = ledger_of(history)
    why = blocked(history)
    if why:
        return unknown(name, why)
    findings = Findings(name)
    done = {
        event.members[0]
        for life in ledger.lives
        for event in life.events
        if event.kind is DONE and event.members and (event.order or 0) <= life.counts_upto
    }
    for level in ANSWERS:
        for life, reply in _answers(ledger, level):
            assert reply.sender is not None
            action = reply.sender, reply.seq
            client = ledger.client_of(action)
            if life.server in ledger.forgotten:
                continue  # an operator accepted that
            if (client not in done) if client is not None else (action not in ledger.positions):
                findings.count(1)
                findings.example(f"({reply.sender},{reply.seq}) was answered and is lost", reply)
    return findings.verdict()


def repl_linear(history: History) -> Verdict:
    """What was requested after a strict answer comes after that action. By one clock."""
    ledger = ledger_of(history)
    findings = Findings("repl_linear")
    answered = sorted(
        ((reply.at, reply.order or 0, reply) for _, reply in _answers(ledger, "strict")),
        key=lambda row: row[0],
    )
    rows = sorted(
        (
            (event.at, ledger.positions[action], event)
            for action, event in ledger.requests.items()
            if action in ledger.positions
        ),
        key=lambda row: row[0],
    )
    highest, best, place = 0, None, 0
    for at, position, event in rows:
        while place < len(answered) and answered[place][0] < at:
            if answered[place][1] > highest:
                highest, best = answered[place][1], answered[place][2]
            place += 1
        if position < highest and best is not None:
            findings.count(1)
            findings.example(f"requested after an answer at {highest}, and done at {position}", best, event)
    return findings.verdict()


class _Reds:
    """What a server knows without a place, as it goes: each with its clock, its length and when it came."""

    def __init__(self) -> None:
        self._known: dict[Action, tuple[int, int, int]] = {}
        self._came = 0
        self._durable = 0

    def take(self, event: Event, ledger: Ledger) -> None:
        """A row of colour, of what is on the disk, or of a snapshot that has some of it."""
        if event.kind is SNAPSHOT:
            done = [each for each in self._known if ledger.positions.get(each, FOREVER) <= (event.order or 0)]
            for each in done:
                del self._known[each]
        elif event.kind in (DURABLE, STORE):
            self._durable = event.count
        elif event.sender is not None and event.level == GREEN:
            self._known.pop((event.sender, event.seq), None)
        elif event.sender is not None:
            self._came += 1
            self._known[event.sender, event.seq] = event.view or 0, event.count, self._came

    def on_disk(self) -> dict[Action, tuple[int, int]]:
        """What it may show."""
        return {
            each: (clock, count)
            for each, (clock, count, came) in self._known.items()
            if came <= self._durable
        }


def _reads(ledger: Ledger) -> Iterator[tuple[Life, Event, str, int, dict[Action, tuple[int, int]]]]:
    """Reads, each with the state of the server, its durable line, and its reds with clock and count."""
    for life in ledger.lives:
        phase, durable, reds = "", life.recovered, _Reds()
        for event in life.events:
            if event.kind is PHASE:
                phase = event.level or ""
            elif event.kind is REPLY and event.level not in ANSWERS:
                yield life, event, phase, durable, reds.on_disk()
            elif event.kind in (STORE, DURABLE, COLOUR, SNAPSHOT):
                reds.take(event, ledger)
                durable = event.order or 0 if event.kind is DURABLE else durable


def repl_weak(history: History) -> Verdict:
    """A weak read shows the green actions that are on the disk, and nothing else."""
    findings = Findings("repl_weak")
    for life, read, _, durable, _ in _reads(ledger_of(history)):
        if read.level == "weak" and (read.order != durable or text_of(read)):
            findings.count(1)
            shown = f"{read.order} and {text_of(read) or 'no reds'}"
            findings.example(f"{life.process} shows {shown}, its line is {durable}", read)
    return findings.verdict()


def repl_dirty(history: History) -> Verdict:
    """A dirty read shows the same and exactly the reds that are known, in red order; none in a primary."""
    ledger = ledger_of(history)
    findings = Findings("repl_dirty")
    stores = {life.creator: life.server for life in ledger.lives}
    for life, read, phase, durable, reds in _reads(ledger):
        if read.level != "dirty":
            continue
        ordered = sorted(
            (clock, stores.get(action[0], action[0]), action[0].incarnation, action[1], count)
            for action, (clock, count) in reds.items()
        )
        wanted = " ".join(
            f"{MemberId(server.name, epoch)}:{first}+{count}" for _, server, epoch, first, count in ordered
        )
        wanted = "" if phase == PRIMARY else wanted
        if read.order != durable or text_of(read) != wanted:
            findings.count(1)
            findings.example(f"{life.process} shows {text_of(read)!r}, it knows {wanted!r}", read)
    return findings.verdict()


def repl_session(history: History) -> Verdict:
    """A session read shows all that its client was answered before."""
    ledger = ledger_of(history)
    findings = Findings("repl_session")
    own: dict[str, list[tuple[int, int]]] = {}
    for _, reply in _answers(ledger, "strict"):
        client = ledger.client_of((reply.sender, reply.seq)) if reply.sender is not None else None
        if client is not None:
            own.setdefault(client.name, []).append((reply.at, reply.order or 0))
    for _, read in _answers(ledger, "session"):
        who = read.members[0].name if read.members else ""
        line = max((order for at, order in own.get(who, ()) if at < read.at), default=0)
        if (read.order or 0) < line:
            findings.count(1)
            findings.example(f"{who} was answered at {line} and is shown {read.order}", read)
    return findings.verdict()


def repl_causal(history: History) -> Verdict:
    """What a client or a server saw without a place comes before what was made because of it."""
    ledger = ledger_of(history)
    findings = Findings("repl_causal")
    for life, request, reds in _requests(ledger):
        assert request.sender is not None
        position = ledger.positions.get((request.sender, request.seq))
        if position is None:
            continue
        for action in (*reds, *_seen(request)):
            other = ledger.positions.get(action)
            if (other is None or other > position) and not _gone(ledger, action):
                findings.count(1)
                reason = f"({request.sender},{request.seq}) at {position} before ({action[0]},{action[1]})"
                findings.example(f"{reason} which it had seen at {life.process}", request)
    return findings.verdict()


def _gone(ledger: Ledger, action: Action) -> bool:
    """Whether it may never get a place: the run is not over, or a disk with it is lost or was given up."""
    lost = not ledger.quiesced or bool(ledger.dead()) or bool(ledger.forgotten)
    return action not in ledger.positions and lost


def _seen(request: Event) -> list[Action]:
    """The last action of each creator that the client had seen; the others come before those anyway."""
    found: list[Action] = []
    for part in text_of(request).split():
        who, _, last = part.rpartition(":")
        name, _, epoch = who.rpartition("#")
        found.append((MemberId(name, int(epoch)) if name else MemberId(who), int(last)))
    return found


def _requests(ledger: Ledger) -> Iterator[tuple[Life, Event, list[Action]]]:
    """Requests outside of a primary, each with the reds that its server knew."""
    for life in ledger.lives:
        reds: dict[Action, None] = {}
        phase = ""
        for event in life.events:
            if event.kind is PHASE:
                phase = event.level or ""
            elif event.kind is COLOUR and event.sender is not None:
                for index in range(event.seq, event.seq + event.count):
                    if event.level == GREEN:
                        reds.pop((event.sender, index), None)
                    else:
                        reds[event.sender, index] = None
            elif event.kind is SNAPSHOT:
                for action in [
                    each for each in reds if ledger.positions.get(each, FOREVER) <= (event.order or 0)
                ]:
                    del reds[action]
            elif event.kind is REQUEST:
                yield life, event, [] if phase == PRIMARY else list(reds)
