"""The checkers of gossip and loggers, by hand: each lets a sound history pass, and catches a broken one."""

from itertools import count

import msgspec
import pytest

from semcast.core import Item, MemberId, MessageId
from semcast.history import Event, History, RunInfo
from semcast.history.schema import kind_named
from semcast.history.wellformed import problem
from semcast.specs import GOSSIP, GOSSIP_LOGS, Status

P, Q, L = MemberId("p"), MemberId("q"), MemberId("log")
LEAST, MOST = "at-least-once", "at-most-once"


class Script:
    """Rows of several processes, each later than the one before."""

    def __init__(self) -> None:
        self._at = count(1)
        self.rows: list[Event] = []

    def row(self, process: MemberId, kind: str, **columns: object) -> "Script":
        index = sum(1 for row in self.rows if row.process == process)
        event = Event(process, index, next(self._at), kind_named(kind), "g")
        event = msgspec.structs.replace(event, **columns)
        assert problem(event) is None, problem(event)
        self.rows.append(event)
        return self

    def about(self, process: MemberId, kind: str, *seqs: int, **columns: object) -> "Script":
        for seq in seqs:
            self.row(process, kind, sender=P, seq=seq, count=1, **columns)
        return self

    def start(self, process: MemberId, seq: int = 0, level: str = LEAST) -> "Script":
        return self.row(process, "start", sender=P, seq=seq, level=level)

    def opened(self, logger: MemberId = L, identity: int = 0, retention: str = "stable") -> "Script":
        return self.row(logger, "opened", order=identity, level=retention)

    def acknowledged(self, session: MemberId, seq: int) -> "Script":
        return self.row(L, "acknowledge", sender=P, seq=seq, members=(session,))

    def broken(self) -> set[str]:
        info = RunInfo.one("r", "g", "rpbcast", 1, (P, Q, L), None, uniform=False, quiesced=True)
        history = History(info, self.rows)
        return {name for name, checker in GOSSIP.items() if checker(history).status is Status.VIOLATED}


def sound() -> Script:
    """P sends three messages, which are logged, delivered by both, acknowledged and collected."""
    script = Script().opened().start(P).start(Q)
    script.about(P, "multicast", 1, 2, 3).about(P, "deliver", 1, 2, 3).about(L, "log", 1, 2, 3)
    script.about(P, "letgo", 1, 2, 3).about(Q, "deliver", 1, 2, 3)
    script.acknowledged(P, 3).acknowledged(Q, 3)
    return script.about(L, "collect", 1, 2, 3, level="stable")


def delivered() -> Script:
    """Both have delivered a message, and there is a log."""
    script = Script().opened(retention="live").start(P).start(Q).about(P, "multicast", 1)
    return script.about(P, "deliver", 1).about(Q, "deliver", 1)


def test_a_sound_history_passes() -> None:
    assert sound().broken() == set()


def test_delivered_before_the_start() -> None:
    script = Script().start(Q, 2).about(P, "multicast", 1, 2, 3).about(Q, "deliver", 2, 3)
    assert "gossip_start" in script.broken()


def test_logged_and_never_delivered() -> None:
    for retention in ("live", "limits"):
        script = Script().opened(retention=retention).start(P).start(Q)
        script.about(P, "multicast", 1, 2).about(P, "deliver", 1, 2).about(L, "log", 1, 2)
        script.about(Q, "deliver", 1)
        assert script.broken() == {"gossip_delivery", "gossip_agreement"}
        script.about(Q, "lost", 2, level="abandoned")
        assert script.broken() == {"gossip_delivery", "gossip_agreement"}
        script.about(Q, "lost", 2, level="expired")
        excused = retention == "limits"
        assert script.broken() == (set() if excused else {"gossip_delivery", "gossip_agreement"})


def test_a_replacement_will_do() -> None:
    script = Script().opened(retention="live").start(P).start(Q)
    for seq in (1, 2):
        script.row(P, "multicast", sender=P, seq=seq, count=1, annotation=Item("x"))
    script.about(P, "deliver", 1, 2).about(L, "log", 1, 2)
    script.about(Q, "purge", 1, by=MessageId(P, 2)).about(Q, "deliver", 2)
    assert script.broken() == set()


def test_purged_for_nothing() -> None:
    script = Script().start(P).start(Q).about(P, "multicast", 1, 2).about(P, "deliver", 1, 2)
    script.about(Q, "purge", 1, by=MessageId(P, 2)).about(Q, "deliver", 2)
    assert script.broken() == {"gossip_receipts"}


