"""Deliberately broken protocols. A checker that lets one of these pass is not a checker.

Each breaks one thing the guarantees rest on, and must be caught by name within the ordinary test run: by the
swarm, or, where chance is a poor tester, by a directed test.
"""

from semcast.sim.mutants import (
    calls,
    clients,
    gossip,
    gossip_loggers,
    gossip_sponsors,
    isis,
    lightweight,
    programs,
    reading,
    replication,
    ring,
    semantic,
    sessions,
    vsync,
    vsync_ends,
    vsync_flow,
    vsync_life,
)
from semcast.sim.mutants.mutant import Mutant

__all__ = ["MUTANTS", "Mutant", "swarmed"]

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
        "changed-payload": Mutant(semantic.ChangedPayload),
        "lost-last-message": Mutant(semantic.LostLastMessage),
        "unbounded-buffer": Mutant(semantic.UnboundedBuffer),
        "confirmed-safe-at-once": Mutant(semantic.ConfirmedSafeAtOnce),
        "terms-ignored": Mutant(semantic.TermsIgnored, by_chance=False),
        "figure-3.8-as-printed": Mutant(operations=semantic.PrintedOperationTracker),
    },
    "ring": {**ring.MUTANTS},
    "vsync": {
        "decision-without-majority": Mutant(vsync_ends.DecisionWithoutMajority),
        "changed-payload": Mutant(vsync.ChangedPayload),
        "pred-omits-undelivered": Mutant(vsync_ends.PredOmitsUndelivered),
        "purge-across-views": Mutant(vsync.PurgeAcrossViews),
        "installed-too-early": Mutant(vsync_ends.InstalledTooEarly),
        "t7-as-printed": Mutant(vsync_ends.T7AsPrinted),
        "stamp-lost-with-purged": Mutant(vsync.StampLostWithPurged),
        "clock-not-reset": Mutant(vsync.ClockNotReset),
        "old-holder-obeyed": Mutant(vsync.OldHolderObeyed),
        "delivered-before-safe": Mutant(vsync.DeliveredBeforeSafe),
        "joiner-without-state": Mutant(vsync_life.JoinerWithoutState),
        "minority-goes-on": Mutant(vsync_ends.MinorityGoesOn),
        "acknowledged-after-pred": Mutant(vsync.AcknowledgedAfterPred, by_chance=False),
        "round-ignored-in-reports": Mutant(vsync.RoundIgnoredInReports, by_chance=False),
        "old-chunk-accepted": Mutant(vsync_life.OldChunkAccepted, by_chance=False),
        "stamp-lost-with-run": Mutant(vsync.StampLostWithRun, by_chance=False),
        "sets-order-not-safe": Mutant(vsync.SetsOrderNotSafe, by_chance=False),
        "safe-with-f-votes": Mutant(vsync.SafeWithFVotes),
        "confirmed-safe-at-once": Mutant(vsync.ConfirmedSafeAtOnce),
        "confirmed-in-the-next-view": Mutant(vsync_ends.ConfirmedInTheNextView),
        "leaver-not-in-cut": Mutant(vsync_ends.LeaverNotInCut, by_chance=False),
        "skipped-before-causes": Mutant(vsync.SkippedBeforeCauses),
        "one-account": Mutant(vsync_flow.OneAccount, by_chance=False),
        "unplaced-takes-room": Mutant(vsync_flow.UnplacedTakesRoom, by_chance=False),
        "no-reserve": Mutant(vsync_flow.NoReserve, by_chance=False),
        "bytes-uncounted": Mutant(vsync_flow.BytesUncounted, by_chance=False),
        "no-slots": Mutant(vsync_flow.NoSlots, by_chance=False),
        "nobody-exempt": Mutant(vsync_flow.NobodyExempt, by_chance=False),
        "stop-when-full": Mutant(vsync_flow.StopWhenFull, by_chance=False),
        "nobody-stops": Mutant(vsync_flow.NobodyStops, by_chance=False),
        "stop-not-heard": Mutant(vsync_flow.StopNotHeard, by_chance=False),
        "commands-in-queue": Mutant(vsync_flow.CommandsInQueue, by_chance=False),
        "leaves-while-waiting": Mutant(vsync_flow.LeavesWhileWaiting, by_chance=False),
        "overfull-goes-on": Mutant(vsync_flow.OverfullGoesOn, by_chance=False),
        "never-gives-up": Mutant(vsync_flow.NeverGivesUp, by_chance=False),
        "provider-awaited": Mutant(vsync_flow.ProviderAwaited, by_chance=False),
        "promise-not-synced": Mutant(vsync_life.PromiseNotSynced, by_chance=False),
        "acceptance-not-synced": Mutant(vsync_life.AcceptanceNotSynced, by_chance=False),
        "tail-ignored": Mutant(vsync_life.TailIgnored, by_chance=False),
        "last-view-not-written": Mutant(vsync_life.LastViewNotWritten, by_chance=False),
        "old-state-handed-over": Mutant(vsync_life.OldStateHandedOver, by_chance=False),
        "founded-beside-a-view": Mutant(vsync_life.FoundedBesideAView),
        "reformed-without-accounting": Mutant(vsync_life.ReformedWithoutAccounting),
        "reformed-with-older-state": Mutant(vsync_ends.ReformedWithOlderState, by_chance=False),
        "terms-ignored": Mutant(vsync_life.TermsIgnored, by_chance=False),
        "never-in-pieces": Mutant(vsync_life.NeverInPieces, by_chance=False),
        "leaver-deaf-at-once": Mutant(vsync_ends.LeaverDeafAtOnce, by_chance=False),
        "vector-too-small": Mutant(vsync.VectorTooSmall),
        "flapping-let-in": Mutant(vsync_life.FlappingLetIn, by_chance=False),
        "held-off-for-ever": Mutant(vsync_life.HeldOffForEver, by_chance=False),
    },
    "replication": {
        "step3-as-printed": Mutant(machine=replication.Step3AsPrinted, by_chance=False),
        "bits-as-printed": Mutant(machine=replication.BitsAsPrinted),
        "unvulnerable-in-un": Mutant(machine=replication.UnvulnerableInUn, by_chance=False),
        "quorum-ignores-vulnerable": Mutant(machine=replication.QuorumIgnoresVulnerable, by_chance=False),
        "half-is-enough": Mutant(machine=replication.HalfIsEnough),
        "majority-of-s-and-last": Mutant(machine=replication.MajorityOfSAndLast, by_chance=False),
        "yellow-forgotten": Mutant(machine=replication.YellowForgotten, by_chance=False),
        "vulnerable-by-name": Mutant(machine=replication.VulnerableByName, by_chance=False),
        "wiped-majority-founds": Mutant(machine=replication.WipedMajorityFounds, by_chance=False),
        "green-in-transitional": Mutant(machine=replication.GreenInTransitional),
        "agreed-instead-of-safe": Mutant(machine=replication.AgreedInsteadOfSafe),
        "reds-in-arrival-order": Mutant(machine=replication.RedsInArrivalOrder),
        "reds-by-id": Mutant(machine=replication.RedsById),
        "queued-action-counted": Mutant(machine=replication.QueuedActionCounted),
        "install-not-atomic": Mutant(machine=replication.InstallNotAtomic, by_chance=False),
        "exchange-reds-at-once": Mutant(machine=replication.ExchangeRedsAtOnce, by_chance=False),
        "red-before-green-in-exchange": Mutant(machine=replication.RedBeforeGreenInExchange),
        "cpc-before-sync": Mutant(machine=replication.CpcBeforeSync, by_chance=False),
        "state-before-sync": Mutant(machine=replication.StateBeforeSync),
        "answered-before-durable": Mutant(machine=replication.AnsweredBeforeDurable),
        "white-from-volatile-line": Mutant(machine=replication.WhiteFromVolatileLine),
        "index-reused-after-crash": Mutant(machine=replication.IndexReusedAfterCrash),
        "pull-volatile": Mutant(machine=replication.PullVolatile, by_chance=False),
        "guest-without-record": Mutant(machine=replication.GuestWithoutRecord, by_chance=False),
        "guest-not-awaited": Mutant(machine=replication.GuestNotAwaited, by_chance=False),
        "guest-installs": Mutant(machine=replication.GuestInstalls, by_chance=False),
        "guest-stops-early": Mutant(machine=replication.GuestStopsEarly, by_chance=False),
        "founders-not-told": Mutant(machine=replication.FoundersNotTold, by_chance=False),
        "quorum-base-edited-on-leave": Mutant(machine=replication.QuorumBaseEditedOnLeave, by_chance=False),
        "joiner-votes-without-state": Mutant(machine=replication.JoinerVotesWithoutState, by_chance=False),
        "behind-server-votes": Mutant(machine=replication.BehindServerVotes, by_chance=False),
        "forget-by-quorum": Mutant(machine=replication.ForgetByQuorum, by_chance=False),
        "estranged-takes-part": Mutant(machine=replication.EstrangedTakesPart),
        "rolled-back-votes": Mutant(machine=replication.RolledBackVotes),
        "writes-before-founding": Mutant(machine=replication.WritesBeforeFounding, by_chance=False),
        "roam-by-clock": Mutant(machine=replication.RoamByClock, by_chance=False),
        "roam-red-in-primary": Mutant(machine=replication.RoamRedInPrimary, by_chance=False),
        "dedupe-not-in-snapshot": Mutant(machine=replication.DedupeNotInSnapshot, by_chance=False),
        "snapshot-names-too-high": Mutant(machine=replication.SnapshotNamesTooHigh),
        "trimmed-before-synced": Mutant(machine=replication.TrimmedBeforeSynced, by_chance=False),
        "late-queued-dropped": Mutant(machine=replication.LateQueuedDropped, by_chance=False),
        "stream-by-creator": Mutant(machine=replication.StreamByCreator, by_chance=False),
        "weak-sees-red": Mutant(reading=replication.WeakSeesRed, by_chance=False),
        "delta-deleted-at-any-green": Mutant(reading=replication.DeltaDeletedAtAnyGreen, by_chance=False),
        "session-ignores-own": Mutant(reading=replication.SessionIgnoresOwn, by_chance=False),
    },
}
"""By stack, its mutants."""

