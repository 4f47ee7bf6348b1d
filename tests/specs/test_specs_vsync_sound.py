"""Virtual synchrony by hand: histories that nothing is wrong with.

How they are written says `vsync_scripts`.
"""

import pytest
from tests.specs.vsync_scripts import group, violated

# What nobody promises all the same is named.
SOUND: dict[str, tuple[str, set[str]]] = {
    "one process": ("p: V1=p m1-3 p1-3 V2=p m5 p5", set()),
    "views come and go": (
        """
        p: V1=pqr m1 p1 q1 V2=pq q2 V3=pqr' m2 p2
        q: V1=pqr m1 p1 q1 V2=pq m2 q2 V3=pqr' p2
        r: V1=pqr p1 crash
        r': recover V3=pqr' p2
        """,
        set(),
    ),
    "runs cut by each as it likes": (
        """
        p: V1=pq m1-2 m3-6 p1-6 V2=pq
        q: V1=pq p1 p2-5 p6 V2=pq
        """,
        set(),
    ),
    "an update skipped for a later one (4.4.1)": (
        """
        p: V1=pq m1:x m2:x p1-2 V2=pq
        q: V1=pq -p1<p2 p2 V2=pq
        """,
        {"vs_view_synchrony"},
    ),
    "replaced through one that is skipped as well": (
        """
        p: V1=pq m1:{q9} m2:{p1} m3:{p2} p1-3 V2=pq
        q: V1=pq p3 V2=pq
        """,
        {"vs_view_synchrony"},
    ),
    "a position replaced that nobody delivers": (
        """
        p: V1=pq m1:x -p1^4<q1 q1^5 V2=pq
        q: V1=pq m1:^4 -p1<q1 q1^5 V2=pq
        """,
        set(),
    ),
    "the last words of a crashed process reach nobody": (
        """
        p: V1=pqr V2=pr
        q: V1=pqr m1 crash
        r: V1=pqr V2=pr
        """,
        set(),
    ),
    "ahead of the others when it crashed": (
        """
        p: V1=pqr m1 p1 V2=pr
        q: V1=pqr m1 q1 p1 crash
        r: V1=pqr p1 V2=pr
        """,
        {"vs_semantic_uniform_agreement"},
    ),
    "in another order when it crashed (I 5.2)": (
        """
        p: V1=pqr m1 p1^1 q1^2 V2=pr
        q: V1=pqr m1 q1^1 p1^2 crash
        r: V1=pqr p1^1 q1^2 V2=pr
        """,
        {"uniform_total_order"},
    ),
    "concurrent messages in different orders": (
        """
        p: V1=pq m1 p1 q1 V2=pq
        q: V1=pq m1 q1 p1 V2=pq
        """,
        {"total_order", "uniform_total_order"},
    ),
    "a majority goes on, the others never hear of it": (
        """
        p: V1=pqr V2=pq m1 p1
        q: V1=pqr V2=pq p1
        r: V1=pqr m1 r1
        """,
        {"vs_semantic_uniform_agreement"},
    ),
    "two of three leave": (
        """
        p: V1=pqr V2=p
        q: V1=pqr crash
        r: V1=pqr crash
        """,
        set(),
    ),
    "all crash, and they start again": (
        """
        p: V1=pq m1 p1 crash
        q: V1=pq crash
        p': recover V2=p'
        """,
        set(),
    ),
    "no majority is left to go on with": (
        """
        p: V1=pqr m1
        q: V1=pqr p1 crash
        r: V1=pqr crash
        """,
        set(),
    ),
    "who joins has the state of the others": (
        """
        p: V1=p p=none m1 p1 V2=pq p=one q=none m2 p2
        q: V2=pq p=one q=none p2
        """,
        set(),
    ),
    "one of two keeps no state": (
        """
        p: V1=pq p=one
        q: V1=pq
        """,
        set(),
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound(name: str) -> None:
    script, unpromised = SOUND[name]
    assert set(violated(group(script))) == unpromised
