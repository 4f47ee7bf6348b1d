"""Payloads that are not what was sent."""

import msgspec

from semcast.core.messages import Batch

_EVERY = 5


def changed(batch: Batch) -> Batch:
    """Some batches with a bit of their first payload changed, the others as they are."""
    if batch.first % _EVERY or not batch.payloads[0]:
        return batch
    first, *others = batch.payloads
    return msgspec.structs.replace(batch, payloads=[first[:-1] + bytes([first[-1] ^ 1]), *others])