def test_a_silent_hole() -> None:
    script = Script().start(P).start(Q).about(P, "multicast", 1, 2).about(P, "deliver", 1, 2)
    assert script.about(Q, "deliver", 2).broken() == {"gossip_receipts"}


def test_nobody_agreed_to_what_was_delivered_while_away() -> None:
    """And a sender that is gone owes nobody anything."""
    script = Script().opened(retention="live").start(P).start(Q).start(MemberId("r"))
    script.about(P, "multicast", 1).row(P, "crash").row(Q, "disconnect").about(Q, "deliver", 1)
    assert script.broken() == set()
    script.row(Q, "reconnect").about(Q, "deliver", 2)
    assert "gossip_agreement" in script.broken()


def test_nobody_agreed_to_what_no_logger_heard_of_before_it_was_noticed() -> None:
    """A session notices late that it is away: the row says since when."""
    for silent in (0, 2):
        script = Script().opened(retention="live").start(P).start(Q).start(MemberId("r"))
        script.about(P, "multicast", 1).row(P, "crash").about(Q, "deliver", 1)
        script.row(Q, "disconnect", order=silent)
        assert ("gossip_agreement" in script.broken()) is (silent == 0)
        script.row(Q, "reconnect").about(Q, "deliver", 2)
        assert "gossip_agreement" in script.broken()


def test_not_logged() -> None:
    script = delivered()
    assert script.broken() == {"gossip_logged"}


def test_forgotten_before_it_was_logged() -> None:
    script = delivered()
    script.about(P, "letgo", 1).about(L, "log", 1)
    assert script.broken() == {"gossip_durable"}


@pytest.mark.parametrize("identity", [0, 1])
def test_a_logger_that_starts_again_has_it(identity: int) -> None:
    script = delivered()
    script.about(L, "log", 1).row(L, "crash")
    again = MemberId("log", 1)
    script.row(again, "recover").opened(again, identity, "live")
    assert script.broken() == ({"gossip_durable"} if identity == 0 else set())


def test_collected_before_all_had_it() -> None:
    script = Script().opened().start(P).start(Q).about(P, "multicast", 1).about(P, "deliver", 1)
    script.about(L, "log", 1).about(L, "collect", 1, level="stable").about(Q, "deliver", 1)
    assert script.broken() == {"gossip_collection"}


def test_who_was_refused_is_owed_nothing() -> None:
    """Gateway 92014: it had begun with its own messages, and its session was never admitted."""
    for refused in (False, True):
        script = Script().opened().start(P).start(Q).about(P, "multicast", 1)
        script.row(L, "admit", members=(P,), order=1)
        if refused:
            script.row(P, "left")
        script.about(L, "log", 1).about(Q, "deliver", 1).about(L, "collect", 1, level="stable")
        assert ("gossip_collection" in script.broken()) is not refused


def test_own_messages_are_kept_for_a_session_from_its_admission_on() -> None:
    """Gateway 40542: the only member sent while no logger knew of it, and the one that came back did not."""
    for admitted in (False, True):
        script = Script().opened().start(P).about(P, "multicast", 1).about(L, "log", 1)
        if admitted:
            script.row(L, "admit", members=(P,), order=1)
        script.about(L, "collect", 1, level="stable").about(P, "deliver", 1)
        assert ("gossip_collection" in script.broken()) is admitted


def test_never_collected() -> None:
    script = Script().opened().start(P).start(Q).about(P, "multicast", 1).about(P, "deliver", 1)
    script.about(L, "log", 1).about(Q, "deliver", 1)
    assert script.broken() == {"gossip_collected"}


@pytest.mark.parametrize("knows", [True, False])
def test_never_collected_because_a_leave_was_heard_by_a_forgotten_logger_alone(knows: bool) -> None:
    """The others cannot know of it: to them it is a session that is away."""
    other = MemberId("other")
    script = Script().opened().opened(other).start(P).start(Q)
    if knows:
        script.row(other, "left")
    script.row(L, "forgot", members=(other,))
    script.about(P, "multicast", 1).about(P, "deliver", 1).about(Q, "deliver", 1).about(L, "log", 1)
    script.row(Q, "leave").row(Q, "left")
    if not knows:
        script.row(other, "left")
    assert ("gossip_collected" in script.broken()) is knows


