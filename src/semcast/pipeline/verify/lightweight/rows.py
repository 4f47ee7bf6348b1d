"""The rows of daemons and clients, and what breaks a property in single rows and their neighbours."""

from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.core import Item, MemberId
from semcast.history import Event, History
from semcast.history.columns import SCHEMA
from semcast.history.schema import Kind
from semcast.pipeline.frames import MEMBER, TEXT, WHOLE, small_frame
from semcast.pipeline.verify.events import process
from semcast.pipeline.verify.forms import Given
from semcast.pipeline.verify.obligations import chunked
from semcast.pipeline.verify.violations import violations
from semcast.specs.lightweight.kinds import ASK, DELIVER, HEARD, LEFT, ORDERED, PLACED, PRIVATE, SESSION, VIEW
from semcast.specs.lightweight.story import story_of

LIFE = ["run", "process", "incarnation"]
MESSAGE = ["run", "sender", "sender_incarnation", "seq"]
_TEXT = (
    "group string, groups array<string>, view array<string>, views map<string,array<string>>,"
    "epoch array<string>, items array<string>"
)
_MEMBER = "struct<name:string,incarnation:bigint>"
_BIN = 64


class LightweightRows:
    """Some runs, with the outline of each."""

    def __init__(self, given: Given, known: Mapping[str, History]) -> None:
        self.given = given
        self.known = known
        self.all = given.rows.where(fn.col("run").isin(*known)).select(*SCHEMA.names)

    def of(self, runs: Iterable[str]) -> "LightweightRows":
        """Only of some."""
        some = {run: self.known[run] for run in runs}
        return self if len(some) == len(self.known) else LightweightRows(self.given, some)

    def text(self, name: str) -> Column:
        """What stands in the text of a row."""
        return fn.from_json("annotation.item", _TEXT).getField(name)

    @cached_property
    def clients(self) -> DataFrame:
        """All rows with `client`: who is told something, or asks for it."""
        told = is_kind(DELIVER, PRIVATE)
        return self.all.withColumn("client", fn.when(told, fn.get("members", fn.lit(0))).otherwise(_sender()))

    @cached_property
    def turns(self) -> DataFrame:
        """What daemons did and gave, with `turn`: the index of the request that it belongs to."""
        rows = self.all.where(is_kind(ORDERED, DELIVER))
        before = Window.partitionBy(*LIFE).orderBy("index").rowsBetween(Window.unboundedPreceding, 0)
        turn = fn.last(fn.when(is_kind(ORDERED), fn.col("index")), ignorenulls=True).over(before)
        return rows.withColumn("turn", fn.coalesce(turn, fn.lit(0)))

    @cached_property
    def stays(self) -> DataFrame:
        """Deliveries with `client`, by group (`of`), and the row of the view that they are in (`stay`).

        That is null where the client is in no view of the group.
        """
        told = self.clients.where(is_kind(DELIVER)).select("*", fn.explode(fn.map_keys(self.text("views"))))
        moves = self.clients.where(is_kind(VIEW, LEFT)).select("*", self.text("group").alias("col"))
        both = told.union(moves).withColumnRenamed("col", "of")
        before = Window.partitionBy("run", "client", "of").orderBy("process", "incarnation", "index")
        upto = before.rowsBetween(Window.unboundedPreceding, 0)
        entered = fn.when(is_kind(VIEW), fn.struct("process", "incarnation", "index"))
        last = fn.last(fn.when(is_kind(VIEW, LEFT), fn.struct(entered.alias("row"))), ignorenulls=True)
        marked = both.select("*", last.over(upto).getField("row").alias("stay"))
        return marked.where(is_kind(DELIVER))


def is_kind(*kinds: Kind) -> Column:
    """Whether a row is of one of these kinds."""
    return fn.col("kind").isin(*(kind.value for kind in kinds))


def _sender() -> Column:
    return fn.struct(fn.col("sender").alias("name"), fn.col("sender_incarnation").alias("incarnation"))


def place(rows: LightweightRows) -> Column:
    """Where a row is in the order of the daemons; this compares as places do."""
    epoch = rows.text("epoch")
    return fn.struct(
        epoch[0].cast("long").alias("number"),
        epoch[1].cast("long").alias("rest"),
        epoch[2].alias("name"),
        fn.coalesce("order", fn.lit(0)).alias("order"),
    )


def _cases(rows: DataFrame, name: str, reason: str, times: Column | None = None) -> DataFrame:
    """Rows (run, process, incarnation, index) as violations."""
    found = rows.select(
        "run",
        process().alias("process"),
        "index",
        fn.lit(None).cast(_MEMBER).alias("sender"),
        fn.lit(0).alias("first"),
        fn.lit(0).alias("last"),
        *([] if times is None else [times.alias("times")]),
    )
    return violations(
        found, name, reason, times=None if times is None else fn.col("times"), index=fn.col("index")
    )


