"""Members that are heard by some only: who of two goes, and that never too many do."""

from tests.protocols.vsync.vsynclab import Node, group, settings

from semcast.core import MemberId
from semcast.core.ids import SECOND
from semcast.protocols.vsync.hopeless import Hopeless
from semcast.protocols.vsync.stream import ViewStream

A, B, C = MEMBERS = tuple(MemberId(name) for name in "abc")


class Heard(ViewStream):
    """A stream of which only matters who was heard in it."""

    def __init__(self, *heard: MemberId) -> None:
        self.members = MEMBERS
        self.heard = {MEMBERS.index(member) for member in heard}

    @property
    def frozen(self) -> bool:
        return False


def test_who_was_heard_in_the_last_view_is_given_another_one() -> None:
    """All others put themselves out at once when the first member fell silent: nobody was left."""
    silent: set[MemberId] = set()
    hopeless = Hopeless(B, settings(), silent.__contains__)
    hopeless.begin(MEMBERS, MEMBERS)
    assert hopeless.found(0, Heard(A, C)) == {}
    silent.add(A)
    hopeless.begin(MEMBERS, [], heard=[A, C])
    assert hopeless.found(0, Heard(C)) == {}
    hopeless.begin(MEMBERS, [], heard=[C])
    assert hopeless.found(0, Heard(C)) == {B: "not heard by all"}


def test_who_joined_and_was_never_heard_has_used_up_its_first_view() -> None:
    silent = {C}
    hopeless = Hopeless(A, settings(), silent.__contains__)
    hopeless.begin(MEMBERS, [C])
    assert hopeless.found(0, Heard(B)) == {C: "not heard by all"}


def test_not_all_are_put_out() -> None:
    lab = group("abcde")

    def put_out(node: Node) -> None:
        node.seat.call(lambda _, now: node.stack._change_view(now, {node.member: "not heard by all"}, ()))

    for node in list(lab.nodes.values())[1:]:
        put_out(node)
    lab.run(SECOND)
    assert {name for name, phase in lab.phases().items() if phase == "operational"} == set("abcde")
    put_out(lab.nodes["e"])
    lab.run(SECOND)
    assert lab.nodes["a"].views[-1] == ["a", "b", "c", "d"]
