"""A query from one log into another, killed with everything around it: nothing lost, nothing twice.

The short form; the long one, on a standalone cluster, is `tests/cluster/test_cluster_streams.py`.
"""

from pathlib import Path

from tests.pipeline.killing import QUICKLY, Driver, Load, grown, judge
from tests.pipeline.streams import FORGETS_NOTHING, desk

PATIENCE = 120.0


def test_driver_and_loggers_are_killed_under_load(tmp_path: Path) -> None:
    with desk(tmp_path / "in", *FORGETS_NOTHING) as prices, desk(tmp_path / "out", *FORGETS_NOTHING) as out:
        driver = Driver(
            {
                "from": prices.group,
                "to": out.group,
                "checkpoint": str(tmp_path / "checkpoint"),
                "master": "local[2]",
                "conf": {"spark.driver.extraJavaOptions": QUICKLY},
            }
        )
        load = Load(prices.group)
        try:
            there = grown(out, 0, PATIENCE)
            driver.kill_worker()
            out.kill()  # while a batch is on its way, or just after
            out.start()
            there = grown(out, there, PATIENCE)
            driver.kill()
            driver.start()
            prices.kill()
            prices.start()
            there = grown(out, there, PATIENCE)
            assert driver.running, "a logger that starts again ends no query"
            sent = load.stop()
            judge(out, sent, PATIENCE)
        finally:
            load.stop()
            driver.kill()
