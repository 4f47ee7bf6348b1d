"""Judges what the demo recorded: on Spark where the pipeline is installed, in memory where it is not."""

import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec
from rich.console import Console

from semcast.history import converted, read_histories
from semcast.specs import Status, check


class Judgement(msgspec.Struct, frozen=True):
    """What came of it."""

    where: str
    """Spark, or memory and why."""
    events: int
    hold: int
    """Properties that hold, in all runs together."""
    broken: Sequence[str]
    """What does not, in words."""


def judge(console: Console, folders: Sequence[Path]) -> Judgement:
    """Judge all runs recorded in these folders."""
    if find_spec("pyspark") is None:
        return _in_memory(folders, "in memory, for there is no pyspark")
    from semcast.pipeline.java import NoJavaError  # noqa: PLC0415 (the extra may be missing)

    try:
        return _on_spark(console, folders)
    except NoJavaError as error:
        return _in_memory(folders, f"in memory: {error}")


def _on_spark(console: Console, folders: Sequence[Path]) -> Judgement:
    from semcast.pipeline.session import spark_session  # noqa: PLC0415
    from semcast.pipeline.verify import Options, fits_here, survey, verify, verify_here  # noqa: PLC0415

    with (
        tempfile.TemporaryDirectory(prefix="semcast-") as folder,
        console.status("judging") as status,
    ):
        recorded = survey(converted(folders, Path(folder)))
        here = fits_here(recorded, Options())
        if here:
            report = verify_here(recorded, Options())
        else:
            spark = spark_session("semcast demo", rows_hint=recorded.rows)
            try:
                report = verify(spark, recorded, Options(), lambda step: status.update(f"verifying: {step}"))
            finally:
                spark.stop()
    verdicts = report.verdicts
    return Judgement(
        "in memory, for there are few events" if here else "on Spark",
        report.events,
        sum(verdict.status is Status.HOLDS for verdict in verdicts),
        [
            f"{verdict.run}: {verdict.property}: {offence}"
            for verdict in verdicts
            if verdict.status is Status.VIOLATED
            for offence in verdict.sample[:1]
        ],
    )


def _in_memory(folders: Sequence[Path], where: str) -> Judgement:
    histories = [history for folder in folders for history in read_histories(folder)]
    verdicts = [verdict for history in histories for verdict in check(history)]
    return Judgement(
        where,
        sum(len(history.events) for history in histories),
        sum(verdict.status is Status.HOLDS for verdict in verdicts),
        [str(verdict) for verdict in verdicts if verdict.status is Status.VIOLATED],
    )
