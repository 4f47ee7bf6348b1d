"""What a mutant consists of."""

import msgspec

from semcast.core.handover import Handover
from semcast.core.stack import Stack
from semcast.obsolescence import OperationTracker
from semcast.patterns.calls import Calls
from semcast.protocols.clients.host import Host
from semcast.protocols.gossip import Logger
from semcast.protocols.lightweight import Machine as DaemonMachine
from semcast.replication.machine import Machine
from semcast.replication.reads import ReadQueue


class Mutant(msgspec.Struct, frozen=True):
    """What to run instead of the real thing."""

    stack: type[Stack] | None = None
    operations: type[OperationTracker] = OperationTracker
    handover: type[Handover] = Handover
    machine: type[Machine] = Machine
    reading: type[ReadQueue] = ReadQueue
    logger: type[Logger] = Logger
    daemon: type[DaemonMachine] = DaemonMachine
    host: type[Host] = Host
    calls: type[Calls] = Calls
    by_chance: bool = True
    """Whether a swarm of a hundred seeds catches it; what it misses has a directed test."""
