"""Broken replication servers: one rule each, and the property that must catch it."""

from collections.abc import Callable, Collection, Mapping

import msgspec

from semcast.core.ids import MemberId
from semcast.replication.actions import CHANGE, Asked, Run, RunId
from semcast.replication.books import Books
from semcast.replication.colours import Colours
from semcast.replication.creation import Cut, Wish
from semcast.replication.dedupe import Answered, Requests
from semcast.replication.exchange import Exchange
from semcast.replication.ids import Server, Weighted, servers_of
from semcast.replication.journal import Journal, Mark
from semcast.replication.knowledge import (
    Accounts,
    Knowledge,
    Prim,
    Vulnerable,
    contradicted,
    newest,
    still_vulnerable,
    with_bits,
)
from semcast.replication.knowledge import learn as learn_all
from semcast.replication.machine import Machine
from semcast.replication.messages import Actions, Again, Installed, Said, State, decode
from semcast.replication.plan import Planner, Share, States
from semcast.replication.reads import Reading
from semcast.replication.records import Boot, Install, KnownGreen, Learnt, encode
from semcast.replication.snapshots import KeptState
from semcast.replication.states import State as Standing
from semcast.replication.tables import Tables

# Knowledge and quorum


class Step3AsPrinted(Machine):
    """Figure 6.12 to the letter: who was not in the last primary forgets its vulnerability."""

    def learn(self, accounts: Accounts) -> Knowledge:
        known = learn_all(accounts)
        prim = newest(accounts)
        records = {
            server: None
            if each.vulnerable is None
            or server not in servers_of(prim.servers)
            or contradicted(each.vulnerable, accounts)
            else each.vulnerable
            for server, each in accounts.items()
        }
        return msgspec.structs.replace(known, vulnerable=with_bits(records))


class BitsAsPrinted(Machine):
    """No bit is ever set: an attempt of which all crashed blocks for ever."""

    def learn(self, accounts: Accounts) -> Knowledge:
        known = learn_all(accounts)
        return msgspec.structs.replace(known, vulnerable=still_vulnerable(accounts, known.prim))


class UnvulnerableInUn(Machine):
    """A server that does not know whether others installed forgets that it agreed."""

    def _end_of_conf(self) -> None:
        super()._end_of_conf()
        if self.state is Standing.UN:
            self._write(Learnt(self.books.prim, self.books.attempt, None, self.books.yellow))


class QuorumIgnoresVulnerable(Machine):
    """A primary is installed though somebody may know of another."""

    def learn(self, accounts: Accounts) -> Knowledge:
        known = learn_all(accounts)
        return msgspec.structs.replace(known, vulnerable=dict.fromkeys(known.vulnerable))


class HalfIsEnough(Machine):
    """Half of the last primary is a quorum, whichever half."""

    def is_quorum(self, prim: Prim, here: Collection[Server]) -> bool:
        total = sum(weight for _, weight in prim.servers)
        return 2 * sum(weight for server, weight in prim.servers if server in here) >= total


class MajorityOfSAndLast(Machine):
    """A quorum must be one of all servers, too: a shrinking group stops."""

    def is_quorum(self, prim: Prim, here: Collection[Server]) -> bool:
        everybody = Prim(1, servers=self.books.members.weighted())
        return super().is_quorum(prim, here) and super().is_quorum(everybody, here)


class YellowForgotten(Machine):
    """What may be green elsewhere is ordered anew."""

    def learn(self, accounts: Accounts) -> Knowledge:
        known = learn_all(accounts)
        return msgspec.structs.replace(known, yellow=None if known.yellow is None else ())


class VulnerableByName(Machine):
    """Who is meant by a record is told by name: a wiped disk speaks for the one before it."""

    def learn(self, accounts: Accounts) -> Knowledge:
        known = learn_all(accounts)
        names = {server.name: server for server in accounts}

        def void(record: Vulnerable | None) -> bool:
            here = [] if record is None else [names.get(each.name) for each in servers_of(record.servers)]
            others = [accounts[server].vulnerable for server in here if server is not None]
            return any(other is None or (record and other.conf != record.conf) for other in others)

        freed = {server: None if void(each) else each for server, each in known.vulnerable.items()}
        return msgspec.structs.replace(known, vulnerable=freed)


class WipedMajorityFounds(Machine):
    """A majority of those who were named founds a group, whatever their disks had."""

    def may_found(self, names: Collection[str], here: Collection[Server]) -> bool:
        return 2 * len({server.name for server in here}.intersection(names)) > len(names)


# Order


class GreenInTransitional(Machine):
    """What comes after a primary is over is ordered at once."""

    def _in_trans_prim(self, run: Run) -> None:
        self._green(run)


class AgreedInsteadOfSafe(Machine):
    """Actions are delivered in a primary before everybody has them."""

    def _sends_safe(self) -> bool:
        return False