def ended(script: Script) -> Status:
    info = RunInfo.one("r", "g", "rpbcast", 1, (P, Q, L), None, uniform=False, quiesced=True)
    return GOSSIP_LOGS["gossip_ended"](History(info, script.rows)).status


@pytest.mark.parametrize("inactive", [True, False])
def test_a_session_whose_program_is_gone_ends_at_every_logger(inactive: bool) -> None:
    """Where that takes less than a run; and then nothing is kept for it."""
    other, kept = MemberId("other"), "stable+inactive" if inactive else "stable"
    script = Script().opened(retention=kept).opened(other, retention=kept).start(P)
    for logger in (L, other):
        script.row(logger, "admit", members=(Q,), order=1)
    script.start(Q)
    script.about(P, "multicast", 1).about(P, "deliver", 1).about(L, "log", 1).row(Q, "crash")
    script.row(L, "dismissed", members=(Q,))
    assert ended(script) is (Status.VIOLATED if inactive else Status.UNKNOWN)
    script.row(other, "dismissed", members=(Q,))
    assert ended(script) is (Status.HOLDS if inactive else Status.UNKNOWN)
    assert "gossip_collected" in script.broken()
    script.about(L, "collect", 1, level="stable")
    assert script.broken() == set()


def test_a_name_that_left_and_came_back_has_another_session() -> None:
    """Its program is there: nobody need end it because the former one is gone."""
    later = MemberId(Q.name, 1)
    script = Script().opened(retention="live+inactive").start(P).start(Q)
    script.row(L, "admit", members=(Q,), order=1).row(Q, "left").row(L, "dismissed", members=(Q,))
    script.row(L, "admit", members=(later,), order=1).start(later)
    assert ended(script) is Status.HOLDS


@pytest.mark.parametrize("over", [True, False])
def test_who_crashed_before_it_heard_that_it_had_left_has_another_session(over: bool) -> None:
    """If a logger had ended it before, as it asked: who never asked is owed all that came since."""
    later = MemberId(Q.name, 1)
    script = Script().opened().start(P).start(Q).row(L, "admit", members=(Q,), order=1)
    if over:
        script.row(Q, "leave").row(L, "dismissed", members=(Q,))
    script.row(Q, "crash").about(P, "multicast", 1).about(P, "deliver", 1).about(L, "log", 1)
    script.acknowledged(P, 1).about(L, "collect", 1, level="stable")
    script.row(L, "admit", members=(later,), order=1).start(later, 1)
    assert ({"gossip_collection", "gossip_delivery"} & script.broken() == set()) is over


def test_who_left_before_any_logger_heard_of_it_ended_nothing() -> None:
    """Its former session is there, and goes on with the next of its name: it begins where that was."""
    again, later = MemberId(Q.name, 1), MemberId(Q.name, 2)
    script = Script().opened().row(L, "admit", members=(Q,), order=1).start(P).start(Q).row(Q, "crash")
    script.about(P, "multicast", 1).about(L, "log", 1).about(P, "deliver", 1)
    script.row(again, "begin", level="new").row(again, "left")
    script.row(later, "begin", level="new").row(L, "admit", members=(later,), order=1).start(later)
    assert "gossip_delivery" in script.broken()
    script.about(later, "deliver", 1)
    info = RunInfo.one("r", "g", "rpbcast", 1, (P, Q, L), None, uniform=False, quiesced=True)
    beginning = GOSSIP_LOGS["gossip_beginning"](History(info, script.rows))
    assert beginning.status is Status.HOLDS


def test_what_nobody_knew_any_more_is_not_owed_after_a_lost_disk() -> None:
    """P is gone, its stream was on the lost disk, and Q began with the new log, which never heard of it."""
    other = MemberId("r")
    for late in (False, True):
        script = Script().opened().start(P).start(other).about(P, "multicast", 1).about(P, "deliver", 1)
        script.about(L, "log", 1).about(other, "deliver", 1).row(P, "crash")
        if not late:
            script.row(Q, "start", sender=Q, seq=0, level=LEAST)
        script.row(L, "crash").opened(MemberId(L.name, 1), identity=1)
        if late:
            script.row(Q, "start", sender=Q, seq=0, level=LEAST)
        assert ("gossip_agreement" in script.broken()) is not late


