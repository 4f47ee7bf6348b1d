"""Who takes part in each run, from the few rows that say what there is of each process."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession

from semcast.core.ids import MemberId
from semcast.history import HistoryError, RunInfo
from semcast.pipeline.frames import FLAG, MEMBER, TEXT, small_frame


@dataclass(frozen=True, slots=True)
class Participant:
    """A process of a run."""

    run: str
    process: MemberId
    correct: bool


def roster_of(
    infos: dict[str, RunInfo], census: Iterable[Row], *, allow_missing: bool = False
) -> list[Participant]:
    """The processes of every run; raises HistoryError where rows or processes are missing or strange."""
    found: dict[str, dict[MemberId, Row]] = {run: {} for run in infos}
    for row in census:
        if row["run"] not in found:
            raise HistoryError(f"{row['run']}: no such group is described")
        found[row["run"]][_member(row["process"])] = row
    return [
        participant
        for run, info in infos.items()
        for participant in _of_run(run, info, found[run], allow_missing=allow_missing)
    ]


def roster_table(spark: SparkSession, roster: Iterable[Participant]) -> DataFrame:
    """The same as a table (run, process, correct)."""
    rows = [(each.run, (each.process.name, each.process.incarnation), each.correct) for each in roster]
    return small_frame(spark, {"run": TEXT, "process": MEMBER, "correct": FLAG}, rows)


def _of_run(run: str, info: RunInfo, rows: dict[MemberId, Row], *, allow_missing: bool) -> list[Participant]:
    members = info.only.members
    for process in sorted(rows):
        if members and not _known(process, members):
            names = ", ".join(map(str, members))
            raise HistoryError(f"run {run}: unknown process {process}: the members are {names}")
        if not rows[process]["numbered"]:
            raise HistoryError(
                f"run {run}: the {rows[process]['rows']} events of {process} are not numbered "
                "0, 1, 2, ...: rows are missing or there twice"
            )
    check_nobody_missing(run, info, rows, allow_missing=allow_missing)
    failed = {*info.cut_off, *(process for process, row in rows.items() if row["gone"])}
    promised = set(members or rows)
    return [
        Participant(run, process, process in promised and process not in failed)
        for process in sorted({*members, *rows, *info.cut_off})
    ]


def check_nobody_missing(run: str, info: RunInfo, there: Iterable[MemberId], *, allow_missing: bool) -> None:
    """Refuse a run with members of whom nothing was recorded, unless that is allowed."""
    missing = sorted(set(info.only.members) - set(there) - set(info.cut_off))
    if missing and not allow_missing:
        names = ", ".join(map(str, missing))
        raise HistoryError(
            f"run {run}: nothing was recorded of {names}; "
            "if they really did nothing, say so with --allow-missing"
        )


def _known(process: MemberId, members: tuple[MemberId, ...]) -> bool:
    """Whether it is a member, or a restart of one."""
    return process in members or any(
        member.name == process.name and member.incarnation < process.incarnation for member in members
    )


def _member(struct: Row) -> MemberId:
    return MemberId(struct["name"], struct["incarnation"])
