"""Replication servers as real processes with real disks: they are killed, one and all, and come back."""

from pathlib import Path

from tests.live.lab.replicas import Fleet


def payloads(name: str, begin: int, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(begin, begin + count)]


def test_servers_that_are_killed_one_by_one_and_all_at_once_have_one_chain(tmp_path: Path) -> None:
    """Kill -9 of one, of all; what was delivered anywhere is in the same place everywhere for ever."""
    with Fleet("replica_member", tmp_path) as fleet:
        fleet["a"].tell(send=payloads("a", 0, 200), upto=400)
        fleet["b"].tell(send=payloads("b", 0, 200), upto=400)
        fleet["c"].tell(upto=400)
        first = [fleet[name].answer() for name in "abc"]
        assert first[0]["line"] == 400
        assert first[1:] == first[:-1]

        fleet.kill("c")
        without = fleet["a"].ask(send=payloads("a", 200, 100), upto=500)
        assert without["line"] == 500
        fleet.start("c").answer()
        assert fleet["c"].ask(upto=500) == without

        fleet.kill("a", "b", "c")
        for name in "abc":
            fleet.start(name)
        for name in "abc":
            fleet[name].answer()
        assert fleet.all(upto=500) == [without] * 3
        last = fleet["b"].ask(send=payloads("b", 200, 50), upto=550)
        assert fleet.all(upto=550) == [last] * 3
        for name in "abc":
            fleet[name].end()


def test_a_database_of_three_processes_survives_kills_of_one_and_of_all(tmp_path: Path) -> None:
    """What was answered is there; files of all are equal."""

    def inserts(begin: int, count: int) -> list[list[object]]:
        return [
            ["insert into t values (?, datetime('now'), random())", [n]] for n in range(begin, begin + count)
        ]

    with Fleet("replica_database", tmp_path, trim_every=50, retention=20) as fleet:
        fleet["a"].ask(execute=[["create table t (id primary key, at, chance)"]])
        fleet["a"].ask(execute=inserts(0, 100))
        fleet.kill("b")
        done = fleet["c"].ask(execute=inserts(100, 100))
        fleet.start("b").answer()
        assert fleet["b"].ask(upto=done["position"])["digest"] == done["digest"]

        fleet.kill("a", "b", "c")
        for name in "abc":
            fleet.start(name)
        for name in "abc":
            fleet[name].answer()
        last = fleet["b"].ask(execute=inserts(200, 10), query="select count(*) from t")
        assert last["rows"] == [[210]]
        assert {found["digest"] for found in fleet.all(upto=last["position"])} == {last["digest"]}
        for name in "abc":
            fleet[name].end()
