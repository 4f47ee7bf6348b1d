"""The exchange of states and actions in a new configuration (Amir 1995, figures 6.9 to 6.11).

Everybody tells what it knows. All come to the same plan of who sends which actions again; then all know the
same, and either try to install a primary or go on without one.
"""

from collections.abc import Callable, Mapping, Sequence

from semcast.core.ids import MemberId
from semcast.replication import messages, strangers
from semcast.replication.actions import Run
from semcast.replication.amnesia import advice
from semcast.replication.exchange import Exchange, greens_of, reds_in, reds_of
from semcast.replication.fitness import unfit
from semcast.replication.ids import ConfId, Server, Weighted
from semcast.replication.knowledge import Knowledge, Prim
from semcast.replication.lineage import estranged, given_up
from semcast.replication.making import Making
from semcast.replication.marking import Marking
from semcast.replication.messages import Again, Done
from semcast.replication.plan import Planner, Share
from semcast.replication.primaries import Primaries
from semcast.replication.records import Founders, Learnt
from semcast.replication.standing import ServerStanding
from semcast.replication.states import Cause, State
from semcast.replication.trimming import Trimming


class Exchanging:
    """Takes part in the exchanges of one server.

    Args:
        standing: of the server.
        planner: of who sends what.
        marking: of what is sent again.
        primaries: where there is a quorum in the end.
        making: of actions, where there is none.
        trimming: tells and is told how far servers are.
    """

    def __init__(
        self,
        standing: ServerStanding,
        planner: Planner,
        marking: Marking,
        primaries: Primaries,
        making: Making,
        trimming: Trimming,
    ) -> None:
        self._standing = standing
        self._books = standing.books
        self._planner = planner
        self._marking = marking
        self._primaries = primaries
        self._making = making
        self._trimming = trimming

    # States

    def begin(self, exchange: Exchange) -> None:
        """Figure 6.9: mark own actions red, sync, then tell; unless it is over by then."""
        standing = self._standing
        self._marking.own_red()

        def tell() -> None:
            if standing.exchange is exchange and standing.state is State.EXCHANGE_STATES:
                standing.say(self.told(exchange.conf))

        self.withhold_state(tell)

    def withhold_state(self, tell: Callable[[], None]) -> None:
        """Others rely on what a state says: it waits for the disk."""
        self._standing.journal.sync(tell)

    def told(self, conf: ConfId) -> messages.State:
        """All that this server knows."""
        standing, books, colours = self._standing, self._books, self._books.colours
        return messages.State(
            conf,
            standing.server,
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
            standing.settings.exchange_limit,
            standing.vitals.wall(),
            standing.vitals.versions,
            self._trimming.heard_of_others(),
        )

    def on_state(self, sender: MemberId, state: messages.State) -> None:
        """Figure 6.10: with the states of all, all come to the same plan."""
        standing = self._standing
        exchange = standing.exchange
        assert exchange is not None
        if standing.state is State.EXCHANGE_STATES and exchange.add(sender, state):
            self._set_strangers_aside(exchange)
            if self._set_forgetful_aside(exchange):
                return
            allow_mixed = standing.vitals.allow_mixed
            standing.unfit = unfit(standing.server, exchange.states, allow_mixed=allow_mixed)
            self._plan(exchange)

    def _set_strangers_aside(self, exchange: Exchange) -> None:
        """Another group may have the same name."""
        server, founders, states = self._standing.server, self._books.members.founders, exchange.states
        self._standing.refusal = strangers.refusal(server, founders, states)
        exchange.set_aside(strangers.foreign(server, founders, states))

    def _set_forgetful_aside(self, exchange: Exchange) -> bool:
        """Whose disk was put back to what it was long ago counts for nothing; whether that is this one."""
        standing = self._standing
        found = standing.rolled_back(exchange.states)
        if standing.server in found:
            standing.shift_to(Cause.REMOVED)
            standing.exit = advice(found[standing.server])
            return True
        exchange.set_aside(found)
        told = [
            f"{server} is refused, its folder was put back from an old copy: {why}"
            for server, why in found.items()
        ]
        standing.refusal = "; ".join([standing.refusal, *told] if standing.refusal else told)
        return False

    def _plan(self, exchange: Exchange) -> None:
        standing = self._standing
        plan = exchange.plan = self._planner.plan(exchange.states)
        standing.counted = plan.members
        if not estranged(standing.server, self._books.prim, plan.prim):
            self._check_digests(exchange, plan.prim)
        elif self.stop_for(plan.prim):
            return
        if standing.server not in plan.members:
            standing.shift_to(Cause.ABSENT)
            standing.exit = "not counted in the exchange: this server pulls what it lacks"
            return
        self.learn_founders(plan.founders)
        standing.shift_to(Cause.STATES)
        self._take_turn(exchange)

    def _check_digests(self, exchange: Exchange, prim: Prim) -> None:
        """Equal lines have equal hashes. If not, a promise was broken somewhere: no primary with that one."""
        for server, state in exchange.states.items():
            if estranged(server, state.prim, prim):
                continue
            mine = self._books.colours.digest_at(state.green)
            if mine is not None and mine != state.digest:
                alarm = f"{server} has other actions than this server up to position {state.green}"
                self._standing.alarm = alarm
                self._standing.notes.alarm(alarm)

    def stop_for(self, prim: Prim) -> bool:
        """Whether what this server has cannot go on into a primary, whatever it is given: then it stops."""
        standing, books = self._standing, self._books
        why = given_up(standing.server, books.prim, books.colours.line, prim)
        if why:
            standing.shift_to(Cause.REMOVED)
            standing.exit = why
        return bool(why)

    def learn_founders(self, founders: Weighted) -> None:
        """Before any action is taken: the servers of the group are those and what actions made of them."""
        if founders and not self._books.members.founders:
            self._standing.write(Founders(founders))

    # Actions

    def _take_turn(self, exchange: Exchange) -> None:
        if exchange.over():
            self._end(exchange)
            return
        share = exchange.share_of(self._standing.server)
        if share is not None:
            self.send_share(exchange, share)

    def send_share(self, exchange: Exchange, share: Share) -> None:
        """It is the turn of this server to send what others lack."""
        colours, conf, most = self._books.colours, exchange.conf, self._standing.settings.run_bytes
        for again in (*greens_of(conf, share, colours, most), *reds_of(conf, reds_in(share, colours), most)):
            self._say_again(again)
        self._standing.say(Done(conf, exchange.turn))

    def _say_again(self, again: Again) -> None:
        self._standing.notes.again(again)
        self._standing.stats.retransmitted += len(again.runs)
        self._standing.say(again)

    def on_again(self, _sender: MemberId, again: Again) -> None:
        """OR-3: green at its position, or red. Outside of an exchange, reds of one who is ahead."""
        if self._standing.state is State.EXCHANGE_ACTIONS:
            if again.position:
                self._take_greens(again)
            else:
                self.stage(again.runs)
        elif not again.position:
            self._take_streamed(again.runs)
        self._standing.journal.keep_up()

    def _take_greens(self, again: Again) -> None:
        position = again.position
        for run in again.runs:
            line = self._books.colours.line
            assert position <= line + 1, f"{run} at {position}, and the green line is {line}"
            if position == line + 1:
                self._marking.green(run)
            position += len(run.actions)

    def stage(self, runs: Sequence[Run]) -> None:
        """Reds of an exchange are kept aside until its end: all of them count, or none."""
        assert self._standing.exchange is not None
        self._standing.exchange.staged += runs

    def _take_streamed(self, runs: Sequence[Run]) -> None:
        """They are marked red, in a primary too; a server that may have installed one has done so."""
        standing = self._standing
        if standing.state is State.UN:
            if self._primaries.guest:
                return
            self._primaries.decided()
        if standing.state is State.NON_PRIM and not (standing.exchange and standing.exchange.ended):
            return
        if standing.state in (State.REG_PRIM, State.TRANS_PRIM, State.NON_PRIM):
            for run in runs:
                if run.first <= self._books.colours.cut.get(run.creator, 0) + 1:
                    self._marking.red(run)

    def on_done(self, _sender: MemberId, done: Done) -> None:
        """Somebody has sent its share: it is the turn of the next."""
        exchange = self._standing.exchange
        assert exchange is not None
        if self._standing.state is State.EXCHANGE_ACTIONS and done.share == exchange.turn:
            exchange.turn += 1
            self._take_turn(exchange)

    # The end

    def _end(self, exchange: Exchange) -> None:
        """Figure 6.11: all have the same actions and the same knowledge; is there a quorum?"""
        standing = self._standing
        exchange.ended = True
        for run in exchange.staged:
            self._marking.red(run)
        exchange.staged = []
        states = {server: exchange.states[server] for server in standing.counted}
        for server, state in states.items():
            self._trimming.heard(server, state.green)
        known = standing.learn({server: state.account() for server, state in states.items()})
        part = self.participants(known.prim)
        if part and not standing.alarm and self._may_install(known, states):
            self._primaries.construct(exchange, known, part)
        else:
            vulnerable, heard = known.vulnerable[standing.server], self._trimming.heard_of_others()
            standing.write(Learnt(known.prim, known.attempt, vulnerable, known.yellow, heard))
            standing.journal.sync()
            standing.shift_to(Cause.EXCHANGED)
            self._making.flush()

    def participants(self, prim: Prim) -> Weighted:
        """The servers of the primary to be: those of the group who are here. The others are guests."""
        counted = self._standing.counted
        if not prim.index:
            return tuple((server, 1) for server in counted)
        weights = self._books.members.weights
        return tuple((server, weights[server]) for server in counted if server in weights)

    def _may_install(self, known: Knowledge, states: Mapping[Server, messages.State]) -> bool:
        standing = self._standing
        if any(known.vulnerable.values()):
            return False
        if known.prim.index:
            return standing.is_quorum(known.prim, standing.counted)
        names = max((state.names for state in states.values()), key=len)
        return standing.may_found(names, standing.counted)
