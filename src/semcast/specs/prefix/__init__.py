"""What the beginning of a run can already break, judged as it is recorded: event by event, in bounded memory.

A run that goes on may still deliver what is missing, but nothing takes back a message that was delivered
twice, out of order, or with other contents, nor a view that two processes disagree about. Each of these has
an incremental form here, under the name of the property that it is a part of (`semcast.specs`). What an alarm
says, the checker of that property says of the recorded run, too; not the other way round. Of a ring, places
of messages are compared, and what does not fit breaks that property or another one of order.
"""

from semcast.specs.prefix.alarm import Alarm
from semcast.specs.prefix.watch import GroupWatch

__all__ = ["Alarm", "GroupWatch"]
