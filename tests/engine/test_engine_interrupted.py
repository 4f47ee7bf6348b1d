"""Ctrl-C in a program without asyncio that waits for its server: nothing of it stays behind."""

import os
import signal
from pathlib import Path

import pytest

import semcast.blocking
from semcast.engine.offline import stopped


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_who_is_interrupted_while_it_waits_for_the_others_lets_go_of_its_folder(tmp_path: Path) -> None:
    group = f"interrupted {os.getpid()}"
    before = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    waiting = semcast.blocking.database(group, name="a", founders=["a", "b"], data=str(tmp_path))
    try:
        with pytest.raises(KeyboardInterrupt):
            waiting.__enter__()
    finally:
        signal.signal(signal.SIGALRM, before)
    with stopped(tmp_path, group, "a") as folder:
        assert folder.books.server is not None, "its folder can be used by another process now"
