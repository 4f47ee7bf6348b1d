"""Calls: a request to a group, and the answers of its members. Pure, over any group with agreed views."""

from semcast.core.marks import MARK
from semcast.patterns.calls.envelope import ALL, ENVELOPE, ONE, Ask, Say, Whisper, encode, marked, read
from semcast.patterns.calls.machine import Calls, CallsFullError
from semcast.patterns.calls.notes import Notes
from semcast.patterns.calls.values import (
    CallAnswer,
    CallCounts,
    CallLimits,
    CallRequest,
    Done,
    Effect,
    Forget,
    Key,
    Run,
    Wanted,
    check_wanted,
)

__all__ = [
    "ALL",
    "ENVELOPE",
    "MARK",
    "ONE",
    "Ask",
    "CallAnswer",
    "CallCounts",
    "CallLimits",
    "CallRequest",
    "Calls",
    "CallsFullError",
    "Done",
    "Effect",
    "Forget",
    "Key",
    "Notes",
    "Run",
    "Say",
    "Wanted",
    "Whisper",
    "check_wanted",
    "encode",
    "marked",
    "read",
]
