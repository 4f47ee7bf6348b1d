"""The state that applications built from what they delivered."""

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.verdict import Findings, Verdict, unknown


def same_state(history: History) -> Verdict:
    """When the run is over, all correct processes that have a state of a sender have the same.

    Counts the senders of whom different states are left, and names a process for each state.
    """
    return _compare("same_state", history, _final_states(history))


def same_state_of_correct_senders(history: History) -> Verdict:
    """The same, where nothing is promised once the sender crashed."""
    correct = set(history.correct)
    final = {sender: states for sender, states in _final_states(history).items() if sender in correct}
    return _compare("same_state_of_correct_senders", history, final)


def _compare(name: str, history: History, final: dict[MemberId, dict[str, Event]]) -> Verdict:
    if not history.info.quiesced:
        return unknown(name, "the run was not over")
    if not final:
        return unknown(name, "no state was recorded")
    findings = Findings(name)
    for sender in sorted(final):
        states = final[sender]
        if len(states) > 1:
            findings.count(1)
            holders = " and ".join(str(event.process) for event in states.values())
            findings.example(f"{holders} differ in the state of {sender}", *states.values())
    return findings.verdict()


def _final_states(history: History) -> dict[MemberId, dict[str, Event]]:
    """By sender and digest, the last apply event of the first correct process that ends there.

    Those at the beginning of a view are for `vs_state_transfer`.
    """
    final: dict[MemberId, dict[str, Event]] = {}
    for process in history.correct:
        rows = (event for event in history.of(process) if event.kind is Kind.APPLY and event.view is None)
        last = {event.sender: event for event in rows}
        for sender, event in last.items():
            assert sender is not None
            assert event.digest is not None
            final.setdefault(sender, {}).setdefault(event.digest, event)
    return final
