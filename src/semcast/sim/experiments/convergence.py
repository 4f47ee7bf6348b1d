"""C1: rounds of gossip until everybody has a message, by formula, exactly and simulated."""

from random import Random
from typing import Literal

from semcast.models.convergence import (
    Epidemic,
    bound,
    contact_loss,
    expected_rounds,
    rounds_by_recurrence,
    rounds_exactly,
    simulated_rounds,
)
from semcast.sim.experiments.cells import Parameters, Result

MESSAGES = {"pull": 2, "push": 3}
"""What a contact takes: request and repair; digest, request and repair."""


class ConvergenceCell(Parameters, frozen=True):
    """C1: n0 of n members have the message; each message of a contact is lost with probability `loss`."""

    n: int = 100
    n0: int = 1
    contact: Literal["pull", "push"] = "pull"
    loss: float = 0.0
    error: float = 1e-6
    itself: bool = True
    runs: int = 200


def c1(cell: ConvergenceCell) -> Result:
    """Rounds that suffice, and the mean number of rounds (Sun 2000, figure 4-2)."""
    lost = contact_loss(cell.loss, MESSAGES[cell.contact])
    epidemic = Epidemic(cell.n, cell.n0, cell.contact, lost, cell.itself)
    rng = Random(cell.seed)
    return {
        "recurrence_rounds": rounds_by_recurrence(epidemic, cell.error),
        "exact_rounds": rounds_exactly(epidemic, cell.error),
        "bound_rounds": bound(cell.n, cell.n0, cell.error),
        "exact_mean": expected_rounds(epidemic),
        "simulated_mean": sum(simulated_rounds(epidemic, rng) for _ in range(cell.runs)) / cell.runs,
    }