def outside(rows: LightweightRows, name: str) -> DataFrame:
    """Deliveries in groups of which the client has no view."""
    wrong = rows.stays.where("stay is null").select(*LIFE, "index").distinct()
    return _cases(wrong, name, "a client is told something of a group before its first view there")


def not_growing(rows: LightweightRows, name: str) -> DataFrame:
    """Deliveries at or below the position of the one before, or of the sender's one before."""
    given = rows.clients.where(is_kind(DELIVER, PRIVATE)).withColumn("place", place(rows))
    order = ("process", "incarnation", "index")
    last = Window.partitionBy("run", "client").orderBy(*order)
    of_sender = Window.partitionBy("run", "client", "sender", "sender_incarnation").orderBy(*order)
    marked = given.select(
        *LIFE,
        "index",
        (fn.lag("place").over(last) >= fn.col("place")).alias("back"),
        (fn.lag(fn.col("seq") + fn.col("count") - 1).over(of_sender) >= fn.col("seq")).alias("again"),
    ).where("back or again")
    times = sum((fn.coalesce(fn.col(each).cast("int"), fn.lit(0)) for each in ("back", "again")), fn.lit(0))
    return _cases(marked, name, "positions do not grow at a client, or a message comes late or twice", times)


def sent_elsewhere(rows: LightweightRows, name: str) -> DataFrame:
    """Messages given in another view than they were sent in, or without an earlier one of the same view."""
    sent = rows.text("view")
    asked = rows.all.where(is_kind(ASK) & sent.isNotNull()).select(*MESSAGE, sent.alias("sent")).distinct()
    ordered = rows.all.where(is_kind(ORDERED)).select(*MESSAGE).distinct()
    nth = Window.partitionBy("run", "sender", "sender_incarnation", "sent").orderBy("seq")
    ranked = asked.join(ordered, MESSAGE, "left_semi").select(
        *MESSAGE, fn.row_number().over(nth).alias("rank")
    )
    known = asked.join(ranked, MESSAGE, "left")
    views = fn.map_values(rows.text("views")).alias("views")
    given = rows.clients.where(is_kind(DELIVER)).select(*LIFE, "index", *MESSAGE[1:], "client", views)
    by = Window.partitionBy("run", "client", "sender", "sender_incarnation", "sent")
    number = fn.row_number().over(by.orderBy("process", "incarnation", "index"))
    told = given.join(known, MESSAGE).select("*", number.alias("number"))
    elsewhere = fn.exists("views", lambda view: ~view.eqNullSafe(fn.col("sent")))
    gap = ~fn.col("rank").eqNullSafe(fn.col("number"))
    times = (elsewhere.cast("int") + gap.cast("int")).alias("times")
    wrong = told.select(*LIFE, "index", times).where("times > 0")
    reason = "a message is given in another view than it was sent in, or without an earlier one"
    return _cases(wrong, name, reason, fn.col("times"))


def of_the_gone(rows: LightweightRows, name: str) -> DataFrame:
    """What is done and given of clients that are gone."""
    gone: dict[tuple[str, MemberId, MemberId], int] = {}
    for run, known in rows.known.items():
        for row in story_of(known).rows(ORDERED):
            if row.event.level == "gone":
                gone.setdefault((run, row.event.process, row.client), row.event.index)
    about = is_kind(DELIVER) | (is_kind(ORDERED) & fn.col("level").isin("cast", "private"))
    wrong = rows.all.where(about).join(*_since(rows, gone, _sender()))
    return _cases(wrong.select(*LIFE, "index"), name, "a client is gone, and still there")


def _pair(member: MemberId) -> tuple[str, int]:
    return member.name, member.incarnation


def after_the_end(rows: LightweightRows, name: str) -> DataFrame:
    """What clients do or are given after their sessions end, and hear after they heard so."""
    ended: dict[tuple[str, MemberId, MemberId], int] = {}
    for run, known in rows.known.items():
        for row in story_of(known).rows(SESSION):
            if row.event.level != "came":
                ended.setdefault((run, row.event.process, row.client), row.event.index)
    asked = is_kind(ASK) & fn.col("level").isin("cast", "private")
    deeds = rows.clients.where(asked | is_kind(DELIVER, PRIVATE, PLACED))
    late = deeds.join(*_since(rows, ended, fn.col("client"))).select(*LIFE, "index")
    before = Window.partitionBy("run", "client").orderBy("process", "incarnation", "index")
    out = fn.max(fn.col("level") == "out").over(before.rowsBetween(Window.unboundedPreceding, -1))
    heard = rows.clients.where(is_kind(HEARD)).select(*LIFE, "index", out.alias("out")).where("out")
    return _cases(late.union(heard.select(*LIFE, "index")), name, "a client is out, and goes on")


