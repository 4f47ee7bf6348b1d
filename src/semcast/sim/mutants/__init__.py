"""Deliberately broken protocols. A checker that lets one of these pass is not a checker.

Each breaks one thing the guarantees rest on, and must be caught by name: by the swarm, within the
ordinary test run.
"""

import msgspec

from semcast.core.stack import Stack
from semcast.obsolescence import OperationTracker
from semcast.sim.mutants import ring, semantic, vsync


class Mutant(msgspec.Struct, frozen=True):
    """What to run instead of the real thing."""

    stack: type[Stack] | None = None
    operations: type[OperationTracker] = OperationTracker


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
        "safe-after-one-rotation": Mutant(ring.SafeAfterOneRotation),
        "no-transitional-configuration": Mutant(ring.NoTransitionalConfiguration),
        "obligation-set-forgotten": Mutant(ring.ObligationSetForgotten),
        "delivered-after-a-hole": Mutant(ring.DeliveredAfterAHole),
        "discarded-before-a-hole": Mutant(ring.DiscardedBeforeAHole),
        "purge-across-configurations": Mutant(ring.PurgeAcrossConfigurations),
        "aru-raised-too-early": Mutant(ring.AruRaisedTooEarly),
        "holes-not-agreed": Mutant(ring.HolesNotAgreed),
        "old-token-accepted": Mutant(ring.OldTokenAccepted),
        "conf-id-reused": Mutant(ring.ConfIdReused),
        "purge-without-replacement": Mutant(ring.PurgeWithoutReplacement),
    },
    "vsync": {
        "decision-without-majority": Mutant(vsync.DecisionWithoutMajority),
        "pred-omits-undelivered": Mutant(vsync.PredOmitsUndelivered),
        "purge-across-views": Mutant(vsync.PurgeAcrossViews),
        "installed-too-early": Mutant(vsync.InstalledTooEarly),
        "t7-as-printed": Mutant(vsync.T7AsPrinted),
        "stamp-lost-with-purged": Mutant(vsync.StampLostWithPurged),
        "clock-not-reset": Mutant(vsync.ClockNotReset),
        "old-holder-obeyed": Mutant(vsync.OldHolderObeyed),
        "delivered-before-safe": Mutant(vsync.DeliveredBeforeSafe),
        "joiner-without-state": Mutant(vsync.JoinerWithoutState),
        "minority-goes-on": Mutant(vsync.MinorityGoesOn),
    },
}
"""By stack, the mutants that its swarm must catch."""
