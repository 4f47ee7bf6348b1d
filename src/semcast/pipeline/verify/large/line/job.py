"""The order of everything in runs that are too large for memory: the form of 1.1, 2.3, 2.4, 5 and 6."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.history.schema import Kind
from semcast.pipeline.frames import TEXT, WHOLE, small_frame
from semcast.pipeline.verify.large.findings import Findings, Given, Wanted
from semcast.pipeline.verify.large.line import stages
from semcast.pipeline.verify.large.line.having import Having
from semcast.pipeline.verify.large.line.knots import Knots
from semcast.pipeline.verify.large.line.outcome import (
    AGREED,
    CAUSAL,
    CUT_AFTER,
    ENDLESS,
    LOOSE,
    MOST_BLOCKS,
    NO_LINE,
    ORDER,
    TANGLED,
    TOO_MUCH,
    Outcome,
    outcome,
)
from semcast.pipeline.verify.large.line.places import (
    REG_BITS,
    ROW_BITS,
    Places,
    crowd_of,
    entries_of,
    places_of,
    regs_of,
)
from semcast.pipeline.verify.large.line.rest import Straggler, stragglers
from semcast.pipeline.verify.large.line.windows import windows
from semcast.pipeline.verify.moves import with_author, with_number
from semcast.pipeline.verify.scene import numbered_violations
from semcast.pipeline.verify.violations import COLUMNS


def judge_line(given: Given, wanted: Wanted) -> Findings:
    """Judge what is wanted of runs by their line."""
    return _Line(given, wanted).judge()


class _Line:
    """The lines of some runs."""

    def __init__(self, given: Given, wanted: Wanted) -> None:
        self._given = given
        self._scene = given.scene
        self._keep = given.scene.keep
        self._wanted = wanted
        self._found = Findings()
        self._broken: list[tuple[int, int, str, str]] = []

    def judge(self) -> Findings:
        if len(regs_of(self._scene)) >= (1 << REG_BITS) - 1:
            everything = ((run, name) for run, names in self._wanted.items() for name in names)
            return Findings(unknown=dict.fromkeys(everything, "more configurations than can be ordered here"))
        outcomes = self._outcomes()
        for run, name in self._named(ORDER):
            result = outcomes[run]
            if name in result.unknown:
                self._found.unknown[run, name] = result.unknown[name]
            elif name in result.broken:
                (who, index), reason = result.broken[name]
                self._broken.append((who, index, name, reason))
        self._judge_having(outcomes)
        if self._broken:
            self._found.violations.append(self._shown(self._broken))
        return self._found

    def _named(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Runs with what is wanted of them, among these."""
        return ((run, name) for run, some in self._wanted.items() for name in some if name in names)

    def _judge_having(self, outcomes: Mapping[str, Outcome]) -> None:
        # Where they replace each other in circles, or one is not told of, nothing is said of them anyway.
        doubtful = self._given.circular | self._given.untold
        having = Having(self._given, self._windows, self._places)
        rest: dict[str, dict[str, list[Straggler]]] = {AGREED: {}, CAUSAL: {}}
        for run, name in self._named((AGREED, CAUSAL)):
            result = outcomes[run]
            line = result.deliveries if name == AGREED else result.line
            some = None if line is None or result.loose else stragglers(line, self._places)
            if run in doubtful:
                continue
            if some is not None:
                rest[name][run] = some
            else:
                why = LOOSE if line is not None else result.unknown.get(CUT_AFTER, NO_LINE)
                self._found.unknown[run, name] = why
        self._judge_overtaken(outcomes)
        if rest[AGREED]:
            self._lacking(AGREED, having.disagreed(rest[AGREED]))
        if rest[CAUSAL]:
            lines = {run: line for run in rest[CAUSAL] if (line := outcomes[run].line) is not None}
            self._judge_causal(having, lines, rest[CAUSAL])

    def _judge_overtaken(self, outcomes: Mapping[str, Outcome]) -> None:
        """6.3 where there is no line: some deliveries break it by themselves."""
        doubtful = [run for run, _ in self._named((AGREED,)) if outcomes[run].overtaken]
        spots = [spot for run in doubtful for spot in outcomes[run].overtaken]
        if not spots:
            return
        table = fn.broadcast(self._scene.table(spots, "who", "index"))
        rows = with_author(with_number(self._scene.events, self._scene.people, "process"), self._scene.people)
        crowd = crowd_of(self._scene)
        for row in rows.join(table, ["who", "index"]).select("run", "who", "index", "author").collect():
            piece = int(self._places.piece(row["who"], np.array([row["index"]]))[0])
            if row["author"] in crowd[piece]:
                self._found.unknown.pop((row["run"], AGREED), None)
                self._broken.append(
                    (row["who"], row["index"], AGREED, "delivered after what others have later")
                )

    def _judge_causal(
        self, having: Having, lines: dict[str, Knots], rest: dict[str, list[Straggler]]
    ) -> None:
        wrong, tangled = having.disordered(lines, rest)
        for who, spot in wrong.values():
            self._broken.append((who, spot >> ROW_BITS, CAUSAL, "messages of one sender out of order"))
        self._found.unknown |= {(run, CAUSAL): TANGLED for run in tangled - wrong.keys()}
        left = {run: some for run, some in rest.items() if run not in tangled | wrong.keys()}
        if left:
            lacking, endless = having.uncaused(left)
            self._found.unknown |= {(run, CAUSAL): ENDLESS for run in endless}
            self._lacking(CAUSAL, lacking)

    def _lacking(self, name: str, lacking: DataFrame | None) -> None:
        if lacking is not None:
            found = numbered_violations(lacking, name, "neither it nor a replacement before a later one")
            self._found.violations.append(self._scene.named(found))

    # tables

    @cached_property
    def _places(self) -> Places:
        rows = self._scene.delivered.groupBy("piece").agg(
            fn.sum(fn.expr("last - first + 1")).alias("messages")
        )
        return places_of(self._scene, {row["piece"]: row["messages"] for row in rows.collect()})

    @cached_property
    def _windows(self) -> DataFrame:
        return self._keep(windows(self._scene))

    def _outcomes(self) -> dict[str, Outcome]:
        """What the paths of each run say."""
        blocks = self._keep(stages.blocks(stages.items(self._windows, self._places), self._places))
        run_of = [run for run, _ in self._scene.everybody]
        sizes: dict[str, int] = defaultdict(int)
        for row in blocks.groupBy("who").agg(fn.sum("size").alias("size")).collect():
            sizes[run_of[row["who"]]] += row["size"]
        few = {run for run in self._wanted if sizes[run] <= MOST_BLOCKS}
        chosen = [(who,) for who, run in enumerate(run_of) if run in few]
        rows = blocks.join(fn.broadcast(self._scene.table(chosen, "who")), "who", "left_semi").collect()
        paths = stages.by_process(
            (row["who"], row["stretch"], row["size"], bytes(row["steps"])) for row in rows
        )
        entries = entries_of(self._scene)
        found = {run: Outcome(unknown=dict.fromkeys(ORDER, TOO_MUCH)) for run in self._wanted}
        for run in few:
            mine = {who: some for who, some in paths.items() if run_of[who] == run}
            found[run] = outcome(mine, entries[run])
        return found

    # names

    def _shown(self, broken: list[tuple[int, int, str, str]]) -> DataFrame:
        """Violations at rows (who, index), with the message that the row is about first."""
        table = small_frame(
            self._scene.spark, {"who": WHOLE, "index": WHOLE, "property": TEXT, "reason": TEXT}, broken
        )
        rows = with_number(self._scene.events, self._scene.people, "process")
        is_message = fn.col("kind").isin(Kind.MULTICAST.value, Kind.DELIVER.value)
        seq = fn.when(is_message, fn.col("seq")).otherwise(0)
        return (
            rows.join(fn.broadcast(table), ["who", "index"])
            .withColumns(
                {
                    "sender": fn.when(is_message, fn.col("sender")),
                    "first": seq.cast("long"),
                    "last": seq.cast("long"),
                    "times": fn.lit(1).cast("long"),
                }
            )
            .select(*COLUMNS)
        )
