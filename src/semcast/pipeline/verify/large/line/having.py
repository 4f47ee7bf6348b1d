"""6.3 and 5 over all windows: what the line does not say, who has what, in a few passes.

All tables that come to the driver are by process, sender and configuration, or by window, or about the rest.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.verify.large.findings import Given
from semcast.pipeline.verify.large.line import agreed, causal
from semcast.pipeline.verify.large.line.agreed import Asker
from semcast.pipeline.verify.large.line.excuses import Excuses
from semcast.pipeline.verify.large.line.knots import Knots
from semcast.pipeline.verify.large.line.places import Places, crowd_of, lives_of
from semcast.pipeline.verify.large.line.ranks import Window
from semcast.pipeline.verify.large.line.rest import Straggler
from semcast.pipeline.verify.large.line.stages import Tell, told

MOST_ROUNDS = 6
"""So often what is asked for is asked for what it comes after."""

_SPAN = ("who", "reg", "author", "first", "last")
_KEYS = ("one", "two", "three", "four")
_TOP, _LOW = 0, 1

Rest = Mapping[str, list[Straggler]]
"""By run, what no reference delivered."""


class Having:
    """Who has what, in the runs that have a line."""

    def __init__(self, given: Given, windows: DataFrame, places: Places) -> None:
        self._scene = given.scene
        self._windows = windows
        self._places = places
        self._lives = lives_of(given.scene, places)
        self._excuses = Excuses(given)

    def disagreed(self, rest: Rest) -> DataFrame | None:
        """6.3: what is lacking where it was asked for: (who, author, first, last); None for nothing."""
        lives = self._lives_of(rest)
        tops, lows = self._tops_and_lows(lives)
        stragglers = [message for some in rest.values() for message in some]
        who = [self._scene.numbers[piece.who] for piece in self._scene.pieces]
        found = agreed.gather_tops(tops, stragglers, who, self._places.reg.tolist(), crowd_of(self._scene))
        rows = list(agreed.debts_of_rest(stragglers, lives, found))
        debts = [self._scene.table(rows, *_SPAN)] if rows else []
        asked = {asker: found.rank[asker] for asker, low in lows.items() if 2 * low < found.rank[asker]}
        if asked:
            debts.append(self._told(lambda window: agreed.debts_of(window, lives, asked), *_SPAN))
        return self._unpaid(debts)

    def disordered(
        self, lines: Mapping[str, Knots], rest: Rest
    ) -> tuple[dict[str, tuple[int, int]], set[str]]:
        """5: a process and spot where messages of one sender are out of order, by run.

        And the runs where the line cannot have the messages of each sender in order.
        """
        streams: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        columns = ("who", "author", "reg", "window", "low", "high")
        for row in self._told(causal.streams_of, *columns).collect():
            streams[self._run_of[row["who"]]].append(tuple(row))
        wrong = {run: causal.disordered(some) for run, some in streams.items() if run in lines}
        marks: dict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
        if any(rest.values()):
            for row in self._told(causal.marks_of, "author", "reg", "number", "rank").collect():
                author, reg, number, rank = row
                marks[self._run_of[author]].append((author, reg, number, rank))
        tangled = {
            run
            for run, line in lines.items()
            if rest[run]
            and Knots(line.paths, sends=True, extra=causal.successions(marks[run], rest[run])).walk.stuck
        }
        return {run: spot for run, spot in wrong.items() if spot is not None}, tangled

    def uncaused(self, rest: Rest) -> tuple[DataFrame | None, set[str]]:
        """5: what is lacking where it was asked for: (who, author, first, last); None for nothing.

        And the runs in which that goes on for too long.
        """
        lives = self._lives_of(rest)
        frontier = self._frontier(self._told(causal.frontier_of, "who", "reg", "author", "number"))
        going_on: dict[tuple[int, int, int], int] = {}
        for _ in range(MOST_ROUNDS):
            spots = self._spots(frontier)

            def cross(
                window: Window,
                asked: dict[tuple[int, int, int], int] = frontier,
                spots: dict[tuple[int, int, int], int] = spots,
            ) -> Iterable[tuple[int, ...]]:
                return causal.crossings_of(window, lives, asked, spots)

            going_on = self._frontier(self._told(cross, "who", "reg", "author", "number"))
            if not going_on:
                break
            frontier = frontier | going_on
        asked = frontier
        debts = self._told(lambda window: causal.causes_of(window, lives, asked), *_SPAN)
        return self._unpaid([debts]), {self._run_of[who] for who, _, _ in going_on}

    # passes

    def _told(self, tell: Tell, *columns: str) -> DataFrame:
        return told(self._windows, self._places, tell, *columns)

    def _tops_and_lows(self, lives: agreed.Lives) -> tuple[dict[tuple[int, int], int], dict[Asker, int]]:
        def tell(window: Window) -> Iterable[tuple[int, ...]]:
            for piece, who, rank in agreed.tops_of(window):
                yield _TOP, piece, who, 0, 0, rank
            for asker, rank in agreed.lows_of(window, lives):
                yield _LOW, *asker, -rank

        rows = (
            self._told(tell, "kind", *_KEYS, "rank").groupBy("kind", *_KEYS).agg(fn.max("rank").alias("rank"))
        )
        tops: dict[tuple[int, int], int] = {}
        lows: dict[Asker, int] = {}
        for kind, one, two, three, four, rank in rows.collect():
            if kind == _TOP:
                tops[one, two] = rank
            else:
                lows[one, two, three, four] = -rank
        return tops, lows

    def _frontier(self, rows: DataFrame) -> dict[tuple[int, int, int], int]:
        keys = ("who", "reg", "author")
        found = rows.groupBy(*keys).agg(fn.max("number").alias("number")).collect()
        return {(row["who"], row["reg"], row["author"]): row["number"] for row in found}

    def _spots(self, frontier: Mapping[tuple[int, int, int], int]) -> dict[tuple[int, int, int], int]:
        """Where the senders sent the last that is asked for."""
        wanted: dict[int, set[int]] = defaultdict(set)
        for (_, _, author), number in frontier.items():
            wanted[author].add(number)
        numbers = {author: sorted(some) for author, some in wanted.items()}
        rows = self._told(lambda window: causal.sends_of(window, numbers), "author", "number", "spot")
        spot = {(row["author"], row["number"]): row["spot"] for row in rows.collect()}
        return {key: spot[key[2], number] for key, number in frontier.items()}

    def _unpaid(self, debts: list[DataFrame]) -> DataFrame | None:
        some = [self._scene.keep(each) for each in debts]
        some = [each for each in some if not each.isEmpty()]
        if not some:
            return None
        whole = some[0] if len(some) == 1 else some[0].union(some[1])
        return self._excuses.unpaid(whole)

    # names

    @cached_property
    def _run_of(self) -> list[str]:
        return [run for run, _ in self._scene.everybody]

    def _lives_of(self, runs: Mapping[str, object]) -> dict[int, list[int]]:
        """Only those in these runs: of nobody else anything is asked."""
        return {reg: [who for who in some if self._run_of[who] in runs] for reg, some in self._lives.items()}
