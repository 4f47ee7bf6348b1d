"""The ring, broken on purpose: each mutant replaces one part, or one method of one part.

One file for each promise, with the mutants that break it.
"""

from semcast.sim.mutants.ring import (
    admission,
    confirming,
    flow,
    formation,
    ordering,
    pieces,
    purging,
    recovery,
)

MUTANTS = {
    **ordering.MUTANTS,
    **confirming.MUTANTS,
    **recovery.MUTANTS,
    **formation.MUTANTS,
    **admission.MUTANTS,
    **pieces.MUTANTS,
    **purging.MUTANTS,
    **flow.MUTANTS,
}
