"""Members that join by sponsors, and sponsors, broken on purpose (Sun 2000, 5.3)."""

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip import Member
from semcast.protocols.gossip.applying import Applying
from semcast.protocols.gossip.belonging import Belonging
from semcast.protocols.gossip.sponsor_frames import Apply, Vouch
from semcast.protocols.gossip.sponsoring import Sponsoring
from semcast.sim.mutants.mutant import Mutant


class _PendingSponsoring(Sponsoring):
    def _may_sponsor(self) -> bool:
        return True


class _PendingBelonging(Belonging):
    sponsoring_kind = _PendingSponsoring


class SponsorWhilePending(Member):
    """Takes others in though nobody has taken it in."""

    belonging_kind = _PendingBelonging


class _EarliestApplying(Applying):
    def _begin(self, now: Nanos, found: dict[MemberId, dict[MemberId, int]]) -> None:
        streams = {stream for known in found.values() for stream in known}
        least = {stream: min(known.get(stream, 0) for known in found.values()) for stream in streams}
        super()._begin(now, dict.fromkeys(found, least))


class _EarliestBelonging(Belonging):
    applying_kind = _EarliestApplying


class JoinsBeforeSponsors(Member):
    """Starts at the earliest of what its sponsors said, and not at the latest (property 5.2)."""

    belonging_kind = _EarliestBelonging


class _HastyApplying(Applying):
    def on_vouch(self, now: Nanos, source: MemberId, frame: Vouch) -> None:
        super().on_vouch(now, source, frame)
        super().on_vouch(now, MemberId(f"{source.name} again", source.incarnation), frame)


class _HastyBelonging(Belonging):
    applying_kind = _HastyApplying


class CountsOneSponsorTwice(Member):
    """Takes two words of one sponsor for those of two."""

    belonging_kind = _HastyBelonging


class _StaleApplying(Applying):
    def on_vouch(self, now: Nanos, source: MemberId, frame: Vouch) -> None:
        answer = Vouch(
            self._fresh,
            self._me.incarnation,
            frame.leaves,
            frame.members,
            frame.word,
            frame.part,
            frame.parts,
            frame.known,
        )
        super().on_vouch(now, source, answer)


class _StaleBelonging(Belonging):
    applying_kind = _StaleApplying


class AnswersToFormerAttempts(Member):
    """Takes what sponsors answered to another attempt, or incarnation, for an answer to this one."""

    belonging_kind = _StaleBelonging


class _BoastfulSponsoring(Sponsoring):
    def bound(self, stream: MemberId, through: int) -> int:  # noqa: ARG002
        return through


class _BoastfulBelonging(Belonging):
    sponsoring_kind = _BoastfulSponsoring


class AckBeforeMembership(Member):
    """R-4: acknowledges what it has before its logger knows whom it took in."""

    belonging_kind = _BoastfulBelonging


class _CarelessSponsoring(Sponsoring):
    @property
    def owes(self) -> bool:
        return False


class _CarelessBelonging(Belonging):
    sponsoring_kind = _CarelessSponsoring


class LeaveWithoutList(Member):
    """Leaves though its logger does not know whom it took in."""

    belonging_kind = _CarelessBelonging


class _PrintedSponsoring(Sponsoring):
    def _on_leave(self, now: Nanos, source: MemberId, frame: Apply) -> None:
        admitted, self._session.admitted = self._session.admitted, False
        super()._on_leave(now, source, frame)
        self._session.admitted = admitted


class _PrintedBelonging(Belonging):
    sponsoring_kind = _PrintedSponsoring


class LeaveAsPrinted(Member):
    """R-5: who leaves is no member any more, so nobody tells it anything."""

    belonging_kind = _PrintedBelonging


MUTANTS = {
    "sponsor-while-pending": Mutant(SponsorWhilePending),
    "joins-before-sponsors": Mutant(JoinsBeforeSponsors, by_chance=False),
    "counts-one-sponsor-twice": Mutant(CountsOneSponsorTwice, by_chance=False),
    "answers-to-former-attempts": Mutant(AnswersToFormerAttempts, by_chance=False),
    "ack-before-membership": Mutant(AckBeforeMembership, by_chance=False),
    "leave-without-list": Mutant(LeaveWithoutList, by_chance=False),
    "leave-as-printed": Mutant(LeaveAsPrinted, by_chance=False),
}
