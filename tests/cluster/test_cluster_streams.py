"""The long form of `tests/pipeline/test_pipeline_stream_kills.py`, on a standalone cluster.

Executors are processes of workers with disks of their own. Whoever is killed comes first in some round, and
two others follow in a drawn order.
"""

import os
import random
import sys
import time
from pathlib import Path

from tests.cluster.standalone import Cluster
from tests.pipeline.killing import QUICKLY, Driver, Load, grown, judge
from tests.pipeline.streams import FORGETS_NOTHING, desk

PATIENCE = 240.0
VICTIMS = ("executor", "out", "driver", "in", "worker")
ROUNDS = int(os.environ.get("SEMCAST_STREAM_ROUNDS", len(VICTIMS)))


def test_everything_is_killed_in_any_order(cluster: Cluster, tmp_path: Path) -> None:
    rng = random.Random(19)
    with desk(tmp_path / "in", *FORGETS_NOTHING) as prices, desk(tmp_path / "out", *FORGETS_NOTHING) as out:
        driver = Driver(
            {
                "from": prices.group,
                "to": out.group,
                "checkpoint": str(tmp_path / "checkpoint"),
                "master": cluster.url,
                "conf": {
                    "spark.executor.memory": "512m",
                    "spark.executor.extraJavaOptions": QUICKLY,
                    "spark.pyspark.python": sys.executable,
                    "spark.task.maxFailures": "8",
                },
            }
        )
        load = Load(prices.group)
        there = executors = 0
        try:
            for number in range(ROUNDS):
                there = grown(out, there, PATIENCE)
                time.sleep(rng.random())
                first = VICTIMS[number % len(VICTIMS)]
                others = [victim for victim in VICTIMS if victim != first]
                for victim in (first, *rng.sample(others, 2)):
                    if victim in ("out", "in"):
                        logger = out if victim == "out" else prices
                        logger.kill()
                        time.sleep(rng.random())
                        logger.start()
                    elif victim == "executor":
                        executors += cluster.kill_executor() is not None
                    elif victim == "worker":
                        cluster.kill_python()
                    else:
                        driver.kill()
                    if not driver.running:
                        driver.start()
            judge(out, load.stop(), PATIENCE)
            assert executors, "an executor was killed"
        finally:
            load.stop()
            driver.kill()
