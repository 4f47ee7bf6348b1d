"""Hierarchical groups: a root that says which leaf serves a key."""

import asyncio
from secrets import token_hex

import pytest

import semcast
from semcast.patterns.hierarchy import Branching


def test_servers_share_the_leaves_and_a_client_deals_with_one_of_them() -> None:
    async def run() -> None:
        name = f"bank-{token_hex(4)}"
        async with (
            asyncio.timeout(40),
            semcast.domain(name, engine="causal", name="a") as a,
            semcast.domain(name, engine="causal", name="b") as b,
            semcast.domain(name, engine="causal", name="c") as c,
        ):
            first = await semcast.hierarchy(a, "bank", role="server", leaves=2)
            second = await semcast.hierarchy(b, "bank", role="server", leaves=2)
            leaves = {tree.leaf.name: tree for tree in (first, second) if tree.leaf is not None}
            assert set(leaves) == {"bank/0", "bank/1"}, "each goes where nobody is"
            for tree in leaves.values():
                _answer(tree)
            client = await semcast.hierarchy(c, "bank", role="client")
            for key in (b"ann", b"bob", b"eve"):
                leaf = await client.leaf_of(key)
                assert leaf.name == Branching("bank", 2).leaf_of(key)
                assert leaf is await client.leaf_of(key), "it is a client of the leaf already"
                answer = await leaf.call(key)
                assert list(answer.replies.values()) == [leaf.name.encode()]
            keys = [b"%d" % number for number in range(20)]
            served = [key for key in keys if leaves[Branching("bank", 2).leaf_of(key)] is first]
            assert await first.leaf_of(served[0]) is first.leaf
            with pytest.raises(semcast.GroupError, match="belongs to"):
                await second.leaf_of(served[0])

    asyncio.run(run())


def _answer(tree: semcast.Hierarchy) -> None:
    leaf = tree.leaf
    assert leaf is not None

    @leaf.on_call
    async def answer(_request: semcast.CallRequest) -> bytes:
        return leaf.name.encode()


def test_servers_say_how_many_leaves_there_are_and_clients_do_not() -> None:
    async def run() -> None:
        async with semcast.domain(f"bank-{token_hex(4)}", engine="causal") as bank:
            for role, leaves in (("server", 0), ("client", 2)):
                with pytest.raises(semcast.ConfigurationError, match="how many leaves"):
                    await semcast.hierarchy(bank, "bank", role=role, leaves=leaves)  # type: ignore[arg-type]
            with pytest.raises(semcast.ConfigurationError, match="server or client"):
                await semcast.hierarchy(bank, "bank", role="peer")  # type: ignore[arg-type]
            with pytest.raises(semcast.ConfigurationError, match=r"semcast\.hierarchy"):
                await bank.join("bank", kind="hierarchical")  # type: ignore[arg-type]

    asyncio.run(run())


def test_who_comes_at_once_begins_with_different_leaves() -> None:
    tree = Branching("bank", 3)
    assert [tree.emptiest([], rank) for rank in range(4)] == ["bank/0", "bank/1", "bank/2", "bank/0"]
    assert tree.emptiest(["bank/1", "", "shop/0"], rank=1) == "bank/2"
    with pytest.raises(ValueError, match="key or a place"):
        tree.answer(b"", "bank/0")
    with pytest.raises(ValueError, match="at least 1"):
        Branching("bank", 0)
