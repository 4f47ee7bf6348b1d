"""Servers over an abstract group communication with extended virtual synchrony, moved step by step.

What a ring does in one turn happens here one event at a time: who has received what, who knows that it is
safe, who was delivered it. Disks finish their syncs when a test says so, and a crash leaves what it says.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import NamedTuple

import msgspec

from semcast.core import MemberId, Outbox
from semcast.core.events import Answered, Note
from semcast.core.outbox import Anew, Sync
from semcast.history import History, Recorder, RunInfo
from semcast.replication import pull, snapshots
from semcast.replication.actions import Asked, Change, asked, change
from semcast.replication.creation import Wish
from semcast.replication.ids import ConfId, Server
from semcast.replication.machine import Machine
from semcast.replication.records import Forgot, decode, encode
from semcast.replication.settings import ReplicationSettings
from semcast.replication.snapshots import KeptState
from semcast.replication.states import State
from semcast.specs import Status, check

ASIDE = (State.BOOT, State.OUT, State.STOPPED)


def sid(server: str) -> Server:
    """a1 is the first store of a."""
    return Server(server[0], int(server[1:]))


class Sent(NamedTuple):
    payload: bytes
    safe: bool
    by: str
    member: MemberId


class Conf:
    """A configuration: one order of messages, and how far everybody is."""

    def __init__(self, number: int, members: Sequence[str], ids: dict[str, MemberId]) -> None:
        self.members = tuple(sorted(members))
        self.ids = ids
        self.id = ConfId(number, ids[self.members[0]])
        self.log: list[Sent] = []
        self.recv = dict.fromkeys(members, 0)
        self.safe = dict.fromkeys(members, 0)
        self.dlv = dict.fromkeys(members, 0)


class Node:
    """One server with its disk."""

    def __init__(self, name: str, names: tuple[str, ...], world: "World") -> None:
        self.name, self.names, self.world = name, names, world
        self.records: list[bytes] = []
        self.durable = 0
        self.syncs: list[tuple[int, int]] = []
        self.anew = 0
        self.replaced = 0  # the sync with which the records before `anew` go
        self.dead = True
        self.machine = self._machine()
        self.member = MemberId(name[0], 0)

    def _machine(self) -> Machine:
        settings = msgspec.structs.replace(
            ReplicationSettings(names=self.names, notes=True), **self.world.limits
        )
        return self.world.kind(self.world.kind.books_kind(), settings, Outbox())

    @property
    def state(self) -> State | None:
        return None if self.dead else self.machine.state

    @property
    def line(self) -> int:
        return self.machine.books.colours.line

    @property
    def reds(self) -> int:
        return len(self.machine.books.colours.reds)

    @property
    def prim(self) -> int:
        return self.machine.books.prim.index

    @property
    def servers(self) -> list[str]:
        return [f"{server.name}{server.store}" for server, _ in self.machine.books.prim.servers]

    # Its disk

    def drain(self) -> None:
        """Do what the machine wants."""
        machine, world = self.machine, self.world
        out = machine.out
        for each in out.writes:
            if isinstance(each, Sync):
                self.syncs.append((len(self.records), each.ticket))
                self.replaced = self.replaced or (each.ticket if self.anew else 0)
            elif isinstance(each, Anew):
                self.anew, self.replaced = len(self.records), 0
            else:
                assert isinstance(each, bytes)
                self.records.append(each)
        out.writes.clear()
        for event in out.events:
            if isinstance(event, Note):
                world.recorder.note(world.tick(), self.member, event)
            elif isinstance(event, Answered):
                world.answered(self.name, event)
        out.events.clear()
        world.queue[self.name] += [
            Sent(payload, safe, self.name, self.member) for payload, safe in machine.sends
        ]
        machine.sends.clear()
        if machine.exit:
            world.leaving[self.name] = None

    def synced(self) -> None:
        """The next sync is done."""
        upto, ticket = self.syncs.pop(0)
        self.durable = max(self.durable, upto)
        if self.replaced and self.replaced <= ticket:
            self._delete(self.anew)
        self.machine.on_synced(ticket)
        self.drain()

    def _delete(self, before: int) -> None:
        """What a log that began anew has in the place of these is on the disk."""
        self.records = self.records[before:]
        self.durable -= before
        self.syncs = [(upto - before, ticket) for upto, ticket in self.syncs]
        self.anew = self.replaced = 0

    def sync_all(self) -> None:
        """All that was written is on the disk now; nobody is called back for what it waits for."""
        while self.syncs:
            self.synced()

    def start(self) -> None:
        world = self.world
        self.dead = False
        self.syncs = []
        self.machine = self._machine()
        self.machine.books.replay(map(decode, self.records))
        world.starts[self.name[0]] += 1
        epoch = world.starts[self.name[0]]
        self.member = MemberId(self.name[0], epoch)
        if epoch > 1:
            world.recorder.recover(world.tick(), self.member)
        self.machine.boot(sid(self.name), epoch, self.names, lambda: world.up(self.name))
        self.drain()

    def crash(self, keep: int) -> None:
        self.records = self.records[:keep]
        self.durable = keep
        self.syncs = []
        self.anew = self.replaced = 0
        self.dead = True
        self.world.recorder.crash(self.world.tick(), self.member)

    # Inputs

    def request(self, *wishes: Wish) -> int:
        taken = self.machine.request(wishes) if not self.dead else 0
        self.drain()
        return taken

    def deliver(self, sent: Sent) -> None:
        self.machine.on_message(sent.member, sent.payload)
        self.drain()

    def trans(self) -> None:
        self.machine.on_trans_conf()
        self.drain()

    def reg(self, conf: Conf) -> None:
        self.machine.on_reg_conf(conf.id, [conf.ids[name] for name in conf.members])
        self.world.leaving.pop(self.name, None)
        self.drain()


class World:
    """All servers, and what passes between them."""

    def __init__(
        self,
        size: int,
        seed: int = 1,
        kind: type[Machine] = Machine,
        **limits: int,
    ) -> None:
        self.rng = Random(seed)
        self.kind = kind
        self.limits = limits
        self.names = tuple("abcdefgh"[:size])
        self.nodes: dict[str, Node] = {}
        self.queue: dict[str, list[Sent]] = {}
        self.of: dict[str, Conf | None] = {}
        self.pend: dict[str, list[tuple[str, object]]] = {}
        self.gone: set[str] = set()
        self.leaving: dict[str, None] = {}
        self.held = False
        """Whether servers that were removed stay until a test lets them go."""
        self.starts: Counter[str] = Counter()
        self.stats: Counter[str] = Counter()
        self.answers: list[tuple[str, Answered]] = []
        self.on_answer: Callable[[str, Answered], None] = lambda _name, _answer: None
        self._confs = 0
        self._now = 0
        members = tuple(MemberId(name, 1) for name in self.names)
        info = RunInfo.one("world", "g", "replication", seed, members, None, uniform=False, quiesced=False)
        self.recorder = Recorder(info)
        for name in self.names:
            self.deploy(name + "1", self.names)

    def tick(self) -> int:
        self._now += 1
        return self._now

    def deploy(self, name: str, names: tuple[str, ...] = ()) -> None:
        self.queue[name], self.pend[name], self.of[name] = [], [], None
        self.nodes[name] = Node(name, names, self)
        self.nodes[name].start()

    def answered(self, name: str, answer: Answered) -> None:
        self.answers.append((name, answer))
        self.on_answer(name, answer)

    def alive(self) -> list[str]:
        return [
            name
            for name in sorted(self.nodes)
            if not self.nodes[name].dead
            and self.nodes[name].state is not State.STOPPED
            and name not in self.gone
        ]

    def ring(self) -> list[str]:
        return [name for name in self.alive() if self.of[name] is not None]

    # Group communication

    def up(self, name: str) -> None:
        if self.nodes[name].state is State.NON_PRIM:
            self.reform([[name]])

    def reform(self, groups: Iterable[Sequence[str]]) -> None:
        """New configurations, with the deliveries that extended virtual synchrony owes before them."""
        groups = [list(group) for group in groups]
        for name in sorted({name for group in groups for name in group}):
            while self.pend[name] and not self.nodes[name].dead:
                self.step_pend(name)
        for group in groups:
            there = [name for name in group if self._can_enter(name)]
            if there:
                self._confs += 1
                ids = {name: self.nodes[name].member for name in there}
                self._enter(Conf(self._confs, there, ids))

    def _can_enter(self, name: str) -> bool:
        node = self.nodes[name]
        aside = node.state in (State.BOOT, State.STOPPED) or (
            node.state is State.OUT and self.of[name] is None
        )
        return not node.dead and not aside and name not in self.gone

    def _enter(self, new: Conf) -> None:
        for name in new.members:
            old = self.of[name]
            if old is None:
                self.pend[name] = [("reg", new)]
                self.queue[name] = []
                continue
            self.pend[name] = [*self._owed(name, old, new), ("reg", new)]
        for name in new.members:
            self.of[name] = new

    def _owed(self, name: str, old: Conf, new: Conf) -> list[tuple[str, object]]:
        together = [other for other in new.members if self.of[other] is old]
        safe = max(old.safe[other] for other in together)
        have = max(*(old.recv[other] for other in together), safe)
        while safe < have and not old.log[safe].safe:
            safe += 1
        # Beyond the first hole only what comes from those who are together.
        tail = [sent for sent in old.log[have:] if sent.by in together]
        return [
            *(("m", sent) for sent in old.log[old.dlv[name] : safe]),
            ("trans", None),
            *(("m", sent) for sent in old.log[max(safe, old.dlv[name]) : have]),
            *(("m", sent) for sent in tail),
        ]

    def step_pend(self, name: str) -> None:
        what, which = self.pend[name].pop(0)
        node = self.nodes[name]
        if what == "trans":
            node.trans()
        elif isinstance(which, Sent):
            node.deliver(which)
        else:
            assert isinstance(which, Conf)
            node.reg(which)

    def do_leave(self, name: str) -> None:
        del self.leaving[name]
        conf = self.of[name]
        self.of[name], self.queue[name], self.pend[name] = None, [], []
        self.nodes[name].machine.exchange = None
        self.nodes[name].machine.exit = ""
        if self.nodes[name].state is State.STOPPED:
            self.recorder.left(self.tick(), self.nodes[name].member)
        rest = [other for other in self.ring() if self.of[other] is conf]
        if rest:
            self.reform([rest])
        if self.nodes[name].state not in ASIDE:  # it comes back as a guest
            self.nodes[name].sync_all()
            self.recorder.left(self.tick(), self.nodes[name].member)
            self.nodes[name].start()

    # What befalls servers

    def crash(self, name: str, keep: int | None = None) -> None:
        node = self.nodes[name]
        if keep is None:
            some = self.rng.randint(node.durable, len(node.records))
            keep = self.rng.choice([node.durable, node.durable, some])
        node.crash(keep)
        self.queue[name], self.pend[name], self.of[name] = [], [], None
        self.leaving.pop(name, None)

    def wipe(self, name: str) -> None:
        if not self.nodes[name].dead:
            self.crash(name)
        self.gone.add(name)

    def forget(self, name: str, dead: Sequence[str]) -> None:
        """`--forget`, offline."""
        node = self.nodes[name]
        assert node.dead
        node.records.append(encode(Forgot(tuple(map(sid, dead)), 7)))
        node.durable = len(node.records)

    def pull(self, name: str, donor: str) -> bool:
        """A server outside gets what another has on its disk, and hands in its reds."""
        machine, other = self.nodes[name].machine, self.nodes[donor].machine
        image = pull.image(other, machine.server)
        offer = pull.offer(other, machine.server)
        if not pull.may_enter(machine, offer) or not pull.follows(machine, offer):
            self.nodes[name].drain()
            return False
        self.stats["pulls"] += 1
        if image.start > machine.books.colours.line:
            state = KeptState(image.line, b"")
            pull.rebase(machine, snapshots.decode(snapshots.encode(other.books.snapshot(state))))
            self.stats["snapshots"] += 1
        line = machine.books.colours.line
        pull.take(machine, pull.tail(other, line, image.line, 1 << 40), image)
        self.nodes[name].drain()
        lacking = machine.lacking(image.cut)
        if not image.takes:
            return False
        pull.hand_in(other, lacking)
        self.nodes[donor].drain()
        if sum(len(run.actions) for run in lacking) > machine.settings.exchange_limit:
            return False

        def go() -> None:
            if machine.state is State.OUT and self.of[name] is None:
                machine.returned()
                self.reform([[name]])

        machine.journal.sync(go)
        self.nodes[name].drain()
        return True

    # A step

    def progress(self, name: str) -> None:
        """Something happens at a server."""
        rng, node = self.rng, self.nodes[name]
        if node.dead or name in self.gone:
            return
        if name in self.leaving and not self.held and rng.random() < 0.2:
            self.do_leave(name)
        elif node.syncs and rng.random() < 0.3:
            node.synced()
        elif self.pend[name]:
            self.step_pend(name)
        elif self.of[name] is None:
            if node.state is State.OUT and not node.syncs and rng.random() < 0.1:
                donors = [other for other in self.alive() if other != name]
                if donors:
                    self.pull(name, rng.choice(donors))
        else:
            self._communicate(name, node)

    def _communicate(self, name: str, node: Node) -> None:
        conf, dice = self.of[name], self.rng.random()
        assert conf is not None
        if dice < 0.3 and self.queue[name]:
            conf.log.append(self.queue[name].pop(0))
            if conf.recv[name] == len(conf.log) - 1:
                conf.recv[name] += 1
        elif dice < 0.6 and conf.recv[name] < len(conf.log):
            conf.recv[name] += self.rng.randint(1, len(conf.log) - conf.recv[name])
        elif dice < 0.8:
            conf.safe[name] = max(conf.safe[name], min(conf.recv.values()))
        elif conf.dlv[name] < conf.recv[name]:
            sent = conf.log[conf.dlv[name]]
            if conf.dlv[name] < conf.safe[name] or not sent.safe:
                conf.dlv[name] += 1
                node.deliver(sent)

    def go(self, who: Iterable[str], steps: int = 4000, until: Callable[[], bool] = lambda: False) -> bool:
        """Let things happen at some servers."""
        names = sorted(who)
        for step in range(steps):
            self.progress(self.rng.choice(names))
            if step % 5 == 0 and until():
                return True
        return until()

    # Judged

    def history(self, *, quiesced: bool = True) -> History:
        return self.recorder.close(quiesced=quiesced)

    def broken(self, *, quiesced: bool = True) -> set[str]:
        """Properties that do not hold."""
        verdicts = check(self.history(quiesced=quiesced))
        return {verdict.property for verdict in verdicts if verdict.status is Status.VIOLATED}

    def at_rest(self) -> bool:
        """Whether everybody of the group is in one primary, and nothing is open."""
        there = self.alive()
        nodes = [self.nodes[name] for name in there]
        if not nodes or any(node.state is not State.REG_PRIM for node in nodes if node.prim):
            return False
        prime = [name for name in there if self.nodes[name].state is State.REG_PRIM]
        if not prime:
            return False
        first = self.nodes[prime[0]].machine
        members = {f"{server.name}{server.store}" for server in first.books.members.weights}
        return (
            all(self._settled(self.nodes[name]) for name in prime)
            and len({self.nodes[name].line for name in prime}) == 1
            and set(self.nodes[prime[0]].servers) == set(prime)
            and all(name in prime for name in members if name not in self.gone)
        )

    def _settled(self, node: Node) -> bool:
        machine = node.machine
        return (
            not machine.books.colours.reds
            and not len(machine.creation)
            and not machine.books.ongoing
            and machine.books.belongs
            and not self.queue[node.name]
            and machine.journal.durable.line == node.line
        )


def founded(size: int, **kw: object) -> World:
    """A group that has installed its first primary, all of it on disks."""
    limits = {"exchange_limit": 1000, "window": 1000}
    limits.update(kw.pop("limits", {}))  # type: ignore[call-overload]
    world = World(size, **{**limits, **kw})  # type: ignore[arg-type]
    world.go(world.nodes, 400 * size)
    world.reform([world.alive()])
    done = world.go(
        world.nodes,
        9000,
        lambda: all(
            node.state is State.REG_PRIM and node.durable == len(node.records) and not node.syncs
            for node in world.nodes.values()
        ),
    )
    assert done, {name: node.state for name, node in world.nodes.items()}
    return world


def to_construct(world: World, who: Sequence[str]) -> None:
    """Go on until all are in Construct and have sent their CPC, and nobody was delivered one."""
    nodes = [world.nodes[name] for name in who]
    for _ in range(60000):
        node = world.rng.choice(nodes)
        if node.state is State.CONSTRUCT:
            if node.syncs:
                node.synced()
        else:
            world.progress(node.name)
        if all(each.state is State.CONSTRUCT and not each.syncs for each in nodes):
            break
    conf = world.of[who[0]]
    assert conf is not None
    assert all(node.state is State.CONSTRUCT for node in nodes)
    for node in nodes:
        conf.log += world.queue[node.name]
        world.queue[node.name] = []
    for name in who:
        conf.recv[name] = len(conf.log)


def deliver_all(world: World, name: str) -> None:
    """A server knows that all have everything, and is delivered it."""
    conf = world.of[name]
    assert conf is not None
    conf.safe[name] = len(conf.log)
    while conf.dlv[name] < len(conf.log):
        sent = conf.log[conf.dlv[name]]
        conf.dlv[name] += 1
        world.nodes[name].deliver(sent)


def send_all(world: World, *names: str) -> None:
    """What servers have to say gets its place, and everybody receives it; nobody is delivered it."""
    conf = world.of[names[0]]
    assert conf is not None
    for name in names:
        conf.log += world.queue[name]
        world.queue[name] = []
    conf.recv = dict.fromkeys(conf.recv, len(conf.log))


def make_durable(world: World, name: str) -> None:
    """What was written is on the disk; nobody has been told so."""
    node = world.nodes[name]
    node.durable = len(node.records)
    journal = node.machine.journal
    journal.durable = mark = journal.mark()
    node.machine.notes.durable(mark.line, mark.prim.index, 0, node.machine.books.colours.digest_at(mark.line))
    node.drain()


def put(world: World, name: str, body: bytes = b"x", **kw: object) -> None:
    """A request without a client."""
    assert world.nodes[name].request(Wish(b"\x00" + body, **kw)), world.nodes[name].state  # type: ignore[arg-type]


def ask(world: World, name: str, client: str, number: int, floor: int = 0, **kw: object) -> int:
    """A request of a client."""
    return world.nodes[name].request(Wish(asked(Asked(client, number, floor, b"x")), **kw))  # type: ignore[arg-type]


def alter(world: World, name: str, what: Change) -> int:
    """A request that changes the group."""
    return world.nodes[name].request(Wish(change(what)))
