"""Violations that no event shows, as where a message is nowhere, are written like others."""

from pathlib import Path

import pyarrow.parquet as pq
from tests.pipeline.histories import write
from tests.specs.test_specs_gossip import L, P, Q, Script

from semcast.history import History, RunInfo
from semcast.pipeline.verify import Options, survey, verify_here
from semcast.specs import Status


def test_a_violation_without_an_event_is_written(tmp_path: Path) -> None:
    script = Script().opened(retention="live").start(P).start(Q).about(P, "multicast", 1, 2)
    script.about(P, "deliver", 1, 2).about(L, "log", 1, 2).about(Q, "deliver", 1)
    info = RunInfo.one("lacking", "g", "rpbcast", 1, (P, Q, L), None, uniform=False, quiesced=True)
    recorded = survey([write([History(info, script.rows)], tmp_path)])
    out = tmp_path / "out"
    (verdict,) = verify_here(recorded, Options(["gossip_delivery"], out=out)).verdicts
    assert (verdict.status, verdict.count, verdict.sample) == (Status.VIOLATED, 1, ())
    (row,) = pq.read_table(out / "violations").to_pylist()
    assert (row["process"], row["index"], row["times"]) == ("-", None, 1)
    assert row["reason"] == "q has neither (p,2) nor a replacement"
