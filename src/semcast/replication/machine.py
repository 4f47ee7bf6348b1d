"""The replication server (Amir 1995, chapter 6): eight states.

It is driven by the deliveries of any group communication with extended virtual synchrony. Inputs are
methods. What it wants is in `sends` (multicast this, safe or not), in the `Outbox` (records, syncs, notes,
answers) and in `exit` (leave the group, and why). The figures of the paper are named at each handler; every
deviation is in docs/protocols/replication.md.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any, ClassVar

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.replication import messages, strangers
from semcast.replication.actions import Names, Run, RunId
from semcast.replication.amnesia import advice, rolled_back
from semcast.replication.answers import Answers
from semcast.replication.books import Books
from semcast.replication.creation import QUEUED, Creation, Cut, Wish
from semcast.replication.exchange import Exchange, greens_of, reds_in, reds_of
from semcast.replication.fitness import Vitals, unfit
from semcast.replication.ids import ConfId, Server, Weighted, servers_of
from semcast.replication.journal import Journal, Mark
from semcast.replication.knowledge import Accounts, Knowledge, Prim, Vulnerable, learn
from semcast.replication.lineage import estranged, given_up, past_of
from semcast.replication.messages import Actions, Again, Cpc, Done, Installed, Line, Said
from semcast.replication.notes import RED, YELLOW, Notes
from semcast.replication.plan import Planner, Share
from semcast.replication.quorum import is_quorum, may_found
from semcast.replication.records import (
    Boot,
    Founders,
    Green,
    Install,
    KnownGreen,
    Learnt,
    Own,
    OwnRed,
    Record,
    Red,
    Yellow,
)
from semcast.replication.settings import Durability, ReplicationSettings
from semcast.replication.snapshots import KeptState
from semcast.replication.states import CREATES, IN_GROUP, MOVES, Cause, State
from semcast.replication.trimming import Trimming


class Machine:
    """One server.

    Args:
        books: what its disk said.
        settings: of this server.
        out: for records, notes and answers.
    """

    planner_kind: ClassVar[type[Planner]] = Planner
    journal_kind: ClassVar[type[Journal]] = Journal
    books_kind: ClassVar[type[Books]] = Books

    def __init__(self, books: Books, settings: ReplicationSettings, out: Outbox) -> None:
        self.books = books
        self.settings = settings
        self.out = out
        self.stats = Statistics()
        self.journal = self.journal_kind(books, out)
        self.notes = Notes(out, wanted=settings.notes)
        self.creation = Creation(settings.buffer, settings.run_bytes, watched=settings.notes)
        self.answers = Answers(books, self.creation, self.notes, out)
        self.trimming = Trimming(self.journal, settings, self.notes)
        self.state = State.BOOT
        self.exchange: Exchange | None = None
        """Of the configuration that the server is in."""
        self.sends: list[tuple[bytes, bool]] = []
        """What is to be multicast next, and whether safe."""
        self.exit = ""
        """Why the server wants to be out of the group, if it does."""
        self.alarm = ""
        """A promise was broken: two servers have different actions green at one position."""
        self.vitals = Vitals()
        self.unfit = ""
        """Why this server makes no actions, as of the last exchange, if it should not."""
        self.refusal = ""
        """Whom this server has nothing to do with, and why, as of the last exchange."""
        self.next: Vulnerable | None = None
        """The attempt that is under way."""
        self.holds = False
        """Whether requests wait because the service of this server is slow."""
        self._counted: tuple[Server, ...] = ()
        self._cpcs: set[Server] = set()
        self._told_line = 0
        self._recovered = 0  # reds that came before this start
        self._planner = self.planner_kind()
        self._on: dict[type[Any], Callable[[MemberId, Any], None]] = {
            Actions: self._on_actions,
            messages.State: self._on_state,
            Again: self._on_again,
            Done: self._on_done,
            Cpc: self._on_cpc,
            Installed: self._on_installed,
            Line: self._on_line,
        }

    # What it is made of: pure functions, each in a file of its own.

    def learn(self, accounts: Accounts) -> Knowledge:
        """Figure 6.12."""
        return learn(accounts)

    def is_quorum(self, prim: Prim, here: Collection[Server]) -> bool:
        """Figure 6.13."""
        return is_quorum(prim, here)

    def may_found(self, names: Collection[str], here: Collection[Server]) -> bool:
        """Who installs the first primary."""
        return may_found(names, here)

    def rolled_back(self, states: Mapping[Server, messages.State]) -> Mapping[Server, str]:
        """Who has forgotten what it vouched for, and what that is."""
        return rolled_back(states)

    @property
    def trouble(self) -> str:
        """What whoever runs the servers should look at, if there is anything."""
        return self.alarm or self.unfit or self.refusal

    @property
    def server(self) -> Server:
        """Who this is."""
        assert self.books.server is not None
        return self.books.server

    @property
    def conf(self) -> ConfId | None:
        """The configuration that it is in."""
        return None if self.exchange is None else self.exchange.conf

    @property
    def guest(self) -> bool:
        """Whether it takes part in an attempt without being one of the servers to be."""
        return self.next is None or self.server not in servers_of(self.next.servers)

    def image(self) -> Mark:
        """What others may be given: what is on the disk."""
        return self.journal.durable

    def lacking(self, cut: Cut) -> list[Run]:
        """Reds of this server that one with such a cut lacks, in red order."""
        known = dict(cut)
        return [run for run in self.books.colours.in_red_order() if run.first > known.get(run.creator, 0)]

    @property
    def limit(self) -> int:
        """The position up to which the service may be given actions."""
        if self.settings.durability is Durability.MEMORY:
            return self.books.colours.line
        return self.journal.durable.line

    def _shift_to(self, cause: Cause) -> None:
        state = MOVES[self.state, cause]
        self.state = state
        self.notes.phase(state.value)

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
        self._write(Boot(server, epoch, names))
        self._own_red()

        def up() -> None:
            alone = not books.prim.index and not names
            self._shift_to(Cause.ABSENT if alone else Cause.STARTED)
            then()

        self.journal.sync(up)

    def _epoch(self, least: int) -> int:
        """Ids of actions are never used twice: not even of those that were sent and not written."""
        return max(least, self.books.epoch + 1)

    def returned(self) -> None:
        """It has what it lacked, and is about to enter the group again."""
        self.exchange, self.exit, self.sends = None, "", []
        self._shift_to(Cause.RETURNED)

    def pulled(self, line: int) -> None:
        """Actions behind this line were green elsewhere, and are so here from now on."""
        for position, run in self.books.colours.after(line):
            self._placed(run, position)

    def rebased(self, overtaken: Sequence[Run]) -> None:
        """The order goes on from a snapshot, with own runs in it whose places are not known here."""
        self.answers.overtake(overtaken)
        colours = self.books.colours
        self.notes.snapshot(colours.start, colours.digest)
        for where, servers in self.books.altered:
            self.notes.group(servers, where)
        self.books.altered.clear()

    def stall(self, why: str) -> None:
        """It takes too long: as after a crash, the others go on; it comes back with what it lacks."""
        if (self.state, Cause.STALLED) in MOVES:
            self._shift_to(Cause.STALLED)
            self.exit = why

    def _own_red(self) -> None:
        """What may have been sent and was not delivered is red: the states tell of it (slip 3)."""
        for run in list(self.books.ongoing.values()):
            self._write(OwnRed(run.id))
            self.notes.colour(RED, run)

    def _write(self, record: Record) -> None:
        self.journal.write(record)

    def say(self, message: Said, *, safe: bool = False) -> None:
        """Multicast in the group."""
        self.sends.append((messages.encode(message), safe))

    def on_synced(self, ticket: int) -> None:
        """Records are on the disk."""
        before = self.journal.durable
        self.journal.on_synced(ticket)
        now = self.journal.durable
        if (now.line, now.prim, now.arrivals) != (before.line, before.prim, before.arrivals):
            digest = self.books.colours.digest_at(now.line)
            self.notes.durable(now.line, now.prim.index, now.arrivals - self._recovered, digest)
        self._answer()
        self._tell_line()

    # Configurations

    def on_trans_conf(self) -> None:
        """What still comes was sent in the configuration before (figures 6.6 to 6.17)."""
        if self.state in (State.REG_PRIM, State.EXCHANGE_STATES, State.EXCHANGE_ACTIONS, State.CONSTRUCT):
            self._shift_to(Cause.TRANS_CONF)

    def on_reg_conf(self, conf: ConfId, members: Collection[MemberId]) -> None:
        """A configuration begins: everybody tells what it knows."""
        if self.state not in IN_GROUP:
            return
        self._end_of_conf()
        self.exchange = Exchange(conf, frozenset(members))
        self.next, self._cpcs, self.sends, self.exit = None, set(), [], ""
        self._shift_to(Cause.REG_CONF)
        self._begin_exchange(self.exchange)

    def _end_of_conf(self) -> None:
        """What a server may forget of an attempt, and what it knows of the primary that is over."""
        books = self.books
        if self.state is State.TRANS_PRIM:
            self._write(Learnt(books.prim, books.attempt, None, books.found_yellow()))
        elif self.state is State.NO:
            self._write(Learnt(books.prim, books.attempt, None, books.yellow))

    def _begin_exchange(self, exchange: Exchange) -> None:
        """Figure 6.9: mark own actions red, sync, then tell; unless it is over by then."""
        self._own_red()

        def tell() -> None:
            if self.exchange is exchange and self.state is State.EXCHANGE_STATES:
                self.say(self.told(exchange.conf))

        self._withhold_state(tell)

    def _withhold_state(self, tell: Callable[[], None]) -> None:
        """Others rely on what a state says: it waits for the disk."""
        self.journal.sync(tell)

    def told(self, conf: ConfId) -> messages.State:
        """All that this server knows."""
        books, colours = self.books, self.books.colours
        return messages.State(
            conf,
            self.server,
            colours.line,
            colours.digest,
            colours.start,
            tuple(sorted(colours.cut.items())),
            books.attempt,
            books.prim,
            books.vulnerable,
            books.yellow,
            books.members.weighted(),
            books.members.founders,
            books.names,
            self.settings.exchange_limit,
            self.vitals.wall(),
            self.vitals.versions,
            self.trimming.heard_of_others(),
        )

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
            self._green(run)
            assert self.exchange is not None
            self.trimming.heard(self.exchange.server_of(sender), message.line)
        elif self.state is State.NON_PRIM:
            self._red(run)
        elif self.state is State.TRANS_PRIM:
            self._in_trans_prim(run)
        elif self.state is State.UN:
            if not self.guest:
                self._install()
                self._shift_to(Cause.ACTION)
                self._in_trans_prim(run)
        else:
            raise AssertionError(f"actions {run} in {self.state.value}")
        if run.creator == self.books.creator:
            self.flush()
        self.journal.keep_up()
        self._go_if_removed()

    def _in_trans_prim(self, run: Run) -> None:
        known = self.books.colours.knows(run.creator, run.last)
        self._write(Yellow(run))
        if not known:
            self.notes.colour(YELLOW, run)

    def _red(self, run: Run) -> None:
        if run.id in self.books.ongoing:
            self._write(OwnRed(run.id))
        elif self.books.colours.knows(run.creator, run.last):
            return
        else:
            self._write(Red(run))
        self.notes.colour(RED, run)

    def _green(self, run: Run) -> None:
        books = self.books
        if books.colours.is_green(run.id):
            return
        known = run.id in books.ongoing or run.id in books.colours.reds
        position = books.colours.line + 1
        self._write(KnownGreen(run.id) if known else Green(run))
        self._placed(run, position)
        if self.settings.durability is Durability.MEMORY:
            self._answer()

    def _placed(self, run: Run, position: int) -> None:
        self.notes.green(run, position, self.books.void)
        for where, servers in self.books.altered:
            self.notes.group(servers, where)
        self.books.altered.clear()
        self.creation.place(run, position)

    # Exchange

    def _on_state(self, sender: MemberId, state: messages.State) -> None:
        exchange = self.exchange
        assert exchange is not None
        if self.state is State.EXCHANGE_STATES and exchange.add(sender, state):
            self._set_strangers_aside(exchange)
            if self._set_forgetful_aside(exchange):
                return
            self.unfit = unfit(self.server, exchange.states, allow_mixed=self.vitals.allow_mixed)
            self._plan(exchange)

    def _set_strangers_aside(self, exchange: Exchange) -> None:
        """Another group may have the same name."""
        founders, states = self.books.members.founders, exchange.states
        self.refusal = strangers.refusal(self.server, founders, states)
        exchange.set_aside(strangers.foreign(self.server, founders, states))

    def _set_forgetful_aside(self, exchange: Exchange) -> bool:
        """Whose disk was put back to what it was long ago counts for nothing; whether that is this one."""
        found = self.rolled_back(exchange.states)
        if self.server in found:
            self._shift_to(Cause.REMOVED)
            self.exit = advice(found[self.server])
            return True
        exchange.set_aside(found)
        told = [
            f"{server} is refused, its folder was put back from an old copy: {why}"
            for server, why in found.items()
        ]
        self.refusal = "; ".join([self.refusal, *told] if self.refusal else told)
        return False

    def _check_digests(self, exchange: Exchange, prim: Prim) -> None:
        """Equal lines have equal hashes. If not, a promise was broken somewhere: no primary with that one."""
        for server, state in exchange.states.items():
            if estranged(server, state.prim, prim):
                continue
            mine = self.books.colours.digest_at(state.green)
            if mine is not None and mine != state.digest:
                self.alarm = f"{server} has other actions than this server up to position {state.green}"
                self.notes.alarm(self.alarm)

    def _plan(self, exchange: Exchange) -> None:
        plan = exchange.plan = self._planner.plan(exchange.states)
        self._counted = plan.members
        if not estranged(self.server, self.books.prim, plan.prim):
            self._check_digests(exchange, plan.prim)
        elif self.stop_for(plan.prim):
            return
        if self.server not in plan.members:
            self._shift_to(Cause.ABSENT)
            self.exit = "not counted in the exchange: this server pulls what it lacks"
            return
        self._learn_founders(plan.founders)
        self._shift_to(Cause.STATES)
        self._take_turn(exchange)

    def stop_for(self, prim: Prim) -> bool:
        """Whether what this server has cannot go on into a primary, whatever it is given: then it stops."""
        why = given_up(self.server, self.books.prim, self.books.colours.line, prim)
        if why:
            self._shift_to(Cause.REMOVED)
            self.exit = why
        return bool(why)

    def _learn_founders(self, founders: Weighted) -> None:
        """Before any action is taken: the servers of the group are those and what actions made of them."""
        if founders and not self.books.members.founders:
            self._write(Founders(founders))

    def _take_turn(self, exchange: Exchange) -> None:
        if exchange.over():
            self._end(exchange)
            return
        share = exchange.share_of(self.server)
        if share is not None:
            self._send_share(exchange, share)

    def _send_share(self, exchange: Exchange, share: Share) -> None:
        colours, conf, most = self.books.colours, exchange.conf, self.settings.run_bytes
        for again in (*greens_of(conf, share, colours, most), *reds_of(conf, reds_in(share, colours), most)):
            self._say_again(again)
        self.say(Done(conf, exchange.turn))

    def _say_again(self, again: Again) -> None:
        self.notes.again(again)
        self.stats.retransmitted += len(again.runs)
        self.say(again)

    def _on_again(self, _sender: MemberId, again: Again) -> None:
        """OR-3: green at its position, or red. Outside of an exchange, reds of one who is ahead."""
        if self.state is State.EXCHANGE_ACTIONS:
            if again.position:
                self._take_greens(again)
            else:
                self._stage(again.runs)
        elif not again.position:
            self._take_streamed(again.runs)
        self.journal.keep_up()

    def _take_greens(self, again: Again) -> None:
        position = again.position
        for run in again.runs:
            line = self.books.colours.line
            assert position <= line + 1, f"{run} at {position}, and the green line is {line}"
            if position == line + 1:
                self._green(run)
            position += len(run.actions)

    def _stage(self, runs: Sequence[Run]) -> None:
        assert self.exchange is not None
        self.exchange.staged += runs

    def _take_streamed(self, runs: Sequence[Run]) -> None:
        """They are marked red, in a primary too; a server that may have installed one has done so."""
        if self.state is State.UN:
            if self.guest:
                return
            self._install()
            self._shift_to(Cause.ACTION)
        if self.state is State.NON_PRIM and not self._ended:
            return
        if self.state in (State.REG_PRIM, State.TRANS_PRIM, State.NON_PRIM):
            for run in runs:
                if run.first <= self.books.colours.cut.get(run.creator, 0) + 1:
                    self._red(run)

    @property
    def _ended(self) -> bool:
        return self.exchange is not None and self.exchange.ended

    def _on_done(self, _sender: MemberId, done: Done) -> None:
        exchange = self.exchange
        assert exchange is not None
        if self.state is State.EXCHANGE_ACTIONS and done.share == exchange.turn:
            exchange.turn += 1
            self._take_turn(exchange)

    def _end(self, exchange: Exchange) -> None:
        """Figure 6.11: all have the same actions and the same knowledge; is there a quorum?"""
        exchange.ended = True
        for run in exchange.staged:
            self._red(run)
        exchange.staged = []
        states = {server: exchange.states[server] for server in self._counted}
        for server, state in states.items():
            self.trimming.heard(server, state.green)
        known = self.learn({server: state.account() for server, state in states.items()})
        part = self._participants(known.prim)
        if part and not self.alarm and self._may_install(known, states):
            self._construct(exchange, known, part)
        else:
            vulnerable, heard = known.vulnerable[self.server], self.trimming.heard_of_others()
            self._write(Learnt(known.prim, known.attempt, vulnerable, known.yellow, heard))
            self.journal.sync()
            self._shift_to(Cause.EXCHANGED)
            self.flush()

    def _participants(self, prim: Prim) -> Weighted:
        """The servers of the primary to be: those of the group who are here. The others are guests."""
        if not prim.index:
            return tuple((server, 1) for server in self._counted)
        weights = self.books.members.weights
        return tuple((server, weights[server]) for server in self._counted if server in weights)

    def _may_install(self, known: Knowledge, states: dict[Server, messages.State]) -> bool:
        if any(known.vulnerable.values()):
            return False
        if known.prim.index:
            return self.is_quorum(known.prim, self._counted)
        return self.may_found(max((state.names for state in states.values()), key=len), self._counted)

    # Primary components

    def _construct(self, exchange: Exchange, known: Knowledge, part: Weighted) -> None:
        """Remember the attempt on the disk, then agree to it (Claim 2). Guests do the same."""
        attempt = known.attempt + 1
        self.next = Vulnerable(known.prim.index, attempt, exchange.conf, part)
        heard = self.trimming.heard_of_others()
        self._write(Learnt(known.prim, attempt, self._record_of_attempt(), known.yellow, heard))
        self._shift_to(Cause.QUORUM)

        def tell() -> None:
            if self.exchange is exchange and self.state is State.CONSTRUCT:
                self.say(Cpc(exchange.conf), safe=True)

        self._withhold_cpc(tell)

    def _withhold_cpc(self, tell: Callable[[], None]) -> None:
        """An attempt must be remembered by who agreed to it."""
        self.journal.sync(tell)

    def _record_of_attempt(self) -> Vulnerable | None:
        return self.next

    def _awaited(self) -> Collection[Server]:
        """Whose word an installation needs: that of everybody who counted."""
        return self._counted

    def _on_cpc(self, sender: MemberId, _cpc: Cpc) -> None:
        """Figures 6.14 and 6.16. A CPC of before is of no meaning elsewhere (slip 4)."""
        assert self.exchange is not None
        if self.state not in (State.CONSTRUCT, State.NO):
            return
        server = self.exchange.server_of(sender)
        if server is not None:
            self._cpcs.add(server)
        if self._cpcs.issuperset(self._awaited()):
            self._agreed()

    def _agreed(self) -> None:
        """A guest never installs: it stays vulnerable, and drops what it is given, until it may stop."""
        if self.state is State.NO or self.guest:
            self._shift_to(Cause.UNDECIDED)
            return
        self._install()
        self._shift_to(Cause.INSTALLED)
        self.flush()
        self._go_if_removed()

    def _install(self) -> None:
        """Figure 6.15, as one record: yellow turn green (OR-1.2), then reds in red order (OR-2)."""
        books, exchange, attempt = self.books, self.exchange, self.next
        assert exchange is not None
        assert attempt is not None
        before, line, servers = books.prim, books.colours.line, tuple(books.members.weights)
        lineage = before.lineage or _lineage(exchange.conf)
        prim = Prim(
            attempt.index + 1,
            attempt.attempt,
            exchange.conf,
            attempt.servers,
            lineage=lineage,
            past=past_of(before, line),
            forgot=before.forgot,
        )
        self._write_install(prim, self._turning())
        for position, run in books.colours.after(line):
            self._placed(run, position)
        self.notes.install(prim, before, line, self._counted)
        if not before.index:
            self.notes.group(books.members.weights, 0)
        elif before.whole:
            self.notes.group(servers, line)
        for server in self._counted:
            self.trimming.told(server, line)
        self._after_install(exchange, prim)

    def _turning(self) -> tuple[RunId, ...]:
        """What turns green at an installation, in order."""
        books = self.books
        first = [run for run in books.yellow or () if run in books.colours.reds]
        done = set(first)
        return (*first, *(run.id for run in books.colours.in_red_order() if run.id not in done))

    def _write_install(self, prim: Prim, turning: tuple[RunId, ...]) -> None:
        self._write(Install(prim, turning))

    def _after_install(self, exchange: Exchange, prim: Prim) -> None:
        """Guests wait to hear that the primary is on a disk: then nobody needs them any more."""
        guests = set(self._counted).difference(servers_of(prim.servers))

        def tell() -> None:
            if guests and self.exchange is exchange and self.state is State.REG_PRIM:
                self.say(Installed(exchange.conf))

        self.journal.sync(tell)

    def _on_installed(self, _sender: MemberId, _installed: Installed) -> None:
        """One that was removed stops here, and not before: it might be needed for a quorum until then."""
        if (
            self.state in (State.REG_PRIM, State.UN)
            and self.guest
            and self.server in self.books.members.removed
        ):
            self._stop()

    def _go_if_removed(self) -> None:
        """A primary keeps its servers. One that was removed goes, and comes back as a guest of the next."""
        if self.state is State.REG_PRIM and self.server in self.books.members.removed:
            self.exit = "removed from the group: this server comes back as a guest of the next primary"

    def _stop(self) -> None:
        self._shift_to(Cause.REMOVED)
        self.exit = "removed from the group"

    # White: green on the disks of all

    def _on_line(self, sender: MemberId, message: Line) -> None:
        assert self.exchange is not None
        self.trimming.heard(self.exchange.server_of(sender), message.line)

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

    def told_line(self) -> int:
        """The green line that others may be told: what is on the disk."""
        return self.journal.durable.line

    def _tell_line(self) -> None:
        if self.state is State.REG_PRIM and self.conf is not None:
            line = self.told_line()
            if line - self._told_line >= self.settings.line_every:
                self._told_line = line
                self.say(Line(self.conf, line))

    # Requests

    @property
    def accepts(self) -> bool:
        """Whether requests are taken at all: not before the group is founded, and from its servers only."""
        return self.state in IN_GROUP and self.books.prim.index > 0 and self.books.belongs

    def request(self, wishes: Sequence[Wish]) -> int:
        """Take requests, as many as there is room for; they become actions as soon as they can."""
        if not self.accepts:
            self.creation.blocked = True
            return 0
        taken = wishes[: max(0, self.creation.room)]
        self.creation.add(taken)
        self.creation.blocked = self.creation.blocked or len(taken) < len(wishes)
        self.flush()
        return len(taken)

    def flush(self) -> None:
        """Make actions of what waits, where that is possible now."""
        books = self.books
        while (
            len(self.creation)
            and self.state in CREATES
            and self.conf is not None
            and self.accepts
            and not (self.holds or self.unfit)
            and len(books.ongoing) < self.settings.window
        ):
            wishes = self.creation.take(self._refuse_unseen)
            if wishes:
                self._make(self.conf, wishes)

    def _make(self, conf: ConfId, wishes: Sequence[Wish]) -> None:
        """Mode `parallel`: sent at once, answered when it is on the disk."""
        books = self.books
        clock = max(books.clock, books.colours.clock) + 1
        run = Run(books.creator, books.index + 1, clock, [wish.action for wish in wishes])
        self._write(Own(run))
        self.creation.made(run.creator, run.first, wishes)
        self.stats.sent += len(wishes)
        self.notes.requests(run, wishes)
        self.say(Actions(conf, self.told_line(), run), safe=self._sends_safe())
        self._told_line = self.told_line()
        if QUEUED in {wish.level for wish in wishes}:
            self.journal.keep_up()  # the others are answered when their place is on the disk, this before it
        if self.settings.durability is Durability.MEMORY:
            self._answer()

    def _sends_safe(self) -> bool:
        return self.state is State.REG_PRIM

    def _refuse_unseen(self, wish: Wish) -> bool:
        """What a client saw elsewhere must be known here, and have its place in a primary."""
        colours = self.books.colours
        has = colours.has_green if self.state is State.REG_PRIM else colours.knows
        if all(has(creator, index) for creator, index in wish.seen):
            return False
        self.answers.refuse(wish, "not here yet: what the client saw")
        return True

    # Answers

    def _answer(self) -> None:
        """Who waits for what is on the disk by now."""
        self.answers.tell(self.answerable_own, self.limit)

    @property
    def answerable_own(self) -> int:
        """The last own action that is there to stay."""
        if self.settings.durability is Durability.MEMORY:
            return self.books.index
        return self.journal.durable.own


def _lineage(conf: ConfId) -> int:
    """Of a group that is founded in this configuration; all founders come to the same."""
    return 1 + int.from_bytes(blake2b(str(conf).encode(), digest_size=7).digest(), "little")
