"""More of the rules between groups, as somebody saw them who read the code afterwards."""

from tests.isis.lab import Lab

from semcast.protocols.isis import Policy


def test_an_own_message_counts_before_the_program_is_given_it() -> None:
    """The next one is in another group, and somebody lacks the first."""
    lab = Lab({"a": "pq", "b": "pq"}, Policy.CONSERVATIVE)
    lab.hold(lambda _source, dest, group, carries: dest == "q" and group == "a" and carries)
    lab.queue("p", "a", "first")
    lab.queue("p", "b", "second")
    lab.look("p")
    lab.run(50)
    assert lab.given["q"] == []
    assert len(lab.at["p"].program.wishes) == 1, "q lacks the first"
    lab.release()
    lab.run(500)
    assert lab.given["q"] == ["first", "second"]


def test_what_was_given_in_the_view_before_comes_first() -> None:
    """It is not named any more, but its view is (correction 5), and here its causes are, too."""
    lab = Lab({"a": "pqr", "b": "pq", "c": "qr"}, Policy.FULL, others="s", resilience="0")
    lab.hold(lambda _source, dest, group, carries: dest == "q" and group == "c" and carries)
    lab.send("r", "c", "cause")
    lab.send("r", "a", "news")
    lab.run(5)
    lab.join("s", "a")
    lab.run(300)
    assert lab.given["p"] == ["news"]
    lab.send("p", "b", "effect")
    lab.run(50)
    assert lab.given["q"] == [], "the news wait for their cause"
    lab.release()
    lab.run(500)
    assert lab.given["q"] == ["cause", "news", "effect"]


def test_who_joins_is_told_everything_again() -> None:
    lab = Lab({"a": "prs", "b": "pq"}, Policy.FULL, resilience="0")
    lab.hold(lambda _source, dest, group, carries: dest == "s" and group == "a" and carries)
    lab.send("r", "a", "news")
    lab.run(5)
    lab.send("p", "b", "one")
    lab.run(50)
    lab.join("s", "b")
    lab.run(300)
    assert len(lab.members("p", "b")) == 3
    lab.send("p", "b", "two")
    lab.run(50)
    assert lab.given["s"] == [], "the news have not come"
    lab.release()
    lab.run(500)
    assert lab.given["s"] == ["news", "two"]
