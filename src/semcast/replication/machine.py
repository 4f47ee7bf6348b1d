"""The replication server (Amir 1995, chapter 6): eight states.

It is driven by the deliveries of any group communication with extended virtual synchrony. Inputs are
methods. What it wants is in `sends` (multicast this, safe or not), in the `Outbox` (records, syncs, notes,
answers) and in `exit` (leave the group, and why). The figures of the paper are named at each handler; every
deviation is in docs/protocols/replication.md.

Here are its life, the configurations it comes into, and which part takes which message. The parts share its
`ServerStanding`: `exchanging` (states, actions), `primaries` (attempts, installation), `marking` (colours),
`making` (requests).
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.replication import messages
from semcast.replication.actions import Names, Run
from semcast.replication.answers import Answers
from semcast.replication.books import Books
from semcast.replication.creation import Creation, Cut, Wish
from semcast.replication.exchange import Exchange
from semcast.replication.exchanging import Exchanging
from semcast.replication.ids import ConfId, Server
from semcast.replication.journal import Mark
from semcast.replication.knowledge import Prim
from semcast.replication.making import Making
from semcast.replication.marking import Marking
from semcast.replication.messages import Actions, Again, Cpc, Done, Installed, Line, Said
from semcast.replication.plan import Planner
from semcast.replication.primaries import Primaries
from semcast.replication.records import Boot, Learnt
from semcast.replication.settings import Durability, ReplicationSettings
from semcast.replication.snapshots import KeptState
from semcast.replication.standing import ServerStanding
from semcast.replication.states import CREATES, IN_GROUP, MOVES, Cause, State
from semcast.replication.trimming import Trimming


class Machine(ServerStanding):
    """One server.

    Args:
        books: what its disk said.
        settings: of this server.
        out: for records, notes and answers.
    """

    books_kind: ClassVar[type[Books]] = Books
    planner_kind: ClassVar[type[Planner]] = Planner
    marking_kind: ClassVar[type[Marking]] = Marking
    making_kind: ClassVar[type[Making]] = Making
    primaries_kind: ClassVar[type[Primaries]] = Primaries
    exchanging_kind: ClassVar[type[Exchanging]] = Exchanging

    def __init__(self, books: Books, settings: ReplicationSettings, out: Outbox) -> None:
        super().__init__(books, settings, out)
        self.creation = Creation(settings.buffer, settings.run_bytes, watched=settings.notes)
        self.answers = Answers(books, self.creation, self.notes, out)
        self.trimming = Trimming(self.journal, settings, self.notes)
        self.marking = self.marking_kind(self, self.creation, self.answers, self.answer)
        self.making = self.making_kind(self, self.creation, self.answers, self.answer)
        self.primaries = self.primaries_kind(self, self.marking, self.making, self.trimming)
        self.exchanging = self.exchanging_kind(
            self, self.planner_kind(), self.marking, self.primaries, self.making, self.trimming
        )
        self._recovered = 0  # reds that came before this start
        self._on: dict[type[Any], Callable[[MemberId, Any], None]] = {
            Actions: self._on_actions,
            messages.State: self.exchanging.on_state,
            Again: self.exchanging.on_again,
            Done: self.exchanging.on_done,
            Cpc: self.primaries.on_cpc,
            Installed: self.primaries.on_installed,
            Line: self._on_line,
        }

    @property
    def trouble(self) -> str:
        """What whoever runs the servers should look at, if there is anything."""
        return self.alarm or self.unfit or self.refusal

    # Life

    def boot(self, server: Server, epoch: int, names: Names, then: Callable[[], None]) -> None:
        """Recover (figure 6.18): a new epoch, own actions that were not delivered are red, sync, go on."""
        books = self.books
        self.journal.recovered()
        epoch = self._epoch(epoch)
        self._recovered = books.colours.arrivals - len(books.colours.reds)
        self.notes.store(
            server, epoch, books.colours.line, books.prim.index, list(books.colours.reds.values())
        )
        self.write(Boot(server, epoch, names))
        self.marking.own_red()

        def up() -> None:
            alone = not books.prim.index and not names
            self.shift_to(Cause.ABSENT if alone else Cause.STARTED)
            then()

        self.journal.sync(up)

    def _epoch(self, least: int) -> int:
        """Ids of actions are never used twice: not even of those that were sent and not written."""
        return max(least, self.books.epoch + 1)

    def stall(self, why: str) -> None:
        """It takes too long: as after a crash, the others go on; it comes back with what it lacks."""
        if (self.state, Cause.STALLED) in MOVES:
            self.shift_to(Cause.STALLED)
            self.exit = why

    def on_synced(self, ticket: int) -> None:
        """Records are on the disk."""
        before = self.journal.durable
        self.journal.on_synced(ticket)
        now = self.journal.durable
        if (now.line, now.prim, now.arrivals) != (before.line, before.prim, before.arrivals):
            digest = self.books.colours.digest_at(now.line)
            self.notes.durable(now.line, now.prim.index, now.arrivals - self._recovered, digest)
        self.answer()
        self._tell_line()

    # Outside of the group

    def returned(self) -> None:
        """It has what it lacked, and is about to enter the group again."""
        self.exchange, self.exit, self.sends = None, "", []
        self.shift_to(Cause.RETURNED)

    def pulled(self, line: int) -> None:
        """Actions behind this line were green elsewhere, and are so here from now on."""
        self.marking.all_placed(line)

    def rebased(self, overtaken: Sequence[Run]) -> None:
        """The order goes on from a snapshot, with own runs in it whose places are not known here."""
        self.marking.rebased(overtaken)

    def stop_for(self, prim: Prim) -> bool:
        """Whether what this server has cannot go on into a primary, whatever it is given: then it stops."""
        return self.exchanging.stop_for(prim)

    def image(self) -> Mark:
        """What others may be given: what is on the disk."""
        return self.journal.durable

    def lacking(self, cut: Cut) -> list[Run]:
        """Reds of this server that one with such a cut lacks, in red order."""
        known = dict(cut)
        return [run for run in self.books.colours.in_red_order() if run.first > known.get(run.creator, 0)]

    # Configurations

    def on_trans_conf(self) -> None:
        """What still comes was sent in the configuration before (figures 6.6 to 6.17)."""
        if self.state in (State.REG_PRIM, State.EXCHANGE_STATES, State.EXCHANGE_ACTIONS, State.CONSTRUCT):
            self.shift_to(Cause.TRANS_CONF)

    def on_reg_conf(self, conf: ConfId, members: Collection[MemberId]) -> None:
        """A configuration begins: everybody tells what it knows."""
        if self.state not in IN_GROUP:
            return
        self._end_of_conf()
        self.exchange = Exchange(conf, frozenset(members))
        self.primaries.begin()
        self.sends, self.exit = [], ""
        self.shift_to(Cause.REG_CONF)
        self.exchanging.begin(self.exchange)

    def _end_of_conf(self) -> None:
        """What a server may forget of an attempt, and what it knows of the primary that is over."""
        books = self.books
        if self.state is State.TRANS_PRIM:
            self.write(Learnt(books.prim, books.attempt, None, books.found_yellow()))
        elif self.state is State.NO:
            self.write(Learnt(books.prim, books.attempt, None, books.yellow))

    # Messages

    def on_message(self, sender: MemberId, payload: bytes) -> None:
        """What the group delivered; what is tagged with another configuration is for nobody."""
        message = messages.decode(payload)
        if message is None:
            self.stats.malformed += 1
        elif self.exchange is None or self.state not in IN_GROUP:
            self.stats.stale += 1
        elif message.conf != self.exchange.conf:
            self._on_stale(message)
        elif sender in self.exchange.foreign:
            self.stats.stale += 1
        else:
            self._on[type(message)](sender, message)

    def _on_stale(self, _message: Said) -> None:
        """The states do not tell of it (slip 3)."""
        self.stats.stale += 1

    def _on_actions(self, sender: MemberId, message: Actions) -> None:
        """OR-1.1 in a primary; yellow where it is over; red elsewhere."""
        run = message.run
        if self.state is State.REG_PRIM:
            self.marking.green(run)
            assert self.exchange is not None
            self.trimming.heard(self.exchange.server_of(sender), message.line)
        elif self.state is State.NON_PRIM:
            self.marking.red(run)
        elif self.state is State.TRANS_PRIM:
            self.marking.yellow(run)
        elif self.state is State.UN:
            if not self.primaries.guest:
                self.primaries.decided()
                self.marking.yellow(run)
        else:
            raise AssertionError(f"actions {run} in {self.state.value}")
        if run.creator == self.books.creator:
            self.making.flush()
        self.journal.keep_up()
        self.primaries.go_if_removed()

    # White: green on the disks of all

    def _on_line(self, sender: MemberId, message: Line) -> None:
        assert self.exchange is not None
        self.trimming.heard(self.exchange.server_of(sender), message.line)

    def _tell_line(self) -> None:
        if self.state is State.REG_PRIM and self.conf is not None:
            line = self.told_line
            if line - self.making.line >= self.settings.line_every:
                self.making.line = line
                self.say(Line(self.conf, line))

    def collect(self, position: int) -> None:
        """The service has all actions up to a position on its own."""
        if self.may_trim:
            self.trimming.collect(position)

    def keep(self, state: KeptState) -> None:
        """The state of the service at a position."""
        if self.may_trim:
            self.trimming.keep(state)

    @property
    def white(self) -> int:
        """All servers have the actions up to here green on their disks."""
        return self.trimming.white

    @property
    def may_trim(self) -> bool:
        """Whether there is much to forget, and no exchange under way: what others were told stays true."""
        return self.state in CREATES and self.trimming.due

    # Requests and answers

    @property
    def accepts(self) -> bool:
        """Whether requests are taken at all."""
        return self.making.accepts

    def request(self, wishes: Sequence[Wish]) -> int:
        """Take requests, as many as there is room for; they become actions as soon as they can."""
        return self.making.request(wishes)

    def answer(self) -> None:
        """Who waits for what is on the disk by now."""
        self.answers.tell(self.answerable_own, self.limit)

    @property
    def limit(self) -> int:
        """The position up to which the service may be given actions."""
        if self.settings.durability is Durability.MEMORY:
            return self.books.colours.line
        return self.journal.durable.line

    @property
    def answerable_own(self) -> int:
        """The last own action that is there to stay."""
        if self.settings.durability is Durability.MEMORY:
            return self.books.index
        return self.journal.durable.own
