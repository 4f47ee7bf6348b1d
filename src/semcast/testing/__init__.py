"""Your own program under the simulator: its groups run in virtual time, on a network that a test commands.

One seed decides everything. See docs/testing-your-application.md.
"""

from semcast.testing.errors import WorldError
from semcast.testing.process import Process, Program
from semcast.testing.swarm import swarm
from semcast.testing.trouble import FAULTS, Fault, trouble
from semcast.testing.world import World

__all__ = ["FAULTS", "Fault", "Process", "Program", "World", "WorldError", "swarm", "trouble"]