def test_a_session_that_was_ended_is_not_there() -> None:
    script = Script().opened(retention="live+inactive").start(P).start(Q)
    script.row(L, "admit", members=(Q,), order=1).row(L, "dismissed", members=(Q,))
    assert ended(script) is Status.VIOLATED
    script.row(Q, "left")
    assert ended(script) is Status.HOLDS


@pytest.mark.parametrize("mode", [LEAST, MOST])
def test_twice_after_a_crash(mode: str) -> None:
    script = Script().opened(retention="live").start(P).start(Q, level=mode).about(P, "multicast", 1)
    script.about(P, "deliver", 1).about(L, "log", 1).about(Q, "deliver", 1).row(Q, "crash")
    again = MemberId("q", 1)
    script.row(again, "recover").start(again, level=mode).about(again, "deliver", 1)
    assert script.broken() == ({"at_most_once"} if mode == MOST else set())


def test_twice_though_acknowledged() -> None:
    script = Script().opened(retention="live").start(P).start(Q).about(P, "multicast", 1)
    script.about(P, "deliver", 1).about(L, "log", 1).about(Q, "deliver", 1).acknowledged(Q, 1)
    again = MemberId("q", 1)
    script.row(Q, "crash").row(again, "recover").start(again).about(again, "deliver", 1)
    assert script.broken() == {"at_least_once"}


def test_a_sender_that_waits_for_nothing() -> None:
    script = sound()
    assert script.row(P, "blocked", level="program").broken() == set()
    assert script.row(P, "blocked", level="logger").broken() == {"gossip_progress"}


def test_members_that_are_wrong_about_others() -> None:
    """Where views have a representative, they are of members that find each other."""
    script = Script()
    script.row(P, "view", sender=P, view=1, members=(P, Q)).row(Q, "view", sender=Q, view=1, members=(Q,))
    assert script.broken() == {"gossip_members"}
    assert script.row(Q, "view", sender=Q, view=2, members=(P, Q)).broken() == set()


def test_two_ends_of_one_stream() -> None:
    other = MemberId("m")
    script = Script().opened(retention="live").row(L, "closed", sender=P, seq=3)
    script.row(other, "opened", order=1, level="live", count=1).row(other, "closed", sender=P, seq=3)
    assert script.broken() == set()
    assert script.row(other, "closed", sender=P, seq=2).broken() == {"gossip_closed"}


def test_forgotten_before_enough_loggers_had_it() -> None:
    other = MemberId("m")
    script = Script().row(L, "opened", order=1, level="live", count=2).start(P).about(P, "multicast", 1)
    script.about(P, "deliver", 1).about(L, "log", 1)
    assert "gossip_durable" in script.about(P, "letgo", 1).broken()
    script = Script().row(L, "opened", order=1, level="live", count=2).start(P).about(P, "multicast", 1)
    script.row(other, "opened", order=1, level="live", count=2)
    script.about(P, "deliver", 1).about(L, "log", 1).about(other, "log", 1).about(P, "letgo", 1)
    assert "gossip_durable" not in script.broken()


def test_a_session_that_begins_before_enough_loggers_have_it() -> None:
    other = MemberId("m")
    script = Script().row(L, "opened", order=1, level="live", count=2).row(L, "admit", members=(Q,), order=1)
    assert "gossip_admitted" in script.start(Q).broken()
    script = Script().row(L, "opened", order=1, level="live", count=2).row(L, "admit", members=(Q,), order=1)
    assert "gossip_admitted" not in script.row(other, "admit", members=(Q,), order=1).start(Q).broken()


def vouched(seq: int = 3, attempt: int = 2) -> Script:
    """P, which is a member, takes in Q."""
    script = Script().row(P, "joined", level="alone", order=2, seq=1).start(P)
    return script.row(P, "vouched", sender=P, seq=seq, members=(Q,), order=attempt)


def joined(script: Script, *sponsors: MemberId, wanted: int = 1, level: str = "sponsors") -> Script:
    return script.row(Q, "joined", level=level, members=sponsors, order=2, seq=wanted)


