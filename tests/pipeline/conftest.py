"""One Spark session for all tests of the pipeline, and the recordings that some of them read."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from semcast.pipeline.data import data_folder
from semcast.pipeline.session import spark_session


@pytest.fixture(scope="session")
def session() -> SparkSession:
    """Small jobs: Java compiles quickly rather than well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMCAST_SPARK_JAVA", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        return spark_session("semcast tests", master="local[2]", shuffle_partitions=2)


@pytest.fixture
def spark(session: SparkSession) -> SparkSession:
    """The session, which plans every job once. A command sets that back."""
    session.conf.set("spark.sql.adaptive.enabled", "false")
    return session


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The real traces."""
    folder = data_folder(Path(__file__).parents[2])
    if not (folder / "quake-mvd" / "profile.json").exists():
        pytest.skip(f"no recordings in {folder}: set SEMCAST_DATA")
    return folder
