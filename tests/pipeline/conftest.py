"""One Spark session for all tests of the pipeline, and the recordings that some of them read."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from semcast.pipeline.session import spark_session


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return spark_session("semcast tests", master="local[2]", shuffle_partitions=2)


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The real traces: the folder of SEMCAST_DATA, or the one beside the checkout."""
    named = os.environ.get("SEMCAST_DATA")
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    if not (folder / "quake-mvd" / "profile.json").exists():
        pytest.skip(f"no recordings in {folder}: set SEMCAST_DATA")
    return folder
