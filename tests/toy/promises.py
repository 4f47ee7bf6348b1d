"""The toy for those who judge: what it promises."""

from collections.abc import Collection

from semcast.history import GroupInfo
from semcast.specs.families import ALWAYS, FAMILIES, Family


def _promises(_info: GroupInfo) -> Collection[str]:
    return ALWAYS | {"semantic_sender_reliability", "same_state_of_correct_senders"}


FAMILIES.register(Family("toy", _promises))