def test_who_sponsors_take_in_starts_where_they_said() -> None:
    """Property 5.2: after each of their words, and after nothing that none of them had heard of."""
    assert joined(vouched(), P).start(Q, 3).broken() == set()
    assert joined(vouched(), P).start(Q, 2).broken() == {"gossip_sponsored"}
    assert joined(vouched(), P).start(Q, 4).broken() == {"gossip_sponsored"}
    again = vouched().row(P, "vouched", sender=P, seq=5, members=(Q,), order=2)
    assert joined(again, P).start(Q, 4).broken() == set()
    later = vouched().row(P, "vouched", sender=L, seq=1, members=(Q,), order=2)
    for seq in (0, 1):  # it may have had the first answer, in which nothing was said of that stream
        early = joined(later, P).start(Q, 3).row(Q, "start", sender=L, seq=seq, level=LEAST)
        assert "gossip_sponsored" not in early.broken()
    unheard = joined(vouched(), P).row(Q, "start", sender=L, seq=1, level=LEAST)
    assert "gossip_sponsored" in unheard.broken()


def test_too_few_sponsors_or_answers_to_another_attempt() -> None:
    assert "gossip_sponsored" in joined(vouched(), P, wanted=2).start(Q, 3).broken()
    assert "gossip_sponsored" not in joined(vouched(), P, wanted=2, level="few").start(Q, 3).broken()
    assert "gossip_sponsored" in joined(vouched(attempt=1), P).start(Q, 3).broken()
    assert "gossip_sponsored" in joined(vouched(), P, L, wanted=2).start(Q, 3).broken()


def test_a_sponsor_that_was_no_member_itself() -> None:
    script = Script().row(P, "vouched", sender=P, seq=0, members=(Q,), order=2)
    assert script.broken() == {"gossip_sponsored"}
    script = Script().opened().row(L, "admit", members=(P,), order=1)
    assert "gossip_sponsored" not in script.row(P, "vouched", sender=P, seq=0, members=(Q,), order=2).broken()


def test_what_a_sponsored_session_is_owed_is_not_collected_unless_all_its_sponsors_crashed() -> None:
    def collected(script: Script) -> set[str]:
        script.about(P, "multicast", 1).about(P, "deliver", 1).about(L, "log", 1).about(P, "letgo", 1)
        return script.about(L, "collect", 1, level="stable").broken()

    other = MemberId("s")
    script = Script().opened().start(P).row(other, "joined", level="alone", order=2, seq=1)
    script.row(other, "vouched", sender=P, seq=0, members=(Q,), order=2)
    assert "gossip_collection" in collected(joined(script, other).start(Q))
    script = Script().opened().start(P).row(other, "joined", level="alone", order=2, seq=1)
    script.row(other, "vouched", sender=P, seq=0, members=(Q,), order=2)
    assert "gossip_collection" not in collected(joined(script, other).start(Q).row(other, "crash"))


def again(script: Script) -> Status:
    info = RunInfo.one("r", "g", "rpbcast", 1, (P, Q, L), None, uniform=False, quiesced=True)
    return GOSSIP_LOGS["gossip_again"](History(info, script.rows)).status


def restarted(explicit: bool = True) -> tuple[Script, MemberId]:
    """Q was given two messages, said that it is through with the first, was told so, and started again."""
    script, later = Script().opened().start(P).start(Q), MemberId(Q.name, 1)
    if explicit:
        script.row(Q, "explicit").row(later, "explicit")
    script.about(P, "multicast", 1, 2).about(L, "log", 1, 2).about(P, "deliver", 1, 2)
    script.about(Q, "deliver", 1, 2).row(Q, "through", sender=P, seq=1).row(Q, "assured", sender=P, seq=1)
    return script.row(Q, "crash").start(later, 1), later


def test_what_a_program_was_not_through_with_comes_again() -> None:
    script, later = restarted()
    assert again(script) is Status.VIOLATED
    assert again(script.about(later, "deliver", 2)) is Status.HOLDS


def test_what_a_program_takes_without_a_word_counts_as_dealt_with() -> None:
    script, _ = restarted(explicit=False)
    assert again(script) is Status.HOLDS


def test_what_a_program_was_told_to_be_acknowledged_does_not_come_again() -> None:
    script, later = restarted()
    assert again(script.about(later, "deliver", 1, 2)) is Status.VIOLATED


def test_what_is_on_no_disk_need_not_come_again() -> None:
    script, _ = restarted()
    script.rows = [row for row in script.rows if (row.kind.value, row.seq) != ("log", 2)]
    assert again(script) is Status.HOLDS


def test_what_was_acknowledged_on_a_lost_disk_is_not_judged() -> None:
    script, _ = restarted()
    assert again(script.opened(MemberId(L.name, 1), identity=1)) is Status.UNKNOWN
