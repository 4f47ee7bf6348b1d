"""Daemons of lightweight groups over extended virtual synchrony as its definition has it, without a ring.

A configuration is a log. Each daemon has received a prefix of it and handled a shorter one. At a change those
who stay together (T) recover all that one of them received; the transitional event comes at the same place of
the log for all of T, which may be another one in another part; behind it T handles the rest, and, behind a
hole, what members of T sent and others did not get.
"""

from collections import deque
from collections.abc import Collection, Sequence
from itertools import count
from random import Random

from semcast.core import MemberId
from semcast.core.events import Note
from semcast.core.outbox import Outbox
from semcast.history import History, Recorder, RunInfo
from semcast.protocols.lightweight import LightweightSettings, Machine, Refused, Session
from semcast.protocols.lightweight.events import ClientEvent
from semcast.sim.lightweight_clients import BLOCKING, Client
from semcast.specs import LIGHTWEIGHT, Status, check

SETTINGS = LightweightSettings(notes=True, window=4)


class Conf:
    """A configuration: who is in it, and its messages in order."""

    def __init__(self, number: int, members: Collection[MemberId]) -> None:
        self.number = number
        self.representative = min(members)
        self.members = frozenset(members)
        self.log: list[tuple[MemberId, bytes]] = []


class Daemon:
    """A machine, and where it is in the log."""

    def __init__(self, me: MemberId, machine: Machine, out: Outbox, conf: Conf) -> None:
        self.me, self.machine, self.out, self.conf = me, machine, out, conf
        self.alive = True
        self.received = self.handled = 0
        self.ring: deque[bytes] = deque()  # what the ring was handed and has not numbered
        self.handed = 0
        self.mine: deque[tuple[int, int]] = deque()  # places of own messages, and how many were handed then
        self.clients: list[Client] = []


