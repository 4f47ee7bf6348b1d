"""Members on IPv6's loopback, which carries no multicasts: they find each other by lists."""

import asyncio
import urllib.request

import semcast
from semcast import blocking
from semcast.bench.measuring import free_addresses
from semcast.net.addresses import written


async def payloads(group: semcast.Group, count: int) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(20):
        async for event in group:
            if isinstance(event, semcast.Message):
                found.append(event.payload)
                if len(found) == count:
                    break
    return found


def test_a_ring_on_ipv6() -> None:
    """The third knows the second only, and is introduced to the first."""

    async def test() -> None:
        async with semcast.join("six", bind="[::1]:0", metrics="[::1]:0") as a:
            assert a.metrics_address is not None
            assert a.metrics_address[0] == "::1"
            url = f"http://{written(a.metrics_address)}/metrics"
            text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=5).read())
            assert b"semcast_view_members" in text
            async with (
                semcast.join("six", bind="[::1]:0", peers=(written(a.address),)) as b,
                semcast.join("six", bind="localhost:0", peers=()) as elsewhere,
                semcast.join("six", bind="[::1]:0", peers=(written(b.address),)) as c,
            ):
                assert elsewhere.address[0] == "127.0.0.1"
                for each in (a, b, c):
                    await each.wait_for(3, timeout=20)
                await c.send(b"from c")
                assert await payloads(a, 1) == [b"from c"]

    asyncio.run(test())


def test_a_fixed_list_on_ipv6() -> None:
    ports = [address.rpartition(":")[2] for address in free_addresses(2)]
    members = [f"{name}=[::1]:{port}" for name, port in zip("ab", ports, strict=True)]

    async def test() -> None:
        async with (
            semcast.join("six", stack="s-rm", name="a", members=members) as a,
            semcast.join("six", stack="s-rm", name="b", members=members) as b,
        ):
            await a.send(b"from a")
            assert await payloads(b, 1) == [b"from a"]

    asyncio.run(test())


def test_a_name_among_the_peers() -> None:
    with (
        blocking.join("named", multicast=False, bind="localhost:0") as a,
        blocking.join("named", multicast=False, peers=[f"localhost:{a.address[1]}"]) as b,
    ):
        assert len(b.wait_for(2, timeout=20).members) == 2
