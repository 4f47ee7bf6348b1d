"""Groups for programs without asyncio: the same calls, which block.

```python
from semcast import blocking

with blocking.join("prices") as group:
    group.send(b"101.5", item="IBM")
    for event in group.events(timeout=1.0):
        print(event)
```
"""

from semcast.blocking_group import BlockingGroup, join
from semcast.blocking_log import BlockingLog, log
from semcast.databases import database_blocking as database
from semcast.domains.blocking import BlockingDomain, BlockingLightGroup, connect, domain
from semcast.engine.blocking import BlockingReplica, BlockingSession, replicate
from semcast.subscriptions import BlockingBatch, BlockingSubscription, subscribe

__all__ = [
    "BlockingBatch",
    "BlockingDomain",
    "BlockingGroup",
    "BlockingLightGroup",
    "BlockingLog",
    "BlockingReplica",
    "BlockingSession",
    "BlockingSubscription",
    "connect",
    "database",
    "domain",
    "join",
    "log",
    "replicate",
    "subscribe",
]
