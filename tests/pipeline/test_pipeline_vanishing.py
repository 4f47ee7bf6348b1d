"""A history that changes while it is verified is an error: no pass judges by other rows than the first."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.histories import purged_for_what_is_lost, small, write
from tests.pipeline.rings import deep
from tests.pipeline.rings import small as rings
from tests.pipeline.views import views

from semcast.history import History, HistoryError
from semcast.pipeline.verify import Options, job, survey, verify, verify_here
from semcast.pipeline.verify.totals import census

Case = tuple[Callable[[], History], str, str, str]
CASES: dict[str, Case] = {
    "deliveries": (lambda: small(5), "deliver", "fifo_delivery", "45 rows about messages"),
    "views": (deep, "view", "evs_1_4_once", "6 rows about views and crashes"),
    "crashes": (lambda: small(3), "crash", "semantic_agreement", "1 rows about views and crashes"),
    "full buffers": (lambda: small(2), "buffer", "buffer_bound", "3 rows about kind buffer"),
    "last states": (lambda: small(5), "apply", "same_state", "4 rows about kind apply"),
    "states at views": (lambda: views(range(5))[4], "apply", "vs_state_transfer", "14 rows about kind apply"),
    "receipts": (
        lambda: rings(range(6))[5],
        "purge",
        "evs_purge_within_configuration",
        "3 rows about kind purge",
    ),
    "receipts of what is lost": (
        purged_for_what_is_lost,
        "purge",
        "semantic_agreement",
        "1 rows about deliveries and purges",
    ),
}
"""A history, the kind of row that vanishes, a property that needs it, and what is said to have been there."""


def without_last(file: Path, kind: str) -> None:
    """Write the file again, without its last row of this kind."""
    table = pq.read_table(file)
    last = max(pc.indices_nonzero(pc.equal(table["kind"], kind)).to_pylist())
    pq.write_table(pa.concat_tables([table.slice(0, last), table.slice(last + 1)]), file)


def vanish_after_the_first_pass(patch: pytest.MonkeyPatch, file: Path, kind: str) -> None:
    """Counts are made, and then the file changes."""

    def counted(*args: object) -> object:
        without_last(file, kind)
        return census(*args)  # type: ignore[arg-type]

    patch.setattr(job, "census", counted)


@pytest.mark.parametrize("case", CASES)
def test_rows_that_vanish_between_two_passes_are_an_error(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    make, kind, name, there = CASES[case]
    history = make()
    recorded = survey([write([history], tmp_path)])
    vanish_after_the_first_pass(monkeypatch, tmp_path / f"{history.info.run}.parquet", kind)
    with pytest.raises(HistoryError, match=rf"{there} were there at first, then \d+"):
        verify(interpreted, recorded, Options([name], allow_missing=True, small_rows=0, memory_rows=0))


def test_rows_that_vanish_before_a_run_is_judged_in_memory_are_an_error(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = views(range(5))[4]
    recorded = survey([write([history], tmp_path)])
    vanish_after_the_first_pass(monkeypatch, tmp_path / f"{history.info.run}.parquet", "purge")
    with pytest.raises(HistoryError, match="run views-4: 56 rows were there at first, then 55"):
        verify(interpreted, recorded, Options(["vs_view_synchrony"], allow_missing=True, small_rows=0))


@pytest.mark.parametrize("rows", [0, 200_000], ids=["passes", "held"])
def test_a_file_that_is_written_while_it_is_verified_is_an_error(
    interpreted: SparkSession, tmp_path: Path, rows: int
) -> None:
    """Whatever the passes that come after it read, and whichever rows are other ones."""
    recorded = survey([write([small(5)], tmp_path)])
    (file,) = recorded.files

    def written(step: str) -> None:
        if step == "verdicts":
            pq.write_table(pq.read_table(file), file)

    options = Options(["fifo_delivery"], allow_missing=True, small_rows=rows, memory_rows=0)
    with pytest.raises(HistoryError, match=r"small-5\.parquet: was changed while it was verified"):
        verify(interpreted, recorded, options, written)
    with pytest.raises(HistoryError, match="was changed while it was verified"):
        verify_here(recorded, Options(["fifo_delivery"], allow_missing=True))
