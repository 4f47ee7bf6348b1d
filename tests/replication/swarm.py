"""A swarm on the abstract group communication.

Splits, crashes of one and of all, lost tails, clients that roam and repeat, joins, leaves, weights and wipes,
all drawn from a seed; then all heal."""

from collections import Counter

from tests.replication.world import World, alter, sid

from semcast.core.events import Answered
from semcast.replication.actions import Asked, Join, Leave, Reweigh, asked
from semcast.replication.creation import Cut, Wish
from semcast.replication.machine import Machine
from semcast.replication.reads import ReadQueue
from semcast.replication.states import State

HOT = (State.CONSTRUCT, State.NO, State.UN, State.TRANS_PRIM, State.EXCHANGE_ACTIONS)
PACES = (
    (0.003, 0.001, 0.01, 0.02, 0.001),
    (0.005, 0.002, 0.01, 0.015, 0.004),
    (0.008, 0.0, 0.0, 0.02, 0.003),
    (0.012, 0.005, 0.03, 0.012, 0.002),
)


class Client:
    """One who asks here and there, and asks again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.next = 1
        self.open: set[int] = set()
        self.quiet: set[int] = set()
        self.levels: dict[int, str] = {}
        self.seen: Cut = ()
        self.position = 0


class Swarm:
    """One run."""

    def __init__(
        self,
        seed: int,
        kind: type[Machine] = Machine,
        reading: type[ReadQueue] = ReadQueue,
        *,
        churn: bool = True,
    ) -> None:
        self.world = world = World(3, seed, kind)
        rng = self.rng = world.rng
        self.churn = churn
        self.reading = reading
        size = rng.choice([2, 3, 3, 3, 4, 5])
        limit = rng.choice([3, 12, 1000])
        self.world = World(size, seed, kind, exchange_limit=limit, window=rng.choice([1, 4, 100]))
        self.world.rng = rng
        self.world.on_answer = self.answered
        self.paces = rng.choice(PACES)
        self.ambush = rng.random() < 0.7
        self.clients = {name: Client(name) for name in ("k0", "k1", "k2")}
        self.tickets: dict[int, tuple[Client, int]] = {}
        self.stores = 1
        self.stats: Counter[str] = Counter()

    def run(self, steps: int = 4000) -> set[str]:
        world, rng = self.world, self.rng
        world.go(world.nodes, 300 * len(world.nodes))
        world.reform([world.alive()])
        if rng.random() < 0.8:
            world.go(
                world.nodes,
                3000 * len(world.nodes),
                lambda: all(node.state is State.REG_PRIM for node in world.nodes.values()),
            )
        for _ in range(steps):
            self.step()
        self.heal()
        return self.judge()

    def judge(self) -> set[str]:
        world = self.world
        self.stats["rest" if world.at_rest() else "blocked"] += 1
        self.stats["positions"] += max(node.line for node in world.nodes.values())
        broken = world.broken()
        if not world.at_rest() and not world.gone:
            broken.add("rest")
        return broken

    def step(self) -> None:
        world, rng = self.world, self.rng
        alive = world.alive()
        if self.ambush and rng.random() < 0.05:
            hot = [name for name in alive if world.nodes[name].state in HOT or world.nodes[name].syncs]
            if hot:
                total = "total" if rng.random() < 0.3 else "none"
                self.inflict(rng.choice(["split", "split", "crash", total]))
                return
        dice = rng.random()
        for what, share in zip(("split", "crash", "recover", "client", "member"), self.paces, strict=True):
            dice -= share
            if dice < 0:
                self.inflict(what)
                return
        if alive:
            world.progress(rng.choice(alive))

    def inflict(self, what: str) -> None:
        world, rng = self.world, self.rng
        alive = world.alive()
        if what == "total":
            for name in alive:
                if rng.random() < 0.9:
                    world.crash(name)
        elif what == "split" and alive:
            groups: dict[int, list[str]] = {}
            parts = rng.randint(1, 3)
            for name in alive:
                groups.setdefault(rng.randrange(parts), []).append(name)
            world.reform(groups.values())
        elif what == "crash":
            hot = [name for name in alive if world.nodes[name].syncs] or alive
            if hot:
                world.crash(rng.choice(hot))
        elif what == "recover":
            dead = [name for name in sorted(world.nodes) if world.nodes[name].dead and name not in world.gone]
            if dead:
                world.nodes[rng.choice(dead)].start()
        elif what == "client":
            self.ask()
        elif what == "member" and self.churn:
            self.change()

    # Clients

    def ask(self) -> None:
        world, rng = self.world, self.rng
        client = self.clients[f"k{rng.randrange(3)}"]
        ring = world.ring()
        if not ring:
            return
        node = world.nodes[rng.choice(ring)]
        again = sorted(n for n in client.open if n not in client.quiet or rng.random() < 0.1)
        if again and rng.random() < 0.4:
            number = rng.choice(again)
        else:
            number = client.next
            client.next += 1
            client.open.add(number)
            client.levels[number] = rng.choice(["strict", "queued"])
        floor = min(client.open | {client.next})
        self.look(node.name, client)
        ticket = len(self.tickets) + 1
        self.tickets[ticket] = client, number
        action = asked(Asked(client.name, number, floor, b"x"))
        node.request(Wish(action, client.levels[number], ticket, client.seen))

    def look(self, name: str, client: Client) -> None:
        """Perhaps the client reads something there first."""
        machine, dice = self.world.nodes[name].machine, self.rng.random()
        if not machine.books.prim.index or machine.state not in (State.NON_PRIM, State.REG_PRIM):
            return
        if dice < 0.3:
            shown = self.reading(machine).read("dirty", client.name)
            known = dict(client.seen)
            for creator, last in () if shown is None else shown.cut:
                known[creator] = max(last, known.get(creator, 0))
            client.seen = tuple(sorted(known.items()))
        elif dice < 0.4:
            self.reading(machine).read("weak", client.name)
        elif dice < 0.5:
            self.reading(machine).read("session", client.name, client.position)
        self.world.nodes[name].drain()

    def answered(self, _name: str, answer: Answered) -> None:
        client, number = self.tickets[answer.ticket]
        if answer.refusal:
            return
        if answer.level == "strict":
            client.open.discard(number)
            client.position = max(client.position, answer.position)
        elif self.rng.random() < 0.7:
            client.quiet.add(number)

    # The group

    def change(self) -> None:
        world, rng = self.world, self.rng
        ring = world.ring()
        top = max(world.nodes.values(), key=lambda node: node.line).machine.books.members.weights
        if not ring or not top:
            return
        name, dice, servers = rng.choice(ring), rng.random(), sorted(top)
        if dice < 0.3 and len(servers) < 6:
            self.join(name)
        elif dice < 0.6 and len(servers) > 2:
            self.stats["leaves"] += alter(world, name, Leave(rng.choice(servers)))
        elif dice < 0.8:
            alter(world, name, Reweigh(rng.choice(servers), rng.choice([0, 1, 2, 3])))
        elif dice < 0.85 and not world.gone and len(servers) > 2:
            self.stats["wipes"] += 1
            world.wipe(rng.choice(sorted(world.nodes)))

    def join(self, name: str) -> None:
        world, rng = self.world, self.rng
        self.stores += 1
        new = rng.choice("abcdef"[: len(world.names) + 1]) + str(self.stores)
        if alter(world, name, Join(sid(new), rng.choice([1, 1, 2]))):
            self.stats["joins"] += 1
            founds = rng.random() >= 0.7 and new[0] in world.names
            world.deploy(new, world.names if founds else ())

    def heal(self) -> None:
        world = self.world
        for name in sorted(world.nodes):
            if world.nodes[name].dead and name not in world.gone:
                world.nodes[name].start()
        for _ in range(14):
            for step in range(1200 * len(world.alive())):
                world.progress(self.rng.choice(world.alive()))
                if step % 300 == 299 and world.at_rest():
                    break
            if world.at_rest():
                return
            world.reform([world.ring()])
