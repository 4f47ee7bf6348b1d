"""The short form for CI: executors in processes of their own, on this machine (`local-cluster`)."""

from pathlib import Path

import pyspark
from tests.cluster.three import profile_verify_and_sweep


def test_profile_verify_and_sweep(tmp_path: Path) -> None:
    before = set(Path(pyspark.__file__).parent.iterdir())
    profile_verify_and_sweep("local-cluster[2,1,1024]", tmp_path)
    assert set(Path(pyspark.__file__).parent.iterdir()) == before
