"""The long form of `tests/pipeline/test_pipeline_stream_kills.py`: executors are processes of their own."""

import os
import random
import time
from pathlib import Path

from tests.pipeline.killing import Driver, Load, grown, judge
from tests.pipeline.streams import FORGETS_NOTHING, desk

PATIENCE = 240.0
ROUNDS = int(os.environ.get("SEMCAST_STREAM_ROUNDS", "6"))


def test_everything_is_killed_in_any_order(tmp_path: Path) -> None:
    rng = random.Random(19)
    with desk(tmp_path / "in", *FORGETS_NOTHING) as prices, desk(tmp_path / "out", *FORGETS_NOTHING) as out:
        driver = Driver(
            {
                "from": prices.group,
                "to": out.group,
                "checkpoint": str(tmp_path / "checkpoint"),
                "master": "local-cluster[2,1,1024]",
                "conf": {"spark.task.maxFailures": "8"},
            }
        )
        load = Load(prices.group)
        there = executors = 0
        try:
            for _ in range(ROUNDS):
                there = grown(out, there, PATIENCE)
                time.sleep(rng.random())
                victims = ["out", "in", "executor", "worker", "driver"]
                for victim in rng.sample(victims, 3):
                    if victim in ("out", "in"):
                        logger = out if victim == "out" else prices
                        logger.kill()
                        time.sleep(rng.random())
                        logger.start()
                    elif victim == "executor":
                        executors += driver.kill_executor()
                    elif victim == "worker":
                        driver.kill_worker()
                    else:
                        driver.kill()
                    if not driver.running:
                        driver.start()
            judge(out, load.stop(), PATIENCE)
            assert executors
        finally:
            load.stop()
            driver.kill()
