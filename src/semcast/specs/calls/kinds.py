"""The rows that members write about calls.

A request is named by who asked and a number. Rows of one member are in the order of what it did. Of rows of
the caller the caller is the process; rows of who is asked have the caller in `sender`; `seq` is the number.
A text in `annotation` is plain, or an object of JSON where that is said.

- call-made: the program calls; how many replies it wants in `level` ("first", "majority", "all" or a number),
  the text says whom it asks ("all", "one" or a member);
- call-delivered: the caller delivers its own request, and expects answers of the `members` of a view;
- call-came: it delivers what a member says;
- call-heard: what a member says counts: "reply", "error" or "abstains" in `level`;
- call-departed: a member that was asked is gone;
- call-returned: the call returns: "complete", "too few" or "timeout" in `level`, and in the text (JSON) who
  is among `replies`, `errors`, `departed`, `missing` and `abstained`; or it ends without an answer: "left",
  "abandoned";
- call-asked: a request is delivered, in a view; the text says whom it is for;
- call-chosen: a request for one is this member's (`members`), by the rule;
- call-run: the program is given a request;
- call-said: it is answered: "reply", "error" or "abstains";
- call-view: the member is told of a view ("view" in `level`), or that it ends ("transitional"); the text
  (JSON) names who is `together` since the view before;
- call-sent, call-told: a program multicasts messages that have nothing to do with calls, or is given them:
  `count` of one `sender`, from `seq` on;
- call-missed: messages of this view were dropped before the program read them: not all that it was told is
  known.
"""

from semcast.history.events import Event
from semcast.history.schema import add_kind


def _numbered(event: Event) -> str | None:
    return None if event.seq >= 1 else f"{event.kind.value} without a number"


def _of_request(event: Event) -> str | None:
    return _numbered(event) if event.sender is not None else f"{event.kind.value} without a caller"


def _about_one(event: Event) -> str | None:
    if event.members is None or len(event.members) != 1:
        return f"{event.kind.value} is about one member"
    return _numbered(event)


def _view(event: Event) -> str | None:
    return None if event.view is not None and event.members else "a view without a number or members"


def _delivered(event: Event) -> str | None:
    return _view(event) or _numbered(event)


MADE = add_kind("call-made", ("seq", "count", "level", "annotation"), _numbered)
DELIVERED = add_kind("call-delivered", ("sender", "seq", "count", "view", "members"), _delivered)
CAME = add_kind("call-came", ("seq", "count", "members"), _about_one)
HEARD = add_kind("call-heard", ("seq", "count", "level", "members"), _about_one)
DEPARTED = add_kind("call-departed", ("seq", "count", "members"), _about_one)
RETURNED = add_kind("call-returned", ("seq", "count", "level", "annotation"), _numbered)
ASKED = add_kind("call-asked", ("sender", "seq", "count", "view", "annotation"), _of_request)
CHOSEN = add_kind("call-chosen", ("sender", "seq", "count", "members"), _about_one)
RUN = add_kind("call-run", ("sender", "seq", "count"), _of_request)
SAID = add_kind("call-said", ("sender", "seq", "count", "level"), _of_request)
VIEW = add_kind("call-view", ("sender", "view", "level", "members", "annotation"), _view)
SENT = add_kind("call-sent", ("sender", "seq", "count"), _of_request)
TOLD = add_kind("call-told", ("sender", "seq", "count"), _of_request)
MISSED = add_kind("call-missed", ())
