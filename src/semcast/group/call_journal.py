"""`record=`: what a live member does about calls, as a journal of its own beside that of its messages.

Calls happen in the thread of the program, messages in that of the loop; so these are two journals of one
process, in two groups of one run. Rows are written before what they are about leaves, and before the program
learns of it. Nothing is written before there is a call: then the journal begins with the view so far, and
with what the program had been told by then. Where a journal cannot be written, the log says so, and the
program goes on: what is recorded then is cut off, and known to be.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from semcast.core.annotations import Item
from semcast.core.events import Delivery, Note, Skipped, ViewChange
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Batch
from semcast.core.outgoing import Outgoing
from semcast.group.drafts import Drafts
from semcast.group.settings import GroupSettings
from semcast.group.stacks import Parts
from semcast.history.events import RunInfo
from semcast.history.journal import FamilyRow, JournalWriter
from semcast.history.schema import TOTAL

_LOG = logging.getLogger("semcast.group")
_STACK = "calls"


def calls_of(group: str) -> str:
    """The name under which the calls of a group are recorded.

    >>> calls_of("prices")
    'prices (calls)'
    """
    return f"{group} (calls)"


def open_call_journal(group: str, settings: GroupSettings, parts: Parts) -> "CallJournal | None":
    """The one that the settings ask for; None for a stack without calls."""
    if not parts.family.calls:
        return None
    order = parts.family.asked(settings).order if parts.family.renumbers else TOTAL
    return CallJournal(Path(settings.record), settings.record_run or group, group, parts.member, order=order)


class CallJournal:
    """The rows of `specs/calls/kinds.py` about one member in one group.

    Args:
        folder: for journals.
        run: that they belong to.
        group: whose calls they are.
        member: who this is.
        order: of the messages of the group.
        clock: the time of day.
    """

    def __init__(
        self,
        folder: Path,
        run: str,
        group: str,
        member: MemberId,
        *,
        order: str,
        clock: Callable[[], Nanos] = time.time_ns,
    ) -> None:
        self._folder = folder
        self._info = RunInfo.one(
            run, calls_of(group), _STACK, None, (), None, uniform=False, quiesced=False, order=order
        )
        self._member = member
        self._clock = clock
        self._lock = Lock()  # programs without asyncio send from threads of their own
        self._writer: JournalWriter | None = None
        self._rows: list[Note] = []
        self._view: list[Note] = []  # the rows about the view so far, while nothing is written
        self._had: dict[MemberId, tuple[int, int]] = {}  # messages that the program was told meanwhile
        self._missed = False  # messages of that view were dropped
        self._over = False  # nothing more is written

    # What happens

    def deliver(self, note: Note) -> None:
        """A row of the machine of calls."""
        with self._lock:
            if self._writer is not None:
                self._rows.append(note)
            elif self._over:
                return
            elif note.kind != "call-view":
                self._begin()
                self._rows.append(note)
            elif note.level == "view":
                self._view = [note]
            else:
                self._view[1:] = [note]  # says all that the one before says

    def heard(self, each: Delivery) -> None:
        """The program is given something, in its place between the calls.

        Only what can never become obsolete: the others it may be spared.
        """
        if type(each) is Batch:
            if each.annotation is None and each.items is None:
                self._told("call-told", each.sender, each.first, len(each.payloads))
        elif type(each) is Skipped:
            with self._lock:
                self._missed = True
                if self._writer is not None:
                    self._rows.append(Note("call-missed"))
        elif type(each) is ViewChange and self._writer is None and not self._again(each):
            self._missed = False

    def _again(self, change: ViewChange) -> bool:
        """Whether that is the view so far: who was skipped is told of it once more."""
        return bool(self._view) and self._view[0].view == change.view.id

    def sent(self, first: int, count: int) -> None:
        """The program multicasts something that can never become obsolete. In any thread."""
        self._told("call-sent", self._member, first, count)

    def _told(self, kind: str, sender: MemberId, first: int, count: int) -> None:
        with self._lock:
            if self._writer is None:
                before = self._had.get(sender)
                self._had[sender] = (first if before is None else before[0], first + count - 1)
                return
            last = self._rows[-1] if self._rows else None
            if last is not None and (last.kind, last.sender, last.seq + last.count) == (kind, sender, first):
                self._rows[-1] = Note(kind, sender, last.seq, last.count + count)
            else:
                self._rows.append(Note(kind, sender, first, count))

    # Writing

    def _begin(self) -> None:
        try:
            self._writer = JournalWriter(self._folder, self._member, self._info)
        except OSError as error:
            self._give_up(error)
            return
        had = [
            Note("call-told", sender, first, last - first + 1) for sender, (first, last) in self._had.items()
        ]
        # In front of the view: with all between the first and the last, so none of it is a cause of anything.
        self._rows = [*had, *self._view, *([Note("call-missed")] if self._missed else [])]
        self._view, self._had = [], {}

    def flush(self) -> None:
        """What comes next may leave, or reach the program."""
        if self._rows:
            with self._lock:
                self._write()

    def _write(self) -> None:
        rows, self._rows = self._rows, []
        if rows and self._writer is not None:
            try:
                self._writer.append(self._clock(), [FamilyRow(row) for row in rows])
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        _LOG.warning("%s: its calls are recorded no more: %s", self._info.only.name, error)
        self._close_writer()
        self._over = True

    def restart(self, member: MemberId) -> None:
        """The program goes on as another member, whose journal is another."""
        self.close()
        with self._lock:
            self._member, self._view, self._had, self._missed = member, [], {}, False

    def end(self) -> None:
        """This member calls nobody any more."""
        self.close()

    def close(self) -> None:
        """The journal is whole."""
        with self._lock:
            self._write()
            self._close_writer()

    def _close_writer(self) -> None:
        writer, self._writer, self._rows = self._writer, None, []
        if writer is not None:
            with suppress(OSError):  # then it has no end, and that is how it is read
                writer.close(self._clock())


class StayingJournal(CallJournal):
    """Of a member that may leave the group and come back as the same: its journal goes on meanwhile."""

    idle = False
    """Whether it is out of the group."""

    def end(self) -> None:
        """It is, for now."""
        self.flush()
        self.idle = True


class RecordedDrafts(Drafts):
    """Drafts that are noted as causes of what this program answers later.

    Args:
        parts: what the member is made of.
        hand_over: gives messages to the member.
        hand_over_plain: the same for one that says nothing about others.
        hand_over_update: the same for one that updates an item.
        journal: of its calls.
    """

    def __init__(
        self,
        parts: Parts,
        hand_over: Callable[[Outgoing], None],
        hand_over_plain: Callable[[bytes], None],
        hand_over_update: Callable[[bytes, Item], None],
        journal: CallJournal,
    ) -> None:
        super().__init__(parts, hand_over, self._note_plain, hand_over_update)
        self._give_plain = hand_over_plain
        self._journal = journal

    def _note_plain(self, payload: bytes) -> None:
        self._journal.sent(self._next_seq, 1)
        self._give_plain(payload)

    def _number(self, outgoing: Outgoing) -> MessageId:
        if outgoing.annotation is None and outgoing.annotations is None:
            self._journal.sent(self._next_seq, len(outgoing.payloads))
        return super()._number(outgoing)
