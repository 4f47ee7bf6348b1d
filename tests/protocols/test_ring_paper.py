"""The worked example of Amir 1995, section 4.2, run by the protocol of section 5.2."""

from semcast.protocols.ring import MOVES, State
from semcast.sim.experiments.configurations import DESCRIBED, Example


def test_the_example_of_section_4_2() -> None:
    """Every process is given what figure 4.8 and its text say."""
    assert Example().tell() == DESCRIBED


def test_every_move_of_the_example_is_in_the_table() -> None:
    example = Example()
    example.tell()
    for ring in example.rings.values():
        assert ring.state is State.OPERATIONAL
        assert all(move in MOVES for move in ring.standing.moves)