class _ByArrival(Colours):
    def in_red_order(self) -> list[Run]:
        return list(self.reds.values())


class _BooksByArrival(Books):
    colours_kind = _ByArrival


class RedsInArrivalOrder(Machine):
    """Each server orders reds as they came to it."""

    books_kind = _BooksByArrival


class _ById(Colours):
    def in_red_order(self) -> list[Run]:
        return sorted(self.reds.values(), key=lambda run: (run.creator, run.first))


class _BooksById(Books):
    colours_kind = _ById


class RedsById(Machine):
    """Reds are ordered by who made them, as printed: an answer may come before its question."""

    books_kind = _BooksById


class QueuedActionCounted(Machine):
    """Slip 3: what was sent in a later configuration than it was made for is marked red where it arrives."""

    def _begin_exchange(self, exchange: Exchange) -> None:
        own, self.books.ongoing = self.books.ongoing, {}
        super()._begin_exchange(exchange)
        self.books.ongoing = own

    def _on_stale(self, message: Said) -> None:
        waits = (Standing.EXCHANGE_STATES, Standing.NON_PRIM)
        if isinstance(message, Actions) and self.state in waits:
            run = message.run
            if run.first == self.books.colours.cut.get(run.creator, 0) + 1:
                self._red(run)


class InstallNotAtomic(Machine):
    """A crash may leave a primary with a part of what turned green with it."""

    def _write_install(self, prim: Prim, turning: tuple[RunId, ...]) -> None:
        self._write(Install(prim, ()))
        for run in turning:
            self._write(KnownGreen(run))


class ExchangeRedsAtOnce(Machine):
    """Reds of an exchange count as they come, also if it breaks off."""

    def _stage(self, runs: "list[Run]") -> None:  # type: ignore[override]
        for run in runs:
            self._red(run)


class RedBeforeGreenInExchange(ExchangeRedsAtOnce):
    """Reds of an exchange come before the greens that they follow."""

    def _send_share(self, exchange: Exchange, share: Share) -> None:
        super()._send_share(exchange, share)
        done = self.sends.pop()
        self.sends.sort(key=lambda sent: isinstance(again := decode(sent[0]), Again) and again.position > 0)
        self.sends.append(done)


# Disks


class CpcBeforeSync(Machine):
    """A server agrees to an attempt that a crash may make it forget."""

    def _withhold_cpc(self, tell: Callable[[], None]) -> None:
        self.journal.sync()
        tell()


class StateBeforeSync(Machine):
    """A server tells what a crash may make it forget."""

    def _withhold_state(self, tell: Callable[[], None]) -> None:
        self.journal.sync()
        tell()


class AnsweredBeforeDurable(Machine):
    """Clients are answered as soon as an action is green."""

    @property
    def limit(self) -> int:
        return self.books.colours.line

    def _green(self, run: Run) -> None:
        super()._green(run)
        self._answer()


class WhiteFromVolatileLine(Machine):
    """A server tells how far it is, not how far its disk is."""

    def told_line(self) -> int:
        return self.books.colours.line


class _BooksWithoutEpochs(Books):
    def _boot(self, record: Boot) -> None:
        index = self.index
        super()._boot(record)
        self.index = index


class IndexReusedAfterCrash(Machine):
    """Actions are numbered on from what the disk has: what was sent and not written shares a name."""

    books_kind = _BooksWithoutEpochs

    def _epoch(self, least: int) -> int:
        return self.books.epoch or least


class PullVolatile(Machine):
    """A server outside is given what is green in memory only."""

    def image(self) -> Mark:
        return self.journal.mark()


# Membership


class GuestWithoutRecord(Machine):
    """A removed server takes part in an attempt and does not remember it."""

    def _record_of_attempt(self) -> Vulnerable | None:
        return None if self.guest else self.next


class GuestNotAwaited(Machine):
    """A primary is installed before the guests have the attempt on their disks."""

    def _awaited(self) -> Collection[Server]:
        assert self.next is not None
        return servers_of(self.next.servers)


class GuestInstalls(Machine):
    """A removed server installs the primary that it is not in."""

    def _agreed(self) -> None:
        if self.state is Standing.CONSTRUCT and self.guest:
            self._install()
            self.state = Standing.REG_PRIM
            self.notes.phase(self.state.value)
        else:
            super()._agreed()


class GuestStopsEarly(Machine):
    """A removed server stops when everybody has agreed, before the primary is on a disk."""

    def _agreed(self) -> None:
        guest = self.guest and self.server in self.books.members.removed
        super()._agreed()
        if guest:
            self._stop()

    def _on_installed(self, _sender: MemberId, _installed: Installed) -> None:
        pass


class FoundersNotTold(Machine):
    """Who learns of the first primary from others does not learn who is in the group."""

    def _learn_founders(self, founders: Weighted) -> None:
        pass


