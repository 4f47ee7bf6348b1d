"""The premise of everything semantic: obsolescence is an order."""

from semcast.history.events import History
from semcast.specs.evidence import evidence_of
from semcast.specs.verdict import MAX_OFFENDING, Status, Verdict


def relation_is_order(history: History) -> Verdict:
    """Pereira 2002, 4.1: obsolescence is a strict partial order; broken where replacements run in a circle.

    Counts the messages whose chain of replacements never ends, and names one circle.
    """
    name = "relation_is_order"
    relation = evidence_of(history).relation
    if not relation.endless:
        return Verdict(name, Status.HOLDS)
    circle = tuple(relation.messages[place] for place in relation.cycle()[:MAX_OFFENDING])
    chain = " replaced by ".join(f"({message.process},{message.seq})" for message in circle)
    detail = f"replacements run in a circle: {chain} replaced by ..."
    return Verdict(name, Status.VIOLATED, circle, len(relation.endless), detail)
