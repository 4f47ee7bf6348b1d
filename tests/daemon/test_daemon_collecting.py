"""The garbage collector of a daemon."""

import gc

from semcast.daemon.collecting import collect_seldom


def test_what_is_there_is_left_alone_and_cycles_are_still_found() -> None:
    before = gc.get_threshold()
    try:
        collect_seldom()
        assert gc.get_freeze_count() > 0
        assert gc.isenabled()
        assert gc.get_threshold() > before
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
