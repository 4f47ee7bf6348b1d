"""Deliberately broken protocols. A checker that lets one of these pass is not a checker.

Each breaks one thing the guarantees rest on, and must be caught by name within the ordinary test run: by the
swarm, or, where chance is a poor tester, by a directed test.
"""

import msgspec

from semcast.obsolescence import OperationTracker
from semcast.protocols.ring import Ring
from semcast.protocols.semantic import SemanticMulticast
from semcast.protocols.vsync import VirtualSynchrony
from semcast.sim.mutants import ring, semantic, vsync


class Mutant(msgspec.Struct, frozen=True):
    """What to run instead of the real thing."""

    stack: type[SemanticMulticast] = SemanticMulticast
    ring: type[Ring] = Ring
    vsync: type[VirtualSynchrony] = VirtualSynchrony
    operations: type[OperationTracker] = OperationTracker
    by_chance: bool = True
    """Whether a swarm of a hundred seeds catches it; what it misses has a directed test."""


MUTANTS: dict[str, dict[str, Mutant]] = {
    "s-rm": {
        "purge-without-safety": Mutant(semantic.PurgeWithoutSafety),
        "purge-announced-early": Mutant(semantic.PurgeAnnouncedEarly),
        "skip-on-gap": Mutant(semantic.SkipOnGap),
        "safety-with-f-votes": Mutant(semantic.SafetyWithFVotes),
        "safety-counts-received": Mutant(semantic.SafetyCountsReceived),
        "suspected-member": Mutant(semantic.SuspectedMember),
        "out-of-order": Mutant(semantic.OutOfOrder),
        "deliver-twice": Mutant(semantic.DeliverTwice),
        "lost-last-message": Mutant(semantic.LostLastMessage),
        "unbounded-buffer": Mutant(semantic.UnboundedBuffer),
        "figure-3.8-as-printed": Mutant(operations=semantic.PrintedOperationTracker),
    },
    "ring": {
        "safe-after-one-rotation": Mutant(ring=ring.SafeAfterOneRotation),
        "no-transitional-configuration": Mutant(ring=ring.NoTransitionalConfiguration),
        "obligation-set-forgotten": Mutant(ring=ring.ObligationSetForgotten, by_chance=False),
        "delivered-after-a-hole": Mutant(ring=ring.DeliveredAfterAHole),
        "discarded-before-a-hole": Mutant(ring=ring.DiscardedBeforeAHole),
        "purge-across-configurations": Mutant(ring=ring.PurgeAcrossConfigurations),
        "aru-raised-too-early": Mutant(ring=ring.AruRaisedTooEarly),
        "holes-not-agreed": Mutant(ring=ring.HolesNotAgreed),
        "old-token-accepted": Mutant(ring=ring.OldTokenAccepted),
        "conf-id-reused": Mutant(ring=ring.ConfIdReused),
        "purge-without-replacement": Mutant(ring=ring.PurgeWithoutReplacement),
        "late-packets-delivered": Mutant(ring=ring.LatePacketsDelivered, by_chance=False),
        "half-sent-goes-on": Mutant(ring=ring.HalfSentGoesOn, by_chance=False),
        "fragments-kept": Mutant(ring=ring.FragmentsKept, by_chance=False),
        "form-tokens-in-any-order": Mutant(ring=ring.FormTokensInAnyOrder, by_chance=False),
        "form-token-of-another-configuration": Mutant(
            ring=ring.FormTokenOfAnotherConfiguration, by_chance=False
        ),
        "nobody-fails": Mutant(ring=ring.NobodyFails, by_chance=False),
    },
    "vsync": {
        "decision-without-majority": Mutant(vsync=vsync.DecisionWithoutMajority),
        "pred-omits-undelivered": Mutant(vsync=vsync.PredOmitsUndelivered),
        "purge-across-views": Mutant(vsync=vsync.PurgeAcrossViews),
        "installed-too-early": Mutant(vsync=vsync.InstalledTooEarly),
        "t7-as-printed": Mutant(vsync=vsync.T7AsPrinted),
        "stamp-lost-with-purged": Mutant(vsync=vsync.StampLostWithPurged),
        "clock-not-reset": Mutant(vsync=vsync.ClockNotReset),
        "old-holder-obeyed": Mutant(vsync=vsync.OldHolderObeyed),
        "delivered-before-safe": Mutant(vsync=vsync.DeliveredBeforeSafe),
        "joiner-without-state": Mutant(vsync=vsync.JoinerWithoutState),
        "minority-goes-on": Mutant(vsync=vsync.MinorityGoesOn),
    },
}
"""By stack, its mutants."""


def swarmed(stack: str) -> list[str]:
    """The mutants that the swarm of a stack must catch."""
    return [name for name, mutant in MUTANTS.get(stack, {}).items() if mutant.by_chance]