_LOGGERS: dict[str, Mutant] = {
    "logged-before-synced": Mutant(logger=gossip_loggers.LoggedBeforeSynced),
    "confirm-before-synced": Mutant(logger=gossip_loggers.ConfirmBeforeSynced),
    "disconnected-forgotten": Mutant(logger=gossip_loggers.DisconnectedForgotten),
    "compact-before-logged": Mutant(logger=gossip_loggers.CompactBeforeLogged),
    "compact-across-operation": Mutant(logger=gossip_loggers.CompactAcrossOperation),
    "receipt-lost-with-segment": Mutant(logger=gossip_loggers.ReceiptLostWithSegment),
    "recollected-message-readded": Mutant(logger=gossip_loggers.RecollectedMessageReadded),
    "asks-senders-only": Mutant(logger=gossip_loggers.AsksSendersOnly, by_chance=False),
    "asks-nobody": Mutant(logger=gossip_loggers.AsksNobody),
    "no-holes": Mutant(logger=gossip_loggers.NoHoles),
    "one-speaks-for-all": Mutant(logger=gossip_loggers.OneSpeaksForAll),
    "confirm-before-replicated": Mutant(logger=gossip_loggers.ConfirmBeforeReplicated),
    "collects-own-sessions-only": Mutant(logger=gossip_loggers.CollectsOwnSessionsOnly),
    "closes-twice-differently": Mutant(logger=gossip_loggers.ClosesTwiceDifferently, by_chance=False),
    "closes-while-cut-off": Mutant(logger=gossip_loggers.ClosesWhileCutOff, by_chance=False),
    "forgets-alone": Mutant(logger=gossip_loggers.ForgetsAlone, by_chance=False),
    "forgotten-comes-back": Mutant(logger=gossip_loggers.ForgottenComesBack),
    "forgotten-awaited": Mutant(logger=gossip_loggers.ForgottenAwaited),
    "start-ignored": Mutant(logger=gossip_loggers.StartIgnored),
    "begins-with-what-was-collected": Mutant(logger=gossip_loggers.BeginsWithWhatWasCollected),
    "expires-newest-first": Mutant(logger=gossip_loggers.ExpiresNewestFirst),
    "compacts-in-part": Mutant(logger=gossip_loggers.CompactsInPart),
    "keys-forgotten": Mutant(logger=gossip_loggers.KeysForgotten, by_chance=False),
    "half-a-batch": Mutant(logger=gossip_loggers.HalfABatch, by_chance=False),
    "published-twice": Mutant(logger=gossip_loggers.PublishedTwice, by_chance=False),
    "receipts-kept-for-ever": Mutant(logger=gossip_loggers.ReceiptsKeptForEver, by_chance=False),
    "expired-counts-as-replaced": Mutant(logger=gossip_loggers.ExpiredCountsAsReplaced),
    "dead-sessions-of-others": Mutant(logger=gossip_loggers.DeadSessionsOfOthers),
    "published-on-one-disk": Mutant(logger=gossip_loggers.PublishedOnOneDisk),
    "key-beside-the-batch": Mutant(logger=gossip_loggers.KeyBesideTheBatch, by_chance=False),
    "positions-given-anew": Mutant(logger=gossip_loggers.PositionsGivenAnew),
    "positions-reused": Mutant(logger=gossip_loggers.PositionsReused, by_chance=False),
}
"""Mutants of a logger, whatever its members do."""

