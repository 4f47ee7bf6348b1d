"""Names that are not UTF-8 inside of messages: dropped as malformed, in whatever they stand.

msgspec raises UnicodeDecodeError for them, which is no DecodeError.
"""

from collections.abc import Callable

import pytest

from semcast.core.ids import MemberId
from semcast.patterns.calls import envelope
from semcast.protocols.lightweight import messages as lightweight
from semcast.protocols.vsync import changes
from semcast.replication import actions
from semcast.replication import messages as replication
from semcast.replication.ids import ConfId, Server

NAME = "somebody"
WHO = MemberId(NAME, 1)


def _change() -> bytes:
    return changes.encode(changes.Change([WHO], [WHO], [], [], []), ())


CASES: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    "call": (envelope.encode(envelope.Say(WHO, 1, 0, b"")), envelope.read),
    "daemon": (lightweight.encode(lightweight.Came(WHO)), lightweight.decode),
    "view": (_change(), lambda value: changes.decode(value, ())),
    "asked": (actions.asked(actions.Asked(NAME, 1, 1, b"")), actions.read_asked),
    "servers": (actions.change(actions.Join(Server(NAME, 1), 1)), actions.read_change),
    "exchange": (replication.encode(replication.Cpc(ConfId(1, WHO))), replication.decode),
}


@pytest.mark.parametrize("case", CASES)
def test_a_name_that_is_no_text_is_malformed(case: str) -> None:
    sound, read = CASES[case]
    torn = sound.replace(NAME.encode(), b"some\xb9ody")
    assert torn != sound
    assert read(torn) is None
