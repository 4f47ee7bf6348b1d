"""Who owes what: who goes on from a view has all that precedes what it delivered there (Pereira 2002, 4.6).

Of each sender it owes a beginning of what was multicast there. What precedes the highest message of a sender
that it delivered is all that precedes any of them, so few messages are asked about.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from pyspark.sql import DataFrame

from semcast.pipeline.verify.large.causal.arrays import Ints, by_key, groups
from semcast.pipeline.verify.large.causal.ground import TooMuchError
from semcast.pipeline.verify.large.causal.heard import heard
from semcast.pipeline.verify.large.causal.pasts import Pasts
from semcast.pipeline.verify.large.causal.strips import Strip
from semcast.pipeline.verify.scene import Scene
from semcast.specs.vsync.views import views_of

MOST_DEBTS = 5_000_000
_CIRCLE = "precedence runs in a circle"
_ANSWER = ("question", "seat", "value")
_NONE = np.zeros((3, 0), np.int64)
_DEBT = ("stay", "author", "upto")


@dataclass(frozen=True, slots=True)
class Owed:
    """Debts, and runs of which they are not known."""

    debts: DataFrame
    """(stay, author, upto): what the author multicast in the view of the stay, up to this number."""

    unknown: Mapping[str, str] = field(default_factory=dict)
    """By run, why."""


def owed_in(scene: Scene, pasts: Pasts) -> Owed:
    """The debts in all views of a scene, given what precedes what; raises TooMuchError."""
    stays = scene.stays
    going_on = {
        stays.number(run, stay)
        for run, known in stays.runs.items()
        for stay in known.stays
        if views_of(stays.histories[run]).closed(stay)
    }
    unknown = pasts.unknown | dict.fromkeys(sorted(pasts.circles), _CIRCLE)
    return Owed(scene.table(debts(pasts, going_on), *_DEBT), unknown)


def debts(pasts: Pasts, going_on: Collection[int]) -> Iterator[tuple[int, int, int]]:
    """The debts (stay, author, upto) of stays; raises TooMuchError."""
    course, ground = pasts.course, pasts.field.ground
    judged = {pasts.course.paths[path].scope for path in pasts.open()}
    stays = [
        stay for stay in sorted(course.highest) if stay in going_on and int(ground.scope[stay]) in judged
    ]
    questions: dict[tuple[int, int], int] = {}
    asked: dict[int, list[int]] = {}
    for stay in stays:
        authors, latest = ground.seats[ground.scope[stay]], course.highest[stay]
        for seat in np.flatnonzero(latest).tolist():
            message = (int(authors[seat]), int(latest[seat]))
            asked.setdefault(stay, []).append(questions.setdefault(message, len(questions)))
    answers = _answers(pasts, list(questions))
    for stay in stays:
        upto = np.maximum.reduce([course.highest[stay] - 1, *(answers[each] for each in asked.get(stay, ()))])
        for seat in np.flatnonzero(upto > 0).tolist():
            yield stay, int(ground.seats[ground.scope[stay]][seat]), int(upto[seat])


def _answers(pasts: Pasts, messages: list[tuple[int, int]]) -> list[Ints]:
    """What precedes messages, as vectors."""
    course = pasts.course
    where = [int(course.holding(author, np.array([seq]))[0]) for author, seq in messages]
    asked: dict[int, list[int]] = {}
    for question, number in enumerate(where):
        asked.setdefault(number, []).append(question)

    rumours = by_key(pasts.rumours)

    def answer(number: int, strip: Strip) -> Ints:
        here = np.array(asked.get(number, []), np.int64)
        sends = strip.sent
        seq = np.array([messages[question][1] for question in here], np.int64)
        rows = sends[np.searchsorted(strip.first[sends], seq, side="right") - 1] if len(here) else sends[:0]
        vectors = heard(strip, course.start[number])[rows]
        _add_rumours(vectors, strip.index[rows], rumours.get(course.path[number], _NONE))
        n, seat = np.nonzero(vectors)
        return np.stack((here[n], seat, vectors[n, seat]))

    paths = {course.path[number] for number in where}
    found = pasts.field.along(paths, answer, _ANSWER, MOST_DEBTS)
    if found.shape[1] > MOST_DEBTS:
        raise TooMuchError(f"there are more than {MOST_DEBTS} debts")
    vectors = [np.zeros(len(course.start[number]), np.int64) for number in where]
    for question, seat, value in found.T.tolist():
        vectors[question][seat] = value
    return vectors


def _add_rumours(vectors: Ints, index: Ints, rumours: Ints) -> None:
    """What was heard of before rows; rumours (seat, index, value) are in order."""
    for part in groups(rumours[0]):
        seat, since, value = rumours[:, part]
        latest = np.searchsorted(since, index, side="left")
        known = np.concatenate(([0], value))[latest]
        vectors[:, seat[0]] = np.maximum(vectors[:, seat[0]], known)
