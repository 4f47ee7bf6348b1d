"""What applications do with a group, as a library: pure, for any stack and any driver."""

from semcast.patterns.backup import Answer, Outcome, PrimaryBackup
from semcast.patterns.machine import ReadAnswer, StateMachine
from semcast.patterns.pattern import Numbered, Outgoing, Pattern, Receiver, multicast_waiting, take
from semcast.patterns.state import ReplicatedState

__all__ = [
    "Answer",
    "Numbered",
    "Outcome",
    "Outgoing",
    "Pattern",
    "PrimaryBackup",
    "ReadAnswer",
    "Receiver",
    "ReplicatedState",
    "StateMachine",
    "multicast_waiting",
    "take",
]
