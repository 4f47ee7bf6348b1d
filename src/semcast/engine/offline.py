"""The folder of a server that does not run: what an operator can do there, and read out of it."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from semcast.engine import contents
from semcast.engine.contents import CALL, MARK, READ
from semcast.group.errors import ConfigurationError
from semcast.replication.actions import Run
from semcast.replication.books import Books
from semcast.replication.lineage import ForgetError, forgetting
from semcast.replication.records import decode, encode
from semcast.sql.actions import SqlAction, decode_action
from semcast.storage.errors import StorageError
from semcast.storage.folder import MemberFolder
from semcast.storage.segments import SegmentLog

Told = Mapping[str, object]


class Stopped:
    """Made by `stopped`.

    Args:
        log: of the server.
    """

    def __init__(self, log: SegmentLog) -> None:
        self._log = log
        self.books = Books()
        self.books.replay(map(decode, log.records))

    def forget(
        self, names: Collection[str], alive: Callable[[], Collection[str]], *, loss: bool = False
    ) -> list[str]:
        """Go on without servers that are gone for good, from the next start on.

        Args:
            names: who is gone.
            alive: called to find out who is not.
            loss: whether it is accepted that actions are lost which nobody else has.

        Returns those that were not forgotten before. Raises `ConfigurationError` where that makes no sense,
        or is too dangerous.
        """
        books = self.books
        new = [name for name in names if name not in {each.name for each in books.prim.forgot}]
        if not new:
            return []
        if books.server is None:
            raise ConfigurationError("this folder has no log: nothing was ever done there")
        try:
            record = forgetting(books.server, books.prim, books.members, new, loss=loss)
        except ForgetError as error:
            raise ConfigurationError(str(error)) from error
        found = sorted(set(new).intersection(alive()))
        if found:
            raise ConfigurationError(
                f"{', '.join(found)} is alive: one that is forgotten and goes on is another database. Stop it"
            )
        self._log.append([encode(record)])
        self._log.sync()
        books.apply(record)
        return new

    def actions(self, after: int | None = None) -> Iterator[Told]:
        """Actions without a place, and with `after` those that have one behind it, in their order."""
        books = self.books
        if after is not None:
            if after < books.colours.start:
                raise ConfigurationError(
                    f"position {after}: the log of this server begins at {books.colours.start}; what is"
                    " before is in its database.sqlite only"
                )
            for position, run in books.colours.after(after):
                yield from _told(run, position, after)
        for run in sorted(
            [*books.colours.in_red_order(), *books.ongoing.values()], key=lambda each: (each.clock, each.id)
        ):
            yield from _told(run, None, 0)


def _told(run: Run, position: int | None, after: int) -> Iterator[Told]:
    for offset, action in enumerate(run.actions):
        place = None if position is None else position + offset
        content = contents.read(action)
        if content is None or content.kind in (READ, MARK) or (place is not None and place <= after):
            continue
        asked, body = content.asked, content.body
        if content.kind == CALL:
            body = contents.read_call(body).body
        yield {
            "position": place,
            "creator": str(run.creator),
            "index": run.first + offset,
            "client": "" if asked is None else asked.client,
            "number": 0 if asked is None else asked.number,
            "level": content.level,
            "stamp": content.stamp,
            "action": _sql(body) or body,
        }


def _sql(body: bytes) -> SqlAction | None:
    try:
        return decode_action(body)
    except msgspec.MsgspecError:
        return None


@contextmanager
def stopped(data: Path, group: str, name: str) -> Iterator[Stopped]:
    """The folder of a server, which must not run meanwhile.

    Raises `ConfigurationError` where it runs, or where there is no such folder.
    """
    try:
        folder = MemberFolder(data, group, name)
        try:
            log = SegmentLog(folder.path)
            try:
                yield Stopped(log)
            finally:
                log.close()
        finally:
            folder.close()
    except (StorageError, OSError) as error:
        raise ConfigurationError(str(error)) from error