MUTANTS["gateway"] = {
    "keys-forgotten": Mutant(logger=gossip_loggers.KeysForgotten),
    "last-keys-forgotten": Mutant(logger=gossip_loggers.LastKeysForgotten),
    "half-a-batch": Mutant(logger=gossip_loggers.HalfABatch),
    "published-twice": Mutant(logger=gossip_loggers.PublishedTwice),
    "key-beside-the-batch": Mutant(logger=gossip_loggers.KeyBesideTheBatch),
    "keys-trimmed": Mutant(logger=gossip_loggers.KeysTrimmed),
    "stages-forgotten": Mutant(logger=gossip_loggers.StagesForgotten),
    "staged-before-synced": Mutant(logger=gossip_loggers.StagedBeforeSynced, by_chance=False),
}

MUTANTS["sessions"] = {**sessions.MUTANTS}

MUTANTS["source"] = {**reading.MUTANTS}

MUTANTS["rpbcast"] = {
    "gc-note-as-printed": Mutant(gossip.GcNoteAsPrinted),
    "notes-only": Mutant(gossip.NotesOnly, by_chance=False),
    "ack-from-gossip-phase": Mutant(gossip.AckFromGossipPhase),
    "joiner-from-zero": Mutant(gossip.JoinerFromZero),
    "sender-forgets-early": Mutant(gossip.SenderForgetsEarly, by_chance=False),
    "silent-expiry": Mutant(gossip.SilentExpiry),
    "acknowledge-on-receipt": Mutant(gossip.AcknowledgeOnReceipt, by_chance=False),
    "filter-too-narrow": Mutant(gossip.FilterTooNarrow),
    "one-slows-all": Mutant(gossip.OneSlowsAll, by_chance=False),
    "explicit-ignored": Mutant(gossip.ExplicitIgnored, by_chance=False),
    "spill-forgets": Mutant(gossip.SpillForgets),
    "slow-member-blocks": Mutant(gossip.SlowMemberBlocks),
    "forgets-unlogged": Mutant(gossip.ForgetsUnlogged),
    "at-most-once-from-logger": Mutant(gossip.AtMostOnceFromLogger),
    "answers-to-the-former": Mutant(gossip.AnswersToTheFormer, by_chance=False),
    "no-freeze": Mutant(gossip.NoFreeze, by_chance=False),
    "closed-sender-goes-on": Mutant(gossip.ClosedSenderGoesOn),
    "fences-who-leaves": Mutant(gossip.FencesWhoLeaves, by_chance=False),
    "counts-one-logger-twice": Mutant(gossip.CountsOneLoggerTwice),
    "hearsay-keeps-alive": Mutant(gossip.HearsayKeepsAlive),
    **gossip_sponsors.MUTANTS,
    **_LOGGERS,
}
MUTANTS["lightweight"] = {**lightweight.MUTANTS, **clients.MUTANTS}
MUTANTS["calls"] = {**calls.MUTANTS}
MUTANTS["isis"] = {**isis.MUTANTS}
MUTANTS["pbcast"] = {
    "silent-expiry": Mutant(gossip.SilentExpiry),
    "sponsor-while-pending": gossip_sponsors.MUTANTS["sponsor-while-pending"],
}

_HANDOVERS: dict[str, Mutant] = {
    "unseen-views": Mutant(handover=programs.UnseenViews),
    "never-raises": Mutant(handover=programs.NeverRaises),
    "non-readers-awaited": Mutant(handover=programs.NonReadersAwaited),
    "waiting-untold": Mutant(handover=programs.WaitingUntold),
    "excess-uncounted": Mutant(handover=programs.ExcessUncounted, by_chance=False),
    "views-uncounted": Mutant(handover=programs.ViewsUncounted, by_chance=False),
}
"""Mutants of what lies between a program and any stack."""

for _stack in ("ring", "vsync"):
    MUTANTS[_stack].update(_HANDOVERS)


def swarmed(stack: str) -> list[str]:
    """The mutants that the swarm of a stack must catch."""
    return [name for name, mutant in MUTANTS.get(stack, {}).items() if mutant.by_chance]
