"""What a history of this family says about sessions and logs, put together once for its checkers."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from weakref import WeakKeyDictionary

from semcast.core.ids import MemberId, Nanos
from semcast.history.events import Event, History
from semcast.history.schema import GONE, Kind
from semcast.specs.evidence import evidence_of
from semcast.specs.gossip.kinds import (
    ADMIT,
    ASSURED,
    AT_MOST_ONCE,
    COLLECT,
    DETACHED,
    DISCONNECT,
    DISMISSED,
    EXPLICIT,
    FENCED,
    FORGOT,
    INACTIVE,
    JOINED,
    KEPT,
    LEAVE,
    LOG,
    LOST,
    OPENED,
    PUBLISHER,
    READER,
    RECONNECT,
    START,
    THROUGH,
)
from semcast.specs.runs import Runs, union

_NOTHING = Runs()
_END = (1 << 63) - 1
_NEVER: Nanos = 1 << 62
_SETTLED = (Kind.DELIVER, Kind.PURGE, LOST)


class Incarnation:
    """What one process of a session did."""

    def __init__(self, process: MemberId, rows: list[Event]) -> None:
        self.process = process
        self.starts: dict[MemberId, Event] = {}
        self.delivered: dict[MemberId, Runs] = {}
        self.connected: dict[MemberId, Runs] = {}
        """Of that, what it delivered while a logger heard it."""
        self.lost: dict[tuple[MemberId, str], Runs] = {}
        self.purged: dict[MemberId, Runs] = {}
        self.through: dict[MemberId, int] = {}
        """Up to where its program said that it is through with a stream."""
        self.assured: dict[MemberId, int] = {}
        """As much of that as it was told to be on the disk of a logger."""
        self.end: Event | None = None
        """How it ended, if it did."""
        self.explicit = any(row.kind is EXPLICIT for row in rows)
        """Whether its program says itself what it is through with."""
        joined = next((row for row in rows if row.kind is JOINED), None)
        self.sponsors = () if joined is None else joined.members or ()
        """Who took it in, where no logger did."""
        self.leaves = next((row for row in rows if row.kind is LEAVE), None)
        """Where it wanted to leave, if it did."""
        self.fenced = any(row.kind in (FENCED, DETACHED) for row in rows)
        """Whether its stream was closed though it was there, or it stopped: then its session goes on."""
        gaps = unheard(rows)
        for row in rows:
            self._take(row, away=any(row.at > since and row.index < upto for since, upto in gaps))

    @property
    def began_at(self) -> Nanos:
        """When it started: its own stream is the first that it knows."""
        return min((start.at for start in self.starts.values()), default=0)

    @property
    def at_most_once(self) -> bool:
        """How it counts after a crash of the incarnation before."""
        return any(start.level == AT_MOST_ONCE for start in self.starts.values())

    def _take(self, row: Event, *, away: bool) -> None:
        if row.kind in GONE:
            self.end = self.end or row
        if row.sender is None:
            return
        if row.kind is START:
            self.starts.setdefault(row.sender, row)
        elif row.kind is Kind.DELIVER:
            _add(self.delivered, row.sender, row)
            if not away:
                _add(self.connected, row.sender, row)
        elif row.kind is Kind.PURGE:
            _add(self.purged, row.sender, row)
        elif row.kind in (THROUGH, ASSURED):
            said = self.through if row.kind is THROUGH else self.assured
            said[row.sender] = max(row.seq, said.get(row.sender, 0))
        elif row.kind is LOST and row.level is not None:
            self.lost.setdefault((row.sender, row.level), Runs()).add(row.seq, row.last)


class Session:
    """The incarnations of one name, in order."""

    def __init__(self, name: str, incarnations: list[Incarnation]) -> None:
        self.name = name
        self.incarnations = incarnations
        self.orphaned_at: Nanos = _NEVER
        """When the last of the sponsors crashed that took it in where no logger did: nobody answers for what
        it is owed then, until a logger hears it."""
        self.admitted_at: Nanos = _NEVER
        """When a logger, or sponsors, first had taken it in."""
        self.dismissed_at: Nanos = _NEVER
        """When a logger ended it, having heard nothing of it for long: nothing is owed to it then."""

    @property
    def orphaned(self) -> bool:
        """Whether that happened."""
        return self.orphaned_at < _NEVER

    @property
    def dismissed(self) -> bool:
        """Whether a logger ended it."""
        return self.dismissed_at < _NEVER

    @property
    def last(self) -> Incarnation:
        """The one that is there at the end, if any is."""
        return self.incarnations[-1]

    @property
    def there(self) -> bool:
        """Whether it is there at the end."""
        return self.last.end is None

    @property
    def left(self) -> Event | None:
        """Where it left for good, if it did."""
        end = self.last.end
        return end if end is not None and end.kind is Kind.LEFT and not self.last.fenced else None

    @property
    def over_at(self) -> Nanos:
        """When it was owed nothing more: it wanted to leave, was ended, or was refused, and is over."""
        ends = [each.at for each in (self.last.leaves, self.left) if each is not None]
        return min([self.orphaned_at, self.dismissed_at, *ends])

    def owed_since(self, each: Incarnation, stream: MemberId) -> Nanos:
        """From when on a log must keep a stream for one of its incarnations.

        It gives itself its own messages from the beginning; a log cannot keep them for a session of which no
        logger knows yet.
        """
        start = each.starts[stream]
        return max(start.at, self.admitted_at) if stream == each.process else start.at

    @property
    def counted(self) -> list[Incarnation]:
        """Those whose deliveries count together."""
        return [self.last] if self.last.at_most_once else self.incarnations

    def begin(self, stream: MemberId) -> int | None:
        """What it is owed comes after this; None if it never started there."""
        found = [each.starts[stream].seq for each in self.counted if stream in each.starts]
        return min(found, default=None)

    def delivered(self, stream: MemberId) -> Runs:
        """By any incarnation that counts."""
        return union(each.delivered.get(stream, _NOTHING) for each in self.counted)

    def lost(self, stream: MemberId, level: str) -> Runs:
        """What it gave up."""
        return union(each.lost.get((stream, level), _NOTHING) for each in self.counted)


class Log:
    """One log: what all incarnations of its logger had on it."""

    def __init__(self, logger: str, identity: int, retention: str) -> None:
        self.logger = logger
        self.identity = identity
        self.retention = retention.split("+")
        """Its rules."""
        self.logged: dict[MemberId, Runs] = {}
        self.collected: dict[MemberId, Runs] = {}
        self.lost = False
        """Whether its disk was lost."""
        self.lost_at: Nanos = _NEVER
        """When, at the earliest: its logger had ended."""
        self.lives: list[MemberId] = []
        """Incarnations of its logger that had it, and their streams: what they published."""
        self.forgotten = False
        """Whether the other loggers went on without it: that counts as lost."""

    @property
    def gone(self) -> bool:
        """Whether nobody can count on what is on it."""
        return self.lost or self.forgotten


class Ledger:
    """Sessions and logs of a run."""

    def __init__(self, history: History) -> None:
        self._rows = {process: history.of(process) for process in history.processes}
        self.relation = evidence_of(history).relation
        self.multicast = evidence_of(history).multicast
        self.streams = list(evidence_of(history).senders)
        """All that were multicast to, or delivered of."""
        loggers = {row.process.name for row in history.events if row.kind is OPENED}
        programs = {row.process.name for row in history.events if row.kind in (PUBLISHER, READER)}
        opened = [row.count for row in history.events if row.kind is OPENED]
        self.log_acks = max([1, *opened])
        """How many loggers must have a message."""
        by_name: dict[str, list[Incarnation]] = {}
        for process in sorted(history.processes):
            if process.name not in loggers and process.name not in programs:
                by_name.setdefault(process.name, []).append(Incarnation(process, list(history.of(process))))
        admissions, dismissals = _noted(history, ADMIT), _noted(history, DISMISSED)
        self.sessions = [
            Session(name, part)
            for name, each in by_name.items()
            for part in _stays(each, admissions, dismissals)
        ]
        ends = {each.process: each.end for found in by_name.values() for each in found}
        for session in self.sessions:
            session.orphaned_at = _last_crash(session.incarnations[0].sponsors, ends)
            session.dismissed_at = _dismissed_at(session, history)
            session.admitted_at = min(admissions.get(each.process, _NEVER) for each in session.incarnations)
        self.logs: list[Log] = []
        self.readded: list[tuple[Log, Event]] = []
        """Where a logger took in again what it had collected."""
        self.recovered: list[tuple[Event, Log, dict[MemberId, Runs]]] = []
        """Where a logger started on a log that was there, and what should have been on it."""
        for name in sorted(loggers):
            self._read_logs(name, [each for each in sorted(history.processes) if each.name == name])
        self.forgotten = {
            member.name for row in history.events if row.kind is FORGOT for member in row.members or ()
        }
        """Loggers that others went on without."""
        self._estranged = _estranged(history)
        for log in self.logs:
            log.forgotten = log.logger in self.forgotten
        self.running = [
            process.name
            for process in history.processes
            if process.name in loggers
            and process.name not in self.forgotten
            and not any(row.kind in GONE for row in history.of(process))
        ]
        """Loggers that are there at the end."""

    @property
    def dismisses(self) -> bool:
        """Whether sessions end that are silent for less than a run takes."""
        return any(INACTIVE in log.retention for log in self.logs)

    @property
    def disk_lost(self) -> bool:
        """Whether any disk of a logger was, or a logger was forgotten."""
        return any(log.gone for log in self.logs)

    @property
    def lost_streams(self) -> set[MemberId]:
        """What loggers published on disks that were lost: nobody else can be asked for it."""
        return {process for log in self.logs if log.lost for process in log.lives}

    @property
    def disk_missed(self) -> bool:
        """Whether a disk was lost, and its logger was not forgotten: others wait for what it had."""
        return any(log.lost and not log.forgotten for log in self.logs)

    @property
    def somebody_away(self) -> bool:
        """Whether a session is owed something whose program is gone, and may return."""
        gone = [session for session in self.sessions if not session.there and session.left is None]
        return any(session.dismissed_at == _NEVER for session in gone)

    @property
    def leave_missed(self) -> bool:
        """Whether a session may have left where only a logger heard it that others had forgotten.

        They end it as one that is silent: in time, only where `dismisses`.
        """
        if self.dismisses:
            return False
        lefts = [session.left.at for session in self.sessions if session.left is not None]
        return any(since <= at <= until for since, until in self._estranged for at in lefts)

    @cached_property
    def kept(self) -> dict[MemberId, Runs]:
        """What was ever logged on a disk that was not lost."""
        found: dict[MemberId, list[Runs]] = {}
        for log in self.logs:
            if not log.gone:
                for stream, runs in log.logged.items():
                    found.setdefault(stream, []).append(runs)
        return {stream: union(each) for stream, each in found.items()}

    def has(self, session: Session) -> dict[MemberId, Runs]:
        """What a session delivered, or delivered a replacement of."""
        return self.covered({stream: session.delivered(stream) for stream in self.streams})

    def covered(self, some: dict[MemberId, Runs]) -> dict[MemberId, Runs]:
        """These messages, and all that they replace."""
        masks = [0] * len(self.relation.messages)
        for stream, runs in some.items():
            for span in runs:
                for place in self.relation.places(stream, span):
                    masks[place] = 1
        self.relation.cover(masks)
        found = {stream: [runs] for stream, runs in some.items()}
        for place, mask in enumerate(masks):
            if mask:
                message = self.relation.messages[place]
                found.setdefault(message.process, []).append(Runs([(message.seq, message.seq)]))
        return {stream: union(each) for stream, each in found.items()}

    def had_at(self, session: Session) -> dict[MemberId, dict[int, Nanos]]:
        """When a session first had each message, or a replacement of it, or gave it up.

        All its incarnations count. So does what it purged: that its replacement comes is for the other
        checkers to see.
        """
        found: dict[MemberId, dict[int, Nanos]] = {stream: {} for stream in self.streams}
        for each in session.incarnations:
            for row in self._rows[each.process]:
                if row.sender in found and row.kind in _SETTLED:
                    times, last = found[row.sender], min(row.last, self.multicast(row.sender).highest())
                    for seq in range(row.seq, last + 1):
                        times[seq] = min(times.get(seq, row.at), row.at)
        messages = self.relation.messages
        for new in self.relation.sequence:
            at = found.get(messages[new].process, {}).get(messages[new].seq)
            if at is not None:
                for old in self.relation.replaced[new]:
                    times = found[messages[old].process]
                    times[messages[old].seq] = min(times.get(messages[old].seq, at), at)
        return found

    def _ended(self, process: MemberId, latest: Nanos) -> Nanos:
        """When a process ended, if that was recorded; else the latest moment at which it can have."""
        return min((row.at for row in self._rows[process] if row.kind in GONE), default=latest)

    def sent_before_admission(self, session: Session, process: MemberId) -> int:
        """The last number that one of its incarnations gave before a logger knew of the session."""
        own = [row for row in self._rows[process] if row.kind is Kind.DELIVER and row.sender == process]
        return max((row.last for row in own if row.at < session.admitted_at), default=0)

    def unaware(self, session: Session, stream: MemberId) -> bool:
        """Whether a session began after a disk was lost, with a log that knew nothing of a stream.

        Only members that were there could tell of it; and they have let go of what was logged.
        """
        lost_at = min((log.lost_at for log in self.logs), default=_NEVER)
        return stream not in session.last.starts and session.last.began_at >= lost_at

    def _read_logs(self, name: str, processes: list[MemberId]) -> None:
        log: Log | None = None
        for process in processes:
            for row in self._rows[process]:
                if row.kind is OPENED:
                    assert row.order is not None
                    if log is None or log.identity != row.order:
                        if log is not None:
                            log.lost, log.lost_at = True, self._ended(log.lives[-1], row.at)
                        log = Log(name, row.order, row.level or "")
                        self.logs.append(log)
                    else:
                        owed = {
                            stream: runs.minus(log.collected.get(stream, _NOTHING))
                            for stream, runs in log.logged.items()
                        }
                        self.recovered.append((row, log, owed))
                    log.lives.append(process)
                elif log is not None and row.sender is not None:
                    if row.kind in (LOG, KEPT):
                        _add(log.logged, row.sender, row)
                        if row.kind is LOG:
                            back = Runs([(row.seq, row.last)])
                            kept = back.minus(log.collected.get(row.sender, _NOTHING))
                            self.readded += [(log, row)] if kept.total() < row.count else []
                    elif row.kind is COLLECT:
                        _add(log.collected, row.sender, row)


def _stays(
    incarnations: list[Incarnation],
    admissions: Mapping[MemberId, Nanos],
    dismissals: Mapping[MemberId, Nanos],
) -> list[list[Incarnation]]:
    """Who left and came back has another session; not who left before any logger had heard of it.

    Also who crashed before it was told that it had left, where a logger had ended its session as it asked.
    """
    parts: list[list[Incarnation]] = [[]]
    for each in incarnations:
        parts[-1].append(each)
        end = each.end
        if end is None or each.fenced:
            continue
        left = end.kind is Kind.LEFT and (each.process in admissions or not admissions)
        untold = each.leaves is not None and dismissals.get(each.process, _NEVER) <= end.at
        if left or untold:
            parts.append([])
    return [part for part in parts if part]


def _dismissed_at(session: "Session", history: History) -> Nanos:
    """When the first logger had on disk that the session of the last incarnation is over."""
    last = session.last.process
    found = (
        row.at
        for row in history.events
        if row.kind is DISMISSED
        for member in row.members or ()
        if member.name == last.name and member.incarnation >= last.incarnation
    )
    return min(found, default=_NEVER)


def unheard(rows: Iterable[Event]) -> list[tuple[Nanos, int]]:
    """When no logger heard a process: from after a moment, to before the row of this index."""
    found: list[tuple[Nanos, int]] = []
    since: Nanos | None = None
    for row in rows:
        if row.kind is DISCONNECT and since is None:
            since = row.at - (row.order or 0)
        elif row.kind is RECONNECT and since is not None:
            found.append((since, row.index))
            since = None
    return found if since is None else [*found, (since, _END)]


def _estranged(history: History) -> list[tuple[Nanos, Nanos]]:
    """When a logger that others had forgotten was there, and did not know it."""
    forgot: dict[str, Nanos] = {}
    for row in history.events:
        for member in row.members or () if row.kind is FORGOT else ():
            forgot[member.name] = min(row.at, forgot.get(member.name, row.at))
    found: list[tuple[Nanos, Nanos]] = []
    for process in history.processes:
        rows = history.of(process) if process.name in forgot else ()
        ends = [row.at for row in rows if row.kind in GONE]
        if rows and (not ends or ends[0] > forgot[process.name]):
            found.append((max(rows[0].at, forgot[process.name]), ends[0] if ends else _END))
    return found


def _noted(history: History, kind: Kind) -> dict[MemberId, Nanos]:
    """When a row of each process was first on a logger's disk, or sponsors took it in; or its end was."""
    found: dict[MemberId, Nanos] = {}
    for row in history.events:
        if row.kind is kind or (kind is ADMIT and row.kind is JOINED):
            for member in (row.members or ()) if row.kind is kind else (row.process,):
                found[member] = min(row.at, found.get(member, row.at))
    return found


def _last_crash(sponsors: tuple[MemberId, ...], ends: dict[MemberId, Event | None]) -> Nanos:
    """When all of them had crashed; who left, or goes on as another incarnation, had answered for others."""
    found = [ends.get(sponsor) for sponsor in sponsors]
    if not found or not all(end is not None and end.kind is not Kind.LEFT for end in found):
        return _NEVER
    return max(end.at for end in found if end is not None)


def _add(to: dict[MemberId, Runs], stream: MemberId, row: Event) -> None:
    to.setdefault(stream, Runs()).add(row.seq, row.last)


_ledgers: WeakKeyDictionary[History, Ledger] = WeakKeyDictionary()


def ledger_of(history: History) -> Ledger:
    """The ledger of a history, gathered at the first call and kept while the history lives."""
    ledger = _ledgers.get(history)
    if ledger is None:
        ledger = _ledgers[history] = Ledger(history)
    return ledger