class _BooksEditingBase(Books):
    def _mind(self, action: bytes, position: int) -> None:
        super()._mind(action, position)
        if action[0] == CHANGE and self.prim.index:
            self.prim = msgspec.structs.replace(self.prim, servers=self.members.weighted())


class QuorumBaseEditedOnLeave(Machine):
    """What is a quorum changes with the green action, not with an installation."""

    books_kind = _BooksEditingBase


class _EverybodyKnown(Planner):
    def known(self, states: States, top: State) -> dict[Server, State]:  # noqa: ARG002
        return dict(states)


class JoinerVotesWithoutState(Machine):
    """A store that nobody let in is in the next primary."""

    planner_kind = _EverybodyKnown

    def _participants(self, prim: Prim) -> Weighted:  # noqa: ARG002
        weights = self.books.members.weights
        return tuple((server, weights.get(server, 1)) for server in self._counted)


class BehindServerVotes(Machine):
    """Servers that count as absent are counted for the quorum."""

    def is_quorum(self, prim: Prim, here: Collection[Server]) -> bool:
        assert self.exchange is not None
        return super().is_quorum(prim, {*here, *self.exchange.states})


class ForgetByQuorum(Machine):
    """After an operator gave up servers, a quorum of the rest is enough."""

    def is_quorum(self, prim: Prim, here: Collection[Server]) -> bool:
        return super().is_quorum(msgspec.structs.replace(prim, whole=False), here)


class _EstrangedCount(Planner):
    def kin(self, states: States, top: State) -> dict[Server, State]:  # noqa: ARG002
        return dict(states)


class EstrangedTakesPart(Machine):
    """A server that follows an order which an operator gave up is one like any other."""

    planner_kind = _EstrangedCount

    def stop_for(self, prim: Prim) -> bool:  # noqa: ARG002
        return False


class RolledBackVotes(Machine):
    """A server whose disk is an old copy is one like any other."""

    def rolled_back(self, states: Mapping[Server, State]) -> Mapping[Server, str]:  # noqa: ARG002
        return {}


class WritesBeforeFounding(Machine):
    """A server that knows no primary takes requests."""

    @property
    def accepts(self) -> bool:
        return self.state in (Standing.NON_PRIM, Standing.REG_PRIM)


# Clients


class RoamByClock(Machine):
    """A clock as high counts as having seen the same."""

    def _refuse_unseen(self, wish: Wish) -> bool:  # noqa: ARG002
        return False


class RoamRedInPrimary(Machine):
    """In a primary, what is known without a place counts as seen."""

    def _refuse_unseen(self, wish: Wish) -> bool:
        knows = self.books.colours.knows
        return not all(knows(creator, index) for creator, index in wish.seen)


class _LastNumberOnly(Requests):
    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, int] = {}

    def apply(self, request: Asked, position: int) -> bool:
        if request.number <= self._last.get(request.client, 0):
            return False
        self._last[request.client] = request.number
        return super().apply(request, position)


class _BooksWithLastNumbers(Books):
    requests_kind = _LastNumberOnly


class _BooksWithoutRequests(Books):
    def _restore_requests(self, tables: Tables, requests: Answered) -> None:
        pass


class DedupeNotInSnapshot(Machine):
    """What was done for which client is not written down with the rest."""

    books_kind = _BooksWithoutRequests


class SnapshotNamesTooHigh(Machine):
    """The state of the service is said to have one action more than it has."""

    def keep(self, state: KeptState) -> None:
        super().keep(KeptState(min(state.position + 1, self.books.colours.line), state.state))


class _TrimsFirst(Journal):
    def begin_anew(self) -> None:
        self.out.begin_anew()
        self.sync()
        for record in self.books.condensed():
            self.out.append(encode(record))
        self.sync()


class TrimmedBeforeSynced(Machine):
    """The old log goes before what replaces it is on the disk."""

    journal_kind = _TrimsFirst


class LateQueuedDropped(Machine):
    """A request with a lower number than the client's last is dropped."""

    books_kind = _BooksWithLastNumbers


class StreamByCreator(Machine):
    """Reds of one who is ahead are handed in creator by creator."""

    def lacking(self, cut: Cut) -> list[Run]:
        return sorted(super().lacking(cut), key=lambda run: (run.creator, run.first))


class WeakSeesRed(Reading):
    """A weak read shows what has no place."""

    def read(self, level: str, client: str = "", position: int = 0) -> "object":  # type: ignore[override]
        machine = self._machine
        if level == "weak":
            machine.notes.read(level, client, machine.limit, self.reds())
            return None
        return super().read(level, client, position)


class DeltaDeletedAtAnyGreen(Reading):
    """A dirty read forgets the reds as soon as anything is green (figure 7.3 as printed)."""

    def reds(self) -> list[Run]:
        return [] if self._machine.books.colours.line else super().reds()


class SessionIgnoresOwn(Reading):
    """A session is shown any green line."""

    def may_answer(self, position: int) -> bool:  # noqa: ARG002
        return True