class World:
    """Some daemons with clients; alone each, to begin with."""

    def __init__(
        self,
        size: int,
        machine: type[Machine] = Machine,
        settings: LightweightSettings = SETTINGS,
        rng: Random | None = None,
    ) -> None:
        self.rng = rng or Random(0)
        self.kind, self.settings = machine, settings
        self.now = 0
        self._numbers = count(1)
        self._sessions = count(1)
        names = tuple(MemberId(f"p{number}") for number in range(size))
        info = RunInfo.one("r", "g", "lightweight", 1, names, None, uniform=False, quiesced=False)
        self.recorder = Recorder(info)
        self.daemons = [self._daemon(name) for name in names]

    def _daemon(self, me: MemberId) -> Daemon:
        out = Outbox()
        daemon = Daemon(me, self.kind(me, self.settings, out), out, self._conf([me]))
        daemon.machine.on_configuration(daemon.conf.number, me, [me])
        self._note(daemon)
        return daemon

    def _conf(self, members: Collection[MemberId]) -> Conf:
        return Conf(next(self._numbers), members)

    def _note(self, daemon: Daemon) -> None:
        self.now += 1
        for event in daemon.out.events:
            assert isinstance(event, Note)
            self.recorder.note(self.now, daemon.me, event)
        daemon.out.events.clear()

    @property
    def alive(self) -> list[Daemon]:
        return [daemon for daemon in self.daemons if daemon.alive]

    # Clients

    def connect(self, number: int, name: str, *, mute: bool = False) -> Client:
        daemon = self.daemons[number]
        session = daemon.machine.requests.connect(name, next(self._sessions))
        client = Client(session, None, slow=False, mute=mute)
        daemon.clients.append(client)
        self._note(daemon)
        return client

    def home(self, client: Client) -> Daemon:
        return next(each for each in self.daemons if client in each.clients)

    def join(self, client: Client, *groups: str) -> None:
        for group in groups:
            self.home(client).machine.requests.join(client.session, group, vs=group.startswith(BLOCKING))
        self._note(self.home(client))

    def leave(self, client: Client, group: str) -> None:
        self.home(client).machine.requests.leave(client.session, group)
        client.leaving.add(group)
        self._note(self.home(client))

    def cast(self, client: Client, *groups: str, run: int = 1) -> None:
        view = client.views.get(groups[0]) if len(groups) == 1 else None
        self.home(client).machine.requests.cast(client.session, groups, [b"m"] * run, view=view)
        self._note(self.home(client))

    def private(self, client: Client, to: MemberId) -> None:
        self.home(client).machine.requests.private(client.session, to, b"p")
        self._note(self.home(client))

    def vanish(self, client: Client) -> None:
        self.home(client).machine.requests.disconnect(client.session, "it vanished")
        self._note(self.home(client))

    def read(self, client: Client, most: int | None = None) -> list[ClientEvent]:
        """Take events, and answer."""
        daemon = self.home(client)
        taken = client.session.take(most)
        for event in taken:
            answer = client.hear(event)
            if answer is not None and daemon.alive:
                daemon.machine.requests.ready(client.session, *answer)
        return taken

    # The ring

    def number(self, daemon: Daemon) -> bool:
        """Take what the machine has to say, and give the next message a place."""
        machine = daemon.machine
        if machine.parts:
            daemon.ring += machine.parts
            machine.parts.clear()
        elif machine.census is None:
            room = self.settings.window - (daemon.handed + len(daemon.ring) - machine.placing.own)
            machine.requests.fill(room)
            while machine.requests.sends and room > 0:
                daemon.ring.append(machine.tag + machine.requests.sends.popleft()[0])
                room -= 1
        self._note(daemon)
        if not daemon.ring:
            return False
        daemon.handed += 1
        daemon.mine.append((len(daemon.conf.log), daemon.handed))
        daemon.conf.log.append((daemon.me, daemon.ring.popleft()))
        return True

    def receive(self, daemon: Daemon) -> bool:
        if daemon.received == len(daemon.conf.log):
            return False
        daemon.received += 1
        return True

    def handle(self, daemon: Daemon) -> bool:
        """The next message; and what everybody has is safe."""
        there = [each for each in self.alive if each.conf is daemon.conf]
        low = min(each.received for each in there) if len(there) == len(daemon.conf.members) else 0
        while daemon.mine and daemon.mine[0][0] < low:
            daemon.machine.on_safe(daemon.mine.popleft()[1])
        daemon.machine.now = self.now
        if daemon.handled == daemon.received:
            self._note(daemon)
            return False
        self._give(daemon, daemon.handled)
        daemon.handled += 1
        return True

    def _give(self, daemon: Daemon, place: int) -> None:
        daemon.machine.on_message(*daemon.conf.log[place])
        self._note(daemon)

    def settle(self, *, reading: bool = True, only: Sequence[int] | None = None) -> None:
        """Until nothing more happens."""
        there = [each for each in self.alive if only is None or self.daemons.index(each) in only]
        for _ in range(100_000):
            busy = [[step(each) for step in (self.number, self.receive, self.handle)] for each in there]
            heard = [self.read(client) for each in there for client in each.clients] if reading else []
            if not any(map(any, busy)) and not any(heard):
                break
        else:
            raise AssertionError("the daemons do not come to rest")

    # Changes

    def crash(self, number: int) -> None:
        """The others hear of it with the next change."""
        self.daemons[number].alive = False
        self.recorder.crash(self.now, self.daemons[number].me)

    def restart(self, number: int) -> None:
        former = self.daemons[number].me
        again = MemberId(former.name, former.incarnation + 1)
        self.recorder.recover(self.now, again)
        self.daemons[number] = self._daemon(again)

    def change(self, *parts: Sequence[int], early: bool = True) -> None:
        """All daemons that live are in these parts from now on; without any, in one.

        Transitional events come as early as they may, or at any place.
        """
        sets = [[self.daemons[number] for number in part] for part in parts] or [self.alive]
        steps = [step for part in sets for step in self._plan(part, early=early)]
        confs = [self._conf([each.me for each in part]) for part in sets]
        for daemon, together, place, rest in steps:
            self._end(daemon, together, place, rest)
        for part, conf in zip(sets, confs, strict=True):
            for daemon in part:
                daemon.conf, daemon.received, daemon.handled = conf, 0, 0
                daemon.mine.clear()
                daemon.machine.now = self.now
                daemon.machine.on_configuration(conf.number, conf.representative, conf.members)
                self._note(daemon)

    def _plan(
        self, part: list[Daemon], *, early: bool
    ) -> list[tuple[Daemon, list[Daemon], int, Sequence[int]]]:
        plan: list[tuple[Daemon, list[Daemon], int, Sequence[int]]] = []
        for conf in dict.fromkeys(each.conf for each in part):
            together = [each for each in part if each.conf is conf]
            names = {each.me for each in together}
            reached = max(each.received for each in together)
            mine = [place for place, (source, _) in enumerate(conf.log) if source in names]
            while reached < len(conf.log) and reached in mine:
                reached += 1
            least = max(each.handled for each in together)
            place = least if early else self.rng.randint(least, reached)
            rest = [*range(place, reached), *(each for each in mine if each >= reached)]
            plan += [(each, together, place, rest) for each in together]
        return plan

    def _end(self, daemon: Daemon, together: list[Daemon], place: int, rest: Sequence[int]) -> None:
        while daemon.handled < place:
            self._give(daemon, daemon.handled)
            daemon.handled += 1
        daemon.machine.on_transitional([each.me for each in together])
        self._note(daemon)
        for each in rest:
            self._give(daemon, each)

    # Judging

    def history(self, *, quiesced: bool = True) -> History:
        return self.recorder.close(quiesced=quiesced)

    def broken(self, *, quiesced: bool = True) -> set[str]:
        """The properties that do not hold."""
        verdicts = check(self.history(quiesced=quiesced), LIGHTWEIGHT)
        return {verdict.property for verdict in verdicts if verdict.status is Status.VIOLATED}


