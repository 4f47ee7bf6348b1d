"""Where messages are sent and delivered, and where configurations begin (specifications 1.3 to 2.2)."""

from collections.abc import Iterator, Sequence

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import GONE, Kind
from semcast.specs.evs.configurations import Configuration, Configurations, Life, Stay, judge
from semcast.specs.verdict import Findings, Verdict


def evs_1_3_sent_before_in_same_configuration(history: History) -> Verdict:
    """1.3: what is delivered in c was sent in reg(c), by a member of it.

    Counts messages at each process; those delivered outside every configuration are for 2.2. What a sender
    may have sent after its recording was cut off does not count.
    """
    return judge("evs_1_3_sent_before_in_same_configuration", history, _find_strangers, told=True)


def evs_1_4_once(history: History) -> Verdict:
    """1.4: m is sent once, in a regular configuration, and no process delivers it in two configurations.

    Counts repeated sends, sends in transitional configurations, and for each process and message the
    configurations it was delivered in but for one.
    """
    return judge("evs_1_4_once", history, _find_again)


def evs_2_1_installed_by_all(history: History) -> Verdict:
    """2.1: where p stays in a configuration for good, so do all members of it.

    Counts pairs of such a process and a member that crashed, or is not there at the end.
    """
    return judge("evs_2_1_installed_by_all", history, _find_absent, at_the_end=True)


def evs_2_2_inside_configuration(history: History) -> Verdict:
    """2.2: everything happens inside a configuration, that the process is a member of, and it is the one.

    Counts messages sent or delivered before the first configuration or after a crash, or sent with another
    number than that of the configuration; configurations after a crash, without the process as a
    member, and transitional ones that do not follow the regular one they name or are no part of it;
    and crashes outside, but for a process whose application had not seen anything yet.
    """
    return judge("evs_2_2_inside_configuration", history, _find_outside)


def _find_strangers(known: Configurations, findings: Findings) -> None:
    for stay in known.stays:
        reg = stay.configuration.reg
        members = _members_of(reg, known.lives[stay.process], stay)
        wrong = sorted(
            part
            for part in stay.delivered
            if not (known.sent_in(part, reg) or known.evidence.beyond(known.parts.first(part)))
            or known.parts.sender(part) not in members
        )

        def case(message: MessageId, stay: Stay = stay, reg: Configuration = reg) -> tuple[str, list[Event]]:
            events = [*known.send_of(message), *known.find(Kind.DELIVER, stay.process, message)]
            return f"{message} was not sent by a member in {reg}, where {stay.process} delivered it", events

        known.report(findings, wrong, case)


def _members_of(reg: Configuration, life: Life, stay: Stay) -> frozenset[MemberId]:
    """The members of reg(c) as the process saw them; of c itself if it never saw reg(c)."""
    return next((s.members for s in life.com[reg] if s.configuration == reg), stay.members)


def _find_again(known: Configurations, findings: Findings) -> None:
    for event, part in known.resent:
        _report_resent(known, event, part, findings)
    for stay in known.stays:
        if not stay.configuration.regular:
            _report_late_sends(known, stay, findings)
    for life in known.lives.values():
        _find_in_two(known, life, findings)


def _report_resent(known: Configurations, event: Event, part: int, findings: Findings) -> None:
    known.report(findings, [part], lambda message: (f"{message} was sent again", [event.only(message.seq)]))


def _report_late_sends(known: Configurations, stay: Stay, findings: Findings) -> None:
    known.report(
        findings,
        sorted(stay.sent),
        lambda message: (f"{message} was sent in a {stay.configuration}", known.send_of(message)),
    )


def _find_in_two(known: Configurations, life: Life, findings: Findings) -> None:
    delivered: dict[int, set[Configuration]] = {}
    for stay in life.stays:
        for part in stay.delivered:
            delivered.setdefault(part, set()).add(stay.configuration)
    for part in sorted(part for part, places in delivered.items() if len(places) > 1):
        for _ in range(len(delivered[part]) - 1):
            known.report(
                findings,
                [part],
                lambda message: (
                    f"{life.process} delivered {message} in several configurations",
                    known.find(Kind.DELIVER, life.process, message),
                ),
            )


def _find_absent(known: Configurations, findings: Findings) -> None:
    for life in known.lives.values():
        if life.crashed or not life.stays:
            continue
        last = life.stays[-1]
        for process in sorted(last.members):
            other = known.life(process)
            if process in known.evidence.cut_off:
                continue
            if other.crashed or not other.stays or other.stays[-1].configuration != last.configuration:
                findings.count(1)
                events = [stay.event for stay in (last, *other.stays[-1:])]
                findings.example(f"{process} is not in {last.configuration}, {life.process} is", *events)


def _find_outside(known: Configurations, findings: Findings) -> None:
    for life in known.lives.values():
        for event, problem in _problems(known.rows[life.process]):
            report_row(findings, event, f"{life.process} {problem}")


def report_row(findings: Findings, event: Event, reason: str) -> None:
    """A row is wrong, or if it is about messages, each of them."""
    singles = range(event.seq, event.last + 1) if event.seq else None
    findings.count(1 if singles is None else len(singles))
    for seq in singles or (0,):
        if findings.full:
            break
        findings.example(reason, event if singles is None else event.only(seq))


_EVENTS = (Kind.VIEW, Kind.TRANSITIONAL, Kind.MULTICAST, Kind.DELIVER, *GONE)


def _problems(rows: Sequence[Event]) -> Iterator[tuple[Event, str]]:
    inside: Event | None = None
    seen = crashed = False
    for event in rows:
        if event.kind not in _EVENTS:
            continue
        problem = _problem(event, inside, seen=seen, crashed=crashed)
        if problem is not None:
            yield event, problem
        if event.kind in (Kind.VIEW, Kind.TRANSITIONAL):
            inside = event
        seen = True
        crashed = crashed or event.kind in GONE


def _problem(event: Event, inside: Event | None, *, seen: bool, crashed: bool) -> str | None:
    if crashed:
        return f"has a {event.kind.value} after its crash"
    match event.kind:
        case Kind.VIEW | Kind.TRANSITIONAL:
            return _change_problem(event, inside)
        case kind if kind in GONE:
            return "crashed outside every configuration" if inside is None and seen else None
    if inside is None:
        return f"has a {event.kind.value} outside every configuration"
    if event.kind is Kind.MULTICAST and event.view != inside.view:
        return f"sent in configuration {event.view} while it was in {inside.view}"
    return None


def _change_problem(event: Event, inside: Event | None) -> str | None:
    assert event.members is not None
    if event.process not in event.members:
        return f"is not a member of {event.kind.value} {event.view}"
    if event.kind is Kind.VIEW:
        return None
    if inside is None or inside.kind is not Kind.VIEW:
        return f"has a transitional configuration after {event.view} while in no regular one"
    if (event.view, event.sender) != (inside.view, inside.sender):
        return f"has a transitional configuration after {event.view} while in {inside.view}"
    assert inside.members is not None
    if not set(event.members) <= set(inside.members):
        return f"has a transitional configuration with others than the members of {event.view}"
    return None
