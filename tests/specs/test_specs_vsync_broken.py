"""Virtual synchrony by hand: one history for everything that can be broken.

How they are written says `vsync_scripts`.
"""

import pytest
from tests.specs.vsync_scripts import group, violated

from semcast.specs import VSYNC

# What is broken, the property to catch it with its count, and which others cannot but see it, too.
BROKEN: dict[str, tuple[str, str, int, set[str]]] = {
    "two lists of members": (
        """
        p: V1=pq
        q: V1=qp
        """,
        "vs_view_agreement",
        1,
        set(),
    ),
    "not a member": (
        """
        p: V1=p V2=pq
        q: V1=p V2=pq
        """,
        "vs_view_agreement",
        1,
        set(),
    ),
    "back to an earlier view": (
        "p: V1=p V2=p V1=p",
        "vs_view_agreement",
        1,
        set(),
    ),
    "a view twice": (
        "p: V1=p V1=p",
        "vs_view_agreement",
        1,
        set(),
    ),
    "a view after the crash": (
        "p: V1=p crash V2=p",
        "vs_view_agreement",
        1,
        set(),
    ),
    "both sides of a partition have the next view": (
        """
        p: V1=pqrs V2=pq
        q: V1=pqrs V2=pq
        r: V1=pqrs V2=rs
        s: V1=pqrs V2=rs
        """,
        "vs_primary_partition",
        1,
        {"vs_view_agreement"},
    ),
    "disjoint successors with numbers of their own": (
        """
        p: V1=pqrs V2=pq
        q: V1=pqrs V2=pq
        r: V1=pqrs V3=rs
        s: V1=pqrs V3=rs
        """,
        "vs_primary_partition",
        3,
        set(),
    ),
    "a minority goes on": (
        """
        p: V1=pqr V2=p
        q: V1=pqr
        r: V1=pqr
        """,
        "vs_primary_partition",
        1,
        set(),
    ),
    "a minority goes on, and the others obey": (
        """
        p: V1=pqr V2=p V3=pq'r'
        q: V1=pqr m1 q1 crash
        r: V1=pqr q1 m1 r1 crash
        q': V3=pq'r'
        r': V3=pq'r'
        """,
        "vs_primary_partition",
        1,
        {"vs_semantic_uniform_agreement"},
    ),
    "half of them without the first is no quorum": (
        """
        p: V1=pq
        q: V1=pq V2=q
        """,
        "vs_primary_partition",
        1,
        set(),
    ),
    "two groups that started apart": (
        """
        p: V1=p
        q: V2=q
        """,
        "vs_primary_partition",
        1,
        set(),
    ),
    "somebody passes over a view": (
        """
        p: V1=pq V2=pq V3=pq
        q: V1=pq V3=pq
        """,
        "vs_primary_partition",
        1,
        set(),
    ),
    "delivered in the next view": (
        """
        p: V1=pq m1-2 p1-2 V2=pq
        q: V1=pq p1 V2=pq p2
        """,
        "vs_sending_view_delivery",
        1,
        {"vs_view_synchrony", "vs_semantic_view_synchrony", "vs_semantic_uniform_agreement"},
    ),
    "by its sender alone in the next view": (
        "p: V1=p m1 V2=p p1",
        "vs_sending_view_delivery",
        1,
        {"vs_semantic_validity"},
    ),
    "before the first view": (
        "p: m1-2@1 p1-2 V1=p",
        "vs_sending_view_delivery",
        4,
        set(),
    ),
    "delivered after the crash": (
        "p: V1=p m1-3 p1-2 crash p3",
        "vs_sending_view_delivery",
        1,
        set(),
    ),
    "multicast with another number": (
        "p: V1=p m1-3@2 p1-3",
        "vs_sending_view_delivery",
        3,
        set(),
    ),
    "its own last message lost": (
        "p: V1=p m1-3 p1 V2=p",
        "vs_semantic_validity",
        2,
        set(),
    ),
    "its own last message lost at the end": (
        "p: V1=p m1-3 p1",
        "vs_semantic_validity",
        2,
        set(),
    ),
    "replaced only in the next view": (
        "p: V1=p m1:x V2=p m2:x p2",
        "vs_semantic_validity",
        1,
        set(),
    ),
    "one skips an update that others deliver": (
        """
        p: V1=pq m1:x m2:x p1-2 V2=pq
        q: V1=pq p2 V2=pq
        """,
        "vs_view_synchrony",
        1,
        set(),
    ),
    "one lost a message, and they go on together": (
        """
        p: V1=pq m1-3 p1-3 V2=pq
        q: V1=pq p1 V2=pq
        """,
        "vs_semantic_view_synchrony",
        2,
        {"vs_view_synchrony", "vs_semantic_uniform_agreement"},
    ),
    "one lost a message at the end": (
        """
        p: V1=pq m1 p1
        q: V1=pq
        """,
        "vs_semantic_view_synchrony",
        1,
        {"vs_view_synchrony", "vs_semantic_uniform_agreement"},
    ),
    "purged across a view change": (
        """
        p: V1=pq m1:x p1 V2=pq m2:x p2
        q: V1=pq -p1<p2 V2=pq p2
        """,
        "vs_semantic_view_synchrony",
        1,
        {"vs_view_synchrony", "vs_semantic_uniform_agreement"},
    ),
    "the naive purge: the replacement is lost": (
        """
        p: V1=pqr m1:x m2:x p1-2 crash
        q: V1=pqr p1 V2=qr
        r: V1=pqr -p1<p2 V2=qr
        """,
        "vs_semantic_view_synchrony",
        1,
        {"vs_view_synchrony", "vs_semantic_uniform_agreement"},
    ),
    "a gap before the last message, everywhere": (
        """
        p: V1=pqr m1-5 p1-5 crash
        q: V1=pqr p1 p4 V2=qr
        r: V1=pqr p1 p4 V2=qr
        """,
        "vs_semantic_fifo_view_completeness",
        4,
        {"vs_semantic_uniform_agreement", "semantic_causal_completeness"},
    ),
    "what one delivered before it crashed is lost": (
        """
        p: V1=pqr m1-2 p1-2 crash
        q: V1=pqr p1 V2=qr
        r: V1=pqr p1 V2=qr
        """,
        "vs_semantic_uniform_agreement",
        2,
        set(),
    ),
    "an answer before the question": (
        """
        p: V1=pqr m1 p1 q1 V2=pqr
        q: V1=pqr p1 m1 q1 V2=pqr
        r: V1=pqr q1 p1 V2=pqr
        """,
        "causal_delivery",
        1,
        {"total_order", "uniform_total_order"},
    ),
    "an answer before the question, through a third": (
        """
        p: V1=pqrs m1 p1 q1 r1 V2=pqrs
        q: V1=pqrs p1 m1 q1 r1 V2=pqrs
        r: V1=pqrs p1 q1 m1 r1 V2=pqrs
        s: V1=pqrs r1 q1 p1 V2=pqrs
        """,
        "causal_delivery",
        2,
        {"total_order", "uniform_total_order"},
    ),
    "delivered before they were multicast": (
        """
        p: V1=pq q1 m1 p1
        q: V1=pq p1 m1 q1
        """,
        "causal_delivery",
        4,
        {"total_order", "uniform_total_order"},
    ),
    "an answer without the question": (
        """
        p: V1=pqrs m1 p1 crash
        q: V1=pqrs p1 m1 q1 crash
        r: V1=pqrs q1 V2=rs
        s: V1=pqrs q1 V2=rs
        """,
        "semantic_causal_completeness",
        2,
        {"vs_semantic_uniform_agreement"},
    ),
    "two orders": (
        """
        p: V1=pq m1 p1 q1 V2=pq
        q: V1=pq m1 q1 p1 V2=pq
        """,
        "total_order",
        2,
        {"uniform_total_order"},
    ),
    "one message at two positions": (
        """
        p: V1=pq m1 p1^1 V2=pq
        q: V1=pq p1^2 V2=pq
        """,
        "total_order",
        1,
        {"uniform_total_order"},
    ),
    "two messages at one position": (
        """
        p: V1=p m1-3 p1-2^1 p3^2 V2=p
        """,
        "total_order",
        2,
        {"uniform_total_order"},
    ),
    "positions that go back in the next view": (
        "p: V1=p m1-2 p1-2^4 V2=p m3 p3^3 V3=p",
        "total_order",
        1,
        {"uniform_total_order"},
    ),
    "in another order before it crashed": (
        """
        p: V1=pqr m1 p1 q1 V2=pr
        q: V1=pqr m1 q1 p1 crash
        r: V1=pqr p1 q1 V2=pr
        """,
        "uniform_total_order",
        3,
        set(),
    ),
    "who joins has another state": (
        """
        p: V1=p m1 p1 V2=pq p=one q=none
        q: V2=pq p=none q=none
        """,
        "vs_state_transfer",
        1,
        set(),
    ),
    "who joins has no state of one": (
        """
        p: V1=p m1 p1 V2=pq p=one q=none
        q: V2=pq q=none
        """,
        "vs_state_transfer",
        1,
        set(),
    ),
    "the state comes after the first message": (
        """
        p: V1=p m1 p1 V2=pq p=one m2 p2
        q: V2=pq p2 p=one
        """,
        "vs_state_transfer",
        1,
        set(),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken(name: str) -> None:
    script, culprit, count, others = BROKEN[name]
    found = violated(group(script))
    assert set(found) == {culprit, *others}
    assert found[culprit].count == count


def test_every_property_has_a_history_that_breaks_it() -> None:
    assert {culprit for _, culprit, _, _ in BROKEN.values()} == set(VSYNC)