GROUPS = ("e0", "e1", "v0", "v1")


def wander(seed: int, machine: type[Machine] = Machine) -> World:
    """A random run; at the end all daemons that live are together, and come to rest."""
    rng = Random(seed)
    settings = LightweightSettings(
        notes=True, window=4, census_bytes=rng.choice((1, 200, 32_768)), flush_timeout=1 << 40
    )
    world = World(rng.randint(2, 5), machine, settings, rng)
    for number in range(len(world.daemons)):
        for name in "ab":
            world.connect(number, name, mute=rng.random() < 0.1)
    pace = rng.choice((0.004, 0.01, 0.02))
    for _ in range(rng.randint(100, 700)):
        daemon = rng.choice(world.alive)
        if rng.random() < pace:
            _stir(world, rng, daemon)
            continue
        what = rng.random()
        if what < 0.1:
            _act(world, rng, daemon)
        elif what < 0.3:
            world.number(daemon)
        elif what < 0.55:
            world.receive(daemon)
        elif what < 0.8:
            world.handle(daemon)
        elif daemon.clients:
            world.read(rng.choice(daemon.clients), 1)
    world.change(early=False)
    world.settle()
    _give_up_on_mute(world)
    return world


def _stir(world: World, rng: Random, daemon: Daemon) -> None:
    alive = [world.daemons.index(each) for each in world.alive]
    if rng.random() < 0.15 and len(alive) > 2 and len(daemon.conf.members) > 1:
        number = world.daemons.index(daemon)
        world.crash(number)
        alive.remove(number)
        if rng.random() < 0.5:
            world.restart(number)
            alive.append(number)
    rng.shuffle(alive)
    parts: list[list[int]] = []
    while alive:
        size = len(alive) if rng.random() < 0.5 else rng.randint(1, len(alive))
        parts.append(alive[:size])
        alive = alive[size:]
    world.change(*parts, early=False)


def _act(world: World, rng: Random, daemon: Daemon) -> None:
    client = next((each for each in rng.sample(daemon.clients, len(daemon.clients))), None)
    if client is None or client.session.closed:
        if rng.random() < 0.5:
            world.connect(world.daemons.index(daemon), f"c{len(daemon.clients)}")
        return
    group = rng.choice(GROUPS)
    what = rng.choice(("join", "join", "leave", "cast", "cast", "cast", "multi", "private", "vanish"))
    try:
        if what == "join":
            world.join(client, group)
        elif what == "leave":
            world.leave(client, group)
        elif what == "cast" and group not in client.blocked | client.leaving:
            world.cast(client, group, run=rng.choice((1, 3)))
        elif what == "multi":
            world.cast(client, *rng.sample(GROUPS, 2))
        elif what == "private":
            others = [each for other in world.daemons for each in other.clients]
            world.private(client, rng.choice(others).session.client)
        elif what == "vanish" and rng.random() < 0.2:
            world.vanish(client)
    except Refused:
        return  # it asked for what it has, or has no credit


def _give_up_on_mute(world: World) -> None:
    """Time passes until who does not answer is put out."""
    for _ in range(40):
        world.now += 1 << 41
        for daemon in world.alive:
            daemon.machine.now = world.now
            daemon.machine.tend()
            world._note(daemon)
        world.settle()


def sessions(world: World) -> list[Session]:
    return [each for daemon in world.alive for each in daemon.machine.requests.sessions.values()]
