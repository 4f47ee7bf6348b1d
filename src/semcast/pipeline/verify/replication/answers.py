"""What servers told clients: the rows in doubt (`judge.py`) about answers and reads."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history.schema import Kind
from semcast.pipeline.verify.obligations import chunked
from semcast.pipeline.verify.replication.rows import (
    BIN,
    CREATOR,
    LIFE,
    ROW,
    TEXT,
    actions,
    furthest_answers,
    green,
    is_kind,
    meeting,
    operators,
    span,
    strict,
    these,
    without_operator,
)
from semcast.specs.replication.answers import PRIMARY
from semcast.specs.replication.kinds import (
    COLOUR,
    DONE,
    DURABLE,
    GREEN,
    PHASE,
    REPLY,
    REQUEST,
    SNAPSHOT,
    STORE,
)
from semcast.specs.replication.ledger import ANSWERS


def _given_up(rows: DataFrame) -> DataFrame:
    """Where an operator gave up servers, every answer, request and place: some do not count."""
    runs = fn.broadcast(operators(rows).select("run").distinct())
    return rows.where(is_kind(REPLY, REQUEST) | green()).join(runs, "run", "left_semi").select(*rows.columns)


def weak_otherwise(rows: DataFrame) -> DataFrame:
    """Weak reads that show something else than the disk had, each with what the disk had."""
    known = rows.where(is_kind(STORE, DURABLE) | (is_kind(REPLY) & (fn.col("level") == "weak")))
    before = Window.partitionBy(*LIFE).orderBy("index").rowsBetween(Window.unboundedPreceding, -1)
    line = fn.when(~is_kind(REPLY), fn.struct(fn.coalesce("order", fn.lit(0)).alias("order"), "index"))
    marked = known.withColumn("line", fn.last(line, ignorenulls=True).over(before))
    text = fn.coalesce(TEXT, fn.lit(""))
    wrong = marked.where(is_kind(REPLY) & ((fn.col("order") != fn.col("line.order")) | (text != "")))
    lines = wrong.select(*LIFE, fn.col("line.index").alias("index"))
    return wrong.select(*rows.columns).union(these(rows, lines))


def session_behind(rows: DataFrame) -> DataFrame:
    """Session reads below the highest answer that their client had, each with that answer and its request."""
    asked = rows.where(is_kind(REQUEST) & (fn.size("members") > 0))
    client = fn.get("members", fn.lit(0)).getField("name").alias("client")
    single = asked.select(*CREATOR, "seq", client)
    answers = rows.where(strict()).join(single, [*CREATOR, "seq"])
    reads = rows.where(is_kind(REPLY) & (fn.col("level") == "session")).select("*", client)
    columns = ("run", "client", "at_ns", "order", fn.struct(*ROW).alias("row"))
    told = answers.select(*columns, fn.lit(True).alias("answer"))
    both = told.union(reads.select(*columns, fn.lit(False)))
    seen = _below_what_was_answered(both, ["run", "client"])
    best = these(rows, seen.select("best.*"))
    context = best.union(meeting(asked, actions(best)))
    return these(rows, seen.select("row.*")).union(context).union(_given_up(rows))


def answered_before(rows: DataFrame) -> DataFrame:
    """Requests with a place below an earlier answer, each with that answer, and all their places."""
    requests, places = rows.where(is_kind(REQUEST)), rows.where(green())
    cut = chunked(requests.select(*ROW, *CREATOR[1:], "at_ns", *span("seq")), chunk=BIN)
    shift = (fn.col("order") - fn.col("seq")).alias("shift")
    given = chunked(places.select(*CREATOR, shift, *span("seq")), chunk=BIN)
    given = given.withColumnsRenamed({"first": "from", "last": "upto"})
    met = cut.join(given, [*CREATOR, "chunk"]).where("first <= upto and from <= last")
    lowest = fn.min(fn.greatest("first", "from") + fn.col("shift")).alias("order")
    placed = met.groupBy(*ROW, "at_ns").agg(lowest)
    columns = ("run", "at_ns", "order", fn.struct(*ROW).alias("row"))
    told = rows.where(strict()).select(*columns, fn.lit(True).alias("answer"))
    seen = _below_what_was_answered(told.union(placed.select(*columns, fn.lit(False))), ["run"])
    found = these(rows, seen.select("row.*"))
    context = these(rows, seen.select("best.*")).union(meeting(places, actions(found)))
    return found.union(context).union(_given_up(rows))


def _below_what_was_answered(told: DataFrame, keys: list[str]) -> DataFrame:
    """Of rows (*keys, at_ns, order, row, answer) that are no answers those below an earlier one, `best`."""
    earlier = Window.partitionBy(*keys).orderBy("at_ns").rangeBetween(Window.unboundedPreceding, -1)
    position = fn.coalesce("order", fn.lit(0)).alias("order")
    highest = fn.max(fn.when(fn.col("answer"), fn.struct(position, "row"))).over(earlier)
    marked = told.withColumn("highest", highest).where("not answer")
    below = marked.where(fn.coalesce("order", fn.lit(0)) < fn.col("highest.order"))
    return below.select("row", fn.col("highest.row").alias("best"))


def answered_and_lost(rows: DataFrame) -> DataFrame:
    """Answers about what is not known to be done, with who asked for it, and where it was done."""
    answers = rows.where(is_kind(REPLY) & fn.col("level").isin(*ANSWERS))
    requests, done = rows.where(is_kind(REQUEST)), rows.where(is_kind(DONE))
    client = fn.get("members", fn.lit(0)).alias("client")
    asked = requests.where(fn.size("members") > 0).select(*CREATOR, "seq", client)
    known = answers.join(asked, [*CREATOR, "seq"], "left")
    for_clients = _counted(rows, done).select("run", client).distinct()
    lost = known.where("client is not null").join(for_clients, ["run", "client"], "left_anti")
    placed = meeting(answers, actions(_counted(rows, rows.where(green()))))
    others = known.where("client is null").join(placed.select(*ROW), ROW, "left_anti")
    furthest = furthest_answers(rows)  # they are in every outline, so they are judged anyway
    places = lost.select(*ROW).union(others.select(*ROW)).union(furthest)
    doubtful = these(rows, places)
    about = actions(doubtful)
    clients = known.join(places.distinct(), ROW, "left_semi").select("run", "client").distinct()
    theirs = done.select("*", client).join(clients, ["run", "client"], "left_semi").select(*rows.columns)
    return doubtful.union(meeting(requests, about)).union(meeting(rows.where(green()), about)).union(theirs)


def _counted(rows: DataFrame, some: DataFrame) -> DataFrame:
    """Those that stand for ever: of a server that did not crash, or that it had on its disk or answered."""
    line = fn.when(strict() | is_kind(STORE, DURABLE), fn.coalesce("order", fn.lit(0)))
    known = rows.where(strict() | is_kind(STORE, DURABLE, Kind.CRASH))
    upto = known.groupBy(*LIFE).agg(fn.max(line).alias("upto"), fn.max(is_kind(Kind.CRASH)).alias("crashed"))
    counted = some.join(fn.broadcast(upto), LIFE).where("not crashed or order <= upto")
    return without_operator(rows, counted.select(*some.columns))


def dirty_otherwise(rows: DataFrame) -> DataFrame:
    """Dirty reads that show reds, or should, or another line than that of the disk, each with all it knew."""
    dirty = is_kind(REPLY) & (fn.col("level") == "dirty")
    known = _knowing(rows, dirty)
    text = fn.coalesce(TEXT, fn.lit(""))
    in_primary = (fn.col("phase.level") == PRIMARY) | (fn.col("reds") == 0)
    at_rest = in_primary & (text == "") & fn.col("order").eqNullSafe(fn.col("line.order"))
    doubtful = known.where(~fn.coalesce(at_rest, fn.lit(False)))
    return _with_reds(rows, doubtful)


def made_too_early(rows: DataFrame) -> DataFrame:
    """Requests outside of a primary at a server that knew reds, or of a client that had seen some."""
    known = _knowing(rows, is_kind(REQUEST))
    seen = fn.coalesce(TEXT, fn.lit(""))
    at_rest = ((fn.col("phase.level") == PRIMARY) | (fn.col("reds") == 0)) & (seen == "")
    doubtful = known.where(~fn.coalesce(at_rest, fn.lit(False)))
    part = fn.explode(fn.split(seen, " "))
    named = doubtful.where(seen != "").select("run", part.alias("part"))
    who = fn.regexp_replace("part", ":[0-9]+$", "")
    epoch = fn.regexp_extract(who, "#([0-9]+)$", 1)
    last = fn.regexp_extract("part", ":([0-9]+)$", 1).cast("long")
    theirs = named.select(
        "run",
        fn.regexp_replace(who, "#[0-9]+$", "").alias("sender"),
        fn.when(epoch == "", 0).otherwise(epoch.cast("long")).alias("sender_incarnation"),
        last.alias("first"),
        last.alias("last"),
    )
    places = rows.where(green())
    own = actions(doubtful).union(theirs)
    return _with_reds(rows, doubtful).union(meeting(places, own))


def _knowing(rows: DataFrame, chosen: Column) -> DataFrame:
    """Some rows with the phase and the line of the disk at that moment, and how many reds came before."""
    red = is_kind(COLOUR) & (fn.col("level") != GREEN)
    known = rows.where(chosen | is_kind(PHASE, STORE, DURABLE) | red)
    before = Window.partitionBy(*LIFE).orderBy("index").rowsBetween(Window.unboundedPreceding, -1)
    line = fn.struct(fn.coalesce("order", fn.lit(0)).alias("order"), "index")
    marks = {
        "phase": fn.last(fn.when(is_kind(PHASE), fn.struct("level", "index")), ignorenulls=True),
        "line": fn.last(fn.when(is_kind(STORE, DURABLE), line), ignorenulls=True),
        "reds": fn.count(fn.when(red, 1)),
    }
    return known.select("*", *(mark.over(before).alias(name) for name, mark in marks.items())).where(chosen)


def _with_reds(rows: DataFrame, doubtful: DataFrame) -> DataFrame:
    """Rows in doubt, with the phase and the disk then, and all rows about actions that were red there."""
    lives = fn.broadcast(doubtful.select(*LIFE).distinct())
    there = rows.join(lives, LIFE, "left_semi").select(*rows.columns)
    reds = there.where((is_kind(COLOUR) & (fn.col("level") != GREEN)) | is_kind(SNAPSHOT))
    marks = [doubtful.select(*LIFE, fn.col(f"{name}.index").alias("index")) for name in ("phase", "line")]
    moments = these(rows, doubtful.select(*ROW).union(marks[0]).union(marks[1]))
    turned = meeting(rows.where(green()), actions(reds.where(is_kind(COLOUR))))
    return moments.union(reds).union(turned)
