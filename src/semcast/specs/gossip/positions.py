"""Positions of a log: dense, in the order of each stream, and the same for ever."""

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.specs.gossip.kinds import LOG, OPENED, PLACED
from semcast.specs.verdict import Findings, Verdict


class _Log:
    """What one log, of all incarnations of its logger, said of its positions."""

    def __init__(self) -> None:
        self.messages: list[MessageId] = []
        self.highest: dict[MemberId, int] = {}
        self.positions: dict[MessageId, int] = {}

    def place(self, position: int, message: MessageId) -> str | None:
        """What is wrong with a message at a position, if anything is."""
        if position < len(self.messages):
            there = self.messages[position]
            return None if there == message else f"{message} has position {position}, which {there} has, too"
        if message in self.positions:
            return f"{message} has position {position}, and had {self.positions[message]}"
        if position > len(self.messages):
            return f"{message} has position {position}, and nothing has {len(self.messages)}"
        highest = self.highest.get(message.sender, 0)
        if message.seq <= highest:
            return f"{message} has a later position than {MessageId(message.sender, highest)}"
        self.messages.append(message)
        self.positions[message] = position
        self.highest[message.sender] = message.seq
        return None


def gossip_positions(history: History) -> Verdict:
    """A log gives each message one position: the next, in the order of its stream, and never another.

    And no message that is in the log is passed over.
    """
    findings = Findings("gossip_positions")
    logs: dict[tuple[str, int], _Log] = {}
    for process in sorted(history.processes):
        log = _Log()
        written: list[Event] = []
        for row in history.of(process):
            if row.kind is OPENED:
                assert row.order is not None
                log = logs.setdefault((process.name, row.order), _Log())
            elif row.kind is LOG:
                written.append(row)
            elif row.kind is PLACED:
                _place(findings, log, row)
        _passed_over(findings, log, written)
    return findings.verdict()


def _place(findings: Findings, log: _Log, row: Event) -> None:
    assert row.sender is not None
    assert row.order is not None
    for place in range(row.count):
        problem = log.place(row.order + place, MessageId(row.sender, row.seq + place))
        if problem is not None:
            findings.count(1)
            findings.example(f"{row.process}: {problem}", row.only(row.seq + place))


def _passed_over(findings: Findings, log: _Log, written: list[Event]) -> None:
    for row in written:
        assert row.sender is not None
        for seq in range(row.seq, min(row.last, log.highest.get(row.sender, 0)) + 1):
            if MessageId(row.sender, seq) not in log.positions:
                findings.count(1)
                findings.example(f"{MessageId(row.sender, seq)} has no position", row.only(seq))
