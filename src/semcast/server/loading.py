"""Many rows, in batches that are done one after the other, each exactly once.

A load has a name, under which its batches are numbered. Begun once more, perhaps at another server, it goes
on where it was: what is done is not done again.
"""

from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from semcast.engine import ForgottenError
from semcast.engine.service import ActionError
from semcast.server.errors import PendingError
from semcast.server.values import row_to_json
from semcast.sql.actions import Value

if TYPE_CHECKING:
    from semcast.server.client import Client


class Batch(NamedTuple):
    """Statements that are done together."""

    statements: list[tuple[str, list[Value]]]
    rows: int


class Loaded(NamedTuple):
    """How far a load has come."""

    rows: int
    before: int = 0
    """Of these, rows that were there already: an earlier run had loaded them."""
    position: int = 0


class LoadError(ActionError):
    """A batch could not be done; what is before it is, and nothing behind it.

    Args:
        sentence: why.
        done: what is before it.
        rows: of the batch.
    """

    def __init__(self, sentence: str, done: Loaded, rows: int) -> None:
        first, last = done.rows + 1, done.rows + rows
        super().__init__(f"rows {first} to {last}: {sentence}; the {done.rows} before are in the database")
        self.done = done


async def load(
    client: "Client",
    name: str,
    batches: Iterable[Batch],
    told: Callable[[Loaded], None],
    timeout: float,
) -> Loaded:
    """Have all batches done.

    Args:
        client: whom to ask.
        name: of this load: the batches are the same whenever it is the same.
        batches: in their order.
        told: called after each.
        timeout: seconds for each; then `PendingError`, and the same load goes on there.
    """
    line = int((await client.status())["position"])
    done = Loaded(0)
    for number, batch in enumerate(batches, 1):
        try:
            position = await _do(client, name, number, batch, line, timeout)
        except TimeoutError as error:
            sentence = (
                f"{done.rows} rows are loaded, and no outcome of those behind: the same load goes on there"
            )
            raise PendingError(f"{sentence}: {error}", number) from error
        except ActionError as error:
            raise LoadError(str(error), done, batch.rows) from error
        before = done.before + (batch.rows if position <= line else 0)
        done = Loaded(done.rows + batch.rows, before, max(done.position, position))
        told(done)
    return done


async def _do(client: "Client", name: str, number: int, batch: Batch, line: int, timeout: float) -> int:
    """Have a batch done; returns its position, or 0 for long ago.

    What failed in an earlier run is tried once more, under another name: a number has one outcome for ever.
    """
    statements = [[sql, row_to_json(values)] for sql, values in batch.statements]
    for attempt in count():
        asking = f"{name} {attempt}" if attempt else name
        content = {"statements": statements, "client": asking, "number": number, "floor": number}
        try:
            return await client.numbered("/v1/transaction", content, timeout)
        except ForgottenError:
            return 0
        except ActionError as error:
            if not 0 < error.position <= line:
                raise
    raise AssertionError("there is always another attempt")
