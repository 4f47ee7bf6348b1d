"""A standalone cluster of processes, and one driver of it, for all tests here."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cluster.standalone import Cluster
from tests.lacking import lacking
from tests.pipeline.killing import QUICKLY

from semcast.pipeline.session import spark_session


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver's own: where it is, workers see an empty folder."""
    return tmp_path_factory.mktemp("driver")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What all machines see."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, disk: Path) -> Iterator[Cluster]:
    """A master and two workers."""
    if os.geteuid() != 0:
        lacking("workers with disks of their own need root")
    running = Cluster(tmp_path_factory.mktemp("cluster"), disk)
    try:
        running.add_worker()
        running.add_worker()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    """A driver in this process. It asks for small executors, and for files that are cut into many blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = spark_session(
            "semcast tests",
            master=cluster.url,
            conf={
                "spark.executor.memory": "512m",
                "spark.executor.extraJavaOptions": QUICKLY,
                "spark.sql.files.openCostInBytes": "1",
                "spark.sql.shuffle.partitions": "4",
            },
        )
    yield session
    session.stop()
