"""What applications do with a group, as a library: pure, for any stack and any driver."""

from semcast.patterns.backup import BackupReply, Executed, PrimaryBackup
from semcast.patterns.machine import ReadAnswer, StateMachine
from semcast.patterns.pattern import Numbered, Pattern, PatternMessage, Receiver, multicast_waiting, take
from semcast.patterns.repeats import Repeats, RepeatStatistics, RowKey, key_problem, put_key, split_key
from semcast.patterns.state import ReplicatedState

__all__ = [
    "BackupReply",
    "Executed",
    "Numbered",
    "Pattern",
    "PatternMessage",
    "PrimaryBackup",
    "ReadAnswer",
    "Receiver",
    "RepeatStatistics",
    "Repeats",
    "ReplicatedState",
    "RowKey",
    "StateMachine",
    "key_problem",
    "multicast_waiting",
    "put_key",
    "split_key",
    "take",
]