def _since(
    rows: LightweightRows, ends: Mapping[tuple[str, MemberId, MemberId], int], client: Column
) -> tuple[DataFrame, Column]:
    """To join rows with what ended before them: at a daemon, of a client."""
    table = small_frame(
        rows.given.run_index.spark,
        {"of": TEXT, "daemon": MEMBER, "whose": MEMBER, "since": WHOLE},
        [(run, _pair(daemon), _pair(each), index) for (run, daemon, each), index in ends.items()],
    )
    same = (fn.col("run") == fn.col("of")) & (process() == fn.col("daemon")) & (client == fn.col("whose"))
    return fn.broadcast(table), same & (fn.col("index") > fn.col("since"))


def lost_or_unplaced(rows: LightweightRows, name: str) -> DataFrame:
    """What is done twice, said to have a place that is not there, never done, or placed and lost."""
    keep = rows.given.run_index.keep
    here = [*LIFE, *MESSAGE[1:]]
    steps = rows.all.where(is_kind(ORDERED) & (fn.col("seq") > 0)).groupBy(*here)
    done = keep(steps.agg(fn.min("index").alias("done"), fn.count(fn.lit(1)).alias("times")))
    twice = done.where("times > 1").withColumn("index", fn.col("done"))
    asked = rows.all.where(is_kind(ASK)).select(
        *here, "index", (fn.col("seq") + fn.col("count") - 1).alias("last")
    )
    living = fn.broadcast(_living(rows))
    idle = asked.join(living, LIFE, "left_semi").join(done, here, "left_anti")
    placed = keep(_placed(rows, asked).join(done.select(*here, "done"), here, "left"))
    unplaced = placed.where("done is null or done > told")
    kept = done.join(living, LIFE, "left_semi").select(*MESSAGE).distinct()
    by_living = placed.join(living.select("run", process().alias("holder")), ["run", "holder"], "left_semi")
    lost = by_living.join(kept, MESSAGE, "left_anti").dropDuplicates(MESSAGE)
    return (
        _cases(twice, name, "a daemon does a request twice", fn.col("times") - 1)
        .union(_cases(idle, name, "a client asked, and nothing came of it"))
        .union(
            _cases(
                unplaced.dropDuplicates([*here, "index", "told"]),
                name,
                "a client is told of a place that is not there",
            )
        )
        .union(_cases(lost, name, "a request was placed and is lost"))
    )


def _living(rows: LightweightRows) -> DataFrame:
    """The daemons that are there at the end, of runs that came to rest: (run, process, incarnation)."""
    alive = [
        (run, each.name, each.incarnation)
        for run, known in rows.known.items()
        if known.info.quiesced
        for each in story_of(known).alive
    ]
    types = {"run": TEXT, "process": TEXT, "incarnation": WHOLE}
    return small_frame(rows.given.run_index.spark, types, alive)


def _placed(rows: LightweightRows, asked: DataFrame) -> DataFrame:
    """Requests, each with the row that says it has a place (`told`) and one who has it (`holder`)."""
    client = [*LIFE, *MESSAGE[1:3]]
    before = fn.lag("seq").over(Window.partitionBy(*client).orderBy("index"))
    said = rows.all.where(is_kind(PLACED)).select(
        *client,
        (fn.coalesce(before, fn.lit(0)) + 1).alias("first"),
        fn.col("seq").alias("last"),
        fn.col("index").alias("told"),
        "members",
    )
    spans = chunked(said.where("first <= last"), chunk=_BIN)
    points = asked.withColumn("chunk", fn.expr(f"last div {_BIN}")).withColumnRenamed("last", "upto")
    covered = points.join(spans, [*client, "chunk"]).where("upto between first and last and index < told")
    return covered.select(*client, "seq", "index", "told", fn.explode_outer("members").alias("holder"))


def with_stays(rows: LightweightRows) -> dict[str, list[Event]]:
    """Of each run its outline, in which what a client was given in a view of a group is one message.

    That is named by a sum of hashes over all messages and their places there.
    """
    stay = ["run", "client", "of", "stay"]
    nth = fn.row_number().over(Window.partitionBy(*stay).orderBy("process", "incarnation", "index"))
    given = rows.stays.where("stay is not null").select(
        *stay, fn.xxhash64("sender", "sender_incarnation", "seq", nth).alias("print")
    )
    whole = fn.sum(fn.col("print").cast("decimal(38,0)"))
    sums = given.groupBy(*stay).agg(whole.alias("print"), fn.count(fn.lit(1)).alias("given")).collect()
    found = {run: list(known.events) for run, known in rows.known.items()}
    for row in sums:
        who, view = row["client"], row["stay"]
        text = msgspec.json.encode({"views": {row["of"]: None}}).decode()
        found[row["run"]].append(
            Event(
                MemberId(view["process"], view["incarnation"]),
                view["index"],
                0,
                DELIVER,
                "",
                MemberId(f"{row['print']}"),
                row["given"],
                1,
                annotation=Item(text),
                order=0,
                members=(MemberId(who["name"], who["incarnation"]),),
            )
        )
    # A view comes before what is given in it.
    return {
        run: sorted(events, key=lambda event: (event.index, event.kind is DELIVER))
        for run, events in found.items()
    }
