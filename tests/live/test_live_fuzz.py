"""Hostile datagrams at the sockets of live members: the group goes on, memory stays bounded."""

import asyncio
import os
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.live.lab.supervisor import Cluster, Process

from semcast.core.ids import MemberId
from semcast.group.families.ring import ring_settings
from semcast.group.settings import GroupSettings
from semcast.net.addresses import Address, meeting_point
from semcast.net.keyfile import new_key, save_keyring
from semcast.net.pieces import cut
from semcast.net.sockets import LOOPBACK_DATAGRAM
from semcast.protocols.ring.frames import FRAMES as RING_FRAMES
from semcast.protocols.ring.frames import (
    AttemptJoin,
    ConfId,
    FormToken,
    Join,
    Leave,
    Packet,
    Part,
    Presence,
    Token,
    TokenAck,
)
from semcast.wire import Codec, Malformed
from semcast.wire.datagrams import fingerprint
from semcast.wire.keyring import Cipher, Keyring
from semcast.wire.sealing import SealedCodec, Sealer
from semcast.wire.status import Contacts, Probe, Probed

GROWTH_KB = 48_000
"""What a member may grow by while it is under attack. Sockets are not in it: the kernel has those."""
_BURST = 32
TERMS = ring_settings(GroupSettings(), LOOPBACK_DATAGRAM).terms()
"""Those of the members, so that what is forged is not refused for that."""


class Attacker:
    """Sends to members and to their meeting point, and listens there."""

    def __init__(self, group: str, targets: Iterable[Address], seed: int = 1) -> None:
        self.rng = Random(seed)
        self.targets = [*targets, meeting_point(group)]
        self.sent = 0
        self._out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        loopback = socket.inet_aton("127.0.0.1")
        self._out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
        self._out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        self._spy = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._spy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._spy.bind(meeting_point(group))
        request = socket.inet_aton(meeting_point(group)[0]) + loopback
        self._spy.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        self._spy.settimeout(10)

    def close(self) -> None:
        self._out.close()
        self._spy.close()

    async def capture(self, count: int) -> list[bytes]:
        """Real datagrams of the group."""
        return [await asyncio.to_thread(self._spy.recv, 65_535) for _ in range(count)]

    async def fire(self, datagrams: Iterable[bytes]) -> int:
        """Send each to everybody, in bursts that leave the members time to breathe; returns how many."""
        fired = 0
        for fired, data in enumerate(datagrams, 1):
            for target in self.targets:
                self._out.sendto(data, target)
            if fired % _BURST == 0:
                await asyncio.sleep(0.001)
        self.sent += fired
        return fired


def mutations(rng: Random, real: list[bytes], count: int) -> Iterator[bytes]:
    """Real datagrams, damaged: cut, flipped, spliced, stretched."""
    for number in range(count):
        data = bytearray(rng.choice(real))
        kind = number % 5
        if kind == 0:
            del data[rng.randrange(len(data)) :]
        elif kind == 1:
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == 2:
            other = rng.choice(real)
            data = data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]
        elif kind == 3:
            data += rng.randbytes(rng.randrange(1, 2000))
        else:
            at = rng.randrange(len(data))
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        yield bytes(data)


def noise(rng: Random, count: int) -> Iterator[bytes]:
    """Random bytes of every length, the empty datagram and the largest among them."""
    yield b""
    yield rng.randbytes(65_507)
    for _ in range(count):
        yield rng.randbytes(rng.choice([1, 8, 9, 10, 64, 1400, 9000]))


def lies(rng: Random, group: str, count: int) -> Iterator[bytes]:
    """Well-formed frames of members that do not exist, with absurd numbers, sizes and counts."""
    codec = Codec(group, (), 60_000, RING_FRAMES)
    for number in range(count):
        ghost = MemberId(f"ghost {number % 40}", rng.randrange(1 << 40))
        huge = rng.choice([1, 1 << 31, 1 << 61])
        conf = ConfId(huge, ghost)
        crowd = [MemberId(f"crowd {each}") for each in range(rng.choice([1, 50, 1000]))]
        frames = [
            Packet(
                conf, huge, rng.randrange(1024), False, [Part(huge, [b"x"], None, rng.choice([0, 1 << 23]))]
            ),
            Token(conf, huge, huge, 0, -1, [(1, huge)], huge),
            FormToken(conf, 1, 1, crowd, [(ghost, conf)], []),
            Join(ConfId(1, ghost), 1, True, sorted({ghost, *crowd}), [], TERMS),
            AttemptJoin(ConfId(1, ghost), huge, True, TERMS),
            Presence(conf, TERMS),
            Leave(conf),
        ]
        yield from codec.encode(ghost, [frames[number % len(frames)]])


def assorted(group: str, member: MemberId) -> dict[str, list[bytes]]:
    """Datagrams by what must be said of them."""
    codec = Codec(group, (), 60_000, RING_FRAMES)
    good = codec.encode(MemberId("x"), [Presence(ConfId(1, MemberId("x")), TERMS)])[0]
    other = Codec(group + "!", (), 60_000, RING_FRAMES).encode(member, [Leave(ConfId(1, member))])[0]
    return {
        Malformed.VERSION.value: [bytes([version]) + good[1:] for version in (0, 2, 7, 255)] * 10,
        Malformed.GROUP.value: [other] * 40,
        Malformed.TRUNCATED.value: [good[:size] for size in range(9)] * 5,
        Malformed.BODY.value: [good[:9] + b"\xdd\xff\xff\xff\xff" * 3, good[:9] + b"\x91" * 5000, good[:-1]]
        * 15,
    }


async def stats(member: Process) -> dict[str, Any]:
    return await member.ask("stats")


async def grown(members: Iterable[Process], before: list[dict[str, Any]]) -> None:
    """None has grown by more than it may."""
    for member, earlier in zip(members, before, strict=True):
        now = await stats(member)
        growth = now["rss_kb"] - earlier["rss_kb"]
        assert growth < GROWTH_KB, f"{member.name} grew by {growth} kB"


async def under_attack(cluster: Cluster, attacks: Iterable[Iterable[bytes]], attacker: Attacker) -> None:
    """The group works while it lasts, and afterwards all are together and nothing was lost."""
    members = list(cluster.members.values())
    before = [await stats(member) for member in members]
    await cluster.traffic(rate=500)
    for attack in attacks:
        await attacker.fire(attack)
    await cluster.settle()
    await grown(members, before)


def views_of(cluster: Cluster) -> set[str]:
    """The names of those in the last view of each member."""
    views = [member.said("view")[-1]["members"] for member in cluster.members.values()]
    return {"".join(sorted(members)) for members in views}


async def open_attacker(cluster: Cluster) -> Attacker:
    addresses: list[Address] = []
    for member in cluster.members.values():
        host, port = (await stats(member))["address"]
        addresses.append((host, port))
    return Attacker(cluster.group, addresses)


def test_garbage_is_counted_by_kind_and_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), Cluster(tmp_path) as cluster:
            await cluster.start(*"abc")
            await cluster.together()
            attacker = await open_attacker(cluster)
            try:
                views = [len(member.said("view")) for member in cluster.members.values()]
                name, incarnation = cluster["a"].said("joined")[0]["member"]
                kinds = assorted(cluster.group, MemberId(name, incarnation))
                for datagrams in kinds.values():
                    await attacker.fire(datagrams)
                fired = await attacker.fire(noise(attacker.rng, 500))
                await under_attack(cluster, [], attacker)
                for member in cluster.members.values():
                    counted = (await stats(member))["malformed"]
                    for kind, datagrams in kinds.items():
                        assert counted.get(kind, 0) >= 2 * len(datagrams), (
                            kind
                        )  # at its own and at the meeting point
                    assert sum(counted.values()) >= 2 * attacker.sent - 2 * fired // 50
                assert views == [len(member.said("view")) for member in cluster.members.values()]
            finally:
                attacker.close()
            await cluster.finish()

    asyncio.run(run())


@pytest.mark.parametrize("seed", [1, 2])
def test_real_datagrams_damaged_and_repeated(tmp_path: Path, seed: int) -> None:
    """Without a key anybody may say anything: views may come and go, and come to rest."""

    async def run() -> None:
        async with asyncio.timeout(60), Cluster(tmp_path) as cluster:
            await cluster.start(*"abc")
            await cluster.together()
            attacker = await open_attacker(cluster)
            attacker.rng.seed(seed)
            try:
                real = await attacker.capture(12)
                replays = [real, reversed(real), real * 20]
                attacks = [mutations(attacker.rng, real, 1500), *replays, mutations(attacker.rng, real, 500)]
                await under_attack(cluster, attacks, attacker)
                for member in cluster.members.values():
                    counted = await stats(member)
                    assert sum(counted["malformed"].values()) > 1000
            finally:
                attacker.close()
            await cluster.quiet()
            await cluster.exchange_marks()
            await cluster.leave()

    asyncio.run(run())


def test_ghosts_and_absurd_claims(tmp_path: Path) -> None:
    """A flood of joins, tokens and packets of members that are not there: the real ones meet again."""

    async def run() -> None:
        async with asyncio.timeout(60), Cluster(tmp_path) as cluster:
            await cluster.start(*"abc")
            await cluster.together()
            attacker = await open_attacker(cluster)
            try:
                await under_attack(cluster, [lies(attacker.rng, cluster.group, 2000)], attacker)
            finally:
                attacker.close()
            await cluster.quiet()
            await cluster.exchange_marks()
            assert views_of(cluster) == {"abc"}
            await cluster.leave()

    asyncio.run(run())


def ghosts(rng: Random, group: str, count: int) -> Iterator[bytes]:
    """Harmless words, each of somebody else who does not exist."""
    codec = Codec(group, (), 60_000, RING_FRAMES)
    for _ in range(count):
        ghost = MemberId(f"ghost {rng.randrange(1 << 30)}", 1)
        yield from codec.encode(ghost, [TokenAck(ConfId(1, ghost), 1)])


def test_ghosts_take_nobodys_place(tmp_path: Path) -> None:
    """Thousands of names that were never there, said from one socket: no member forgets another."""

    async def run() -> None:
        async with asyncio.timeout(60), Cluster(tmp_path) as cluster:
            await cluster.start(*"abc")
            await cluster.together()
            attacker = await open_attacker(cluster)
            try:
                views = [len(member.said("view")) for member in cluster.members.values()]
                await under_attack(cluster, [ghosts(attacker.rng, cluster.group, 5000)], attacker)
                assert views == [len(member.said("view")) for member in cluster.members.values()]
            finally:
                attacker.close()
            await cluster.finish()

    asyncio.run(run())


def test_who_speaks_for_a_member_from_elsewhere_is_not_believed(tmp_path: Path) -> None:
    """On one host, without a key: a member has one address, and only what comes from there is its word."""

    async def run() -> None:
        async with asyncio.timeout(60), Cluster(tmp_path) as cluster:
            await cluster.start(*"abc")
            await cluster.together()
            attacker = await open_attacker(cluster)
            try:
                views = [len(member.said("view")) for member in cluster.members.values()]
                codec = Codec(cluster.group, (), 60_000, RING_FRAMES)
                fakes = []
                for member in cluster.members.values():
                    me = MemberId(*member.said("joined")[0]["member"])
                    last = member.said("view")[-1]
                    leader = MemberId(last["members"][0], last["incarnations"][0])
                    fakes += codec.encode(me, [Leave(ConfId(last["number"], leader))])
                await under_attack(cluster, [fakes * 20], attacker)
                assert views == [len(member.said("view")) for member in cluster.members.values()]
                for member in cluster.members.values():
                    counted = (await stats(member))["malformed"]
                    assert counted[Malformed.ELSEWHERE.value] >= 40
            finally:
                attacker.close()
            await cluster.finish()

    asyncio.run(run())


def test_a_datagram_that_claims_to_be_from_its_receiver(tmp_path: Path) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), Cluster(tmp_path) as cluster:
            await cluster.start(*"ab")
            await cluster.together()
            attacker = await open_attacker(cluster)
            try:
                codec = Codec(cluster.group, (), 60_000, RING_FRAMES)
                fakes = []
                for member in cluster.members.values():
                    me = MemberId(*member.said("joined")[0]["member"])
                    conf = ConfId(member.said("view")[-1]["number"], me)
                    fakes += codec.encode(me, [Presence(conf, TERMS), Token(conf, 9, 9, 9, -1, [], 0)])
                await under_attack(cluster, [fakes * 50], attacker)
            finally:
                attacker.close()
            await cluster.quiet()
            await cluster.exchange_marks()
            assert views_of(cluster) == {"ab"}
            await cluster.leave()

    asyncio.run(run())


@pytest.mark.parametrize("keyed", [False, True], ids=["open", "sealed"])
def test_a_flood_is_survived(tmp_path: Path, keyed: bool) -> None:
    """As fast as one process can send, for a moment: what does not fit in the socket is asked for."""

    async def run() -> None:
        key = new_key(Cipher.AES_256_GCM)
        save_keyring(tmp_path / "keys.toml", Keyring([key], key.id), replace=False)
        settings = {"key_file": str(tmp_path / "keys.toml")} if keyed else {}
        async with asyncio.timeout(60), Cluster(tmp_path, **settings) as cluster:
            await cluster.start(*"abc")
            await cluster.together()
            attacker = await open_attacker(cluster)
            try:
                real = await attacker.capture(6)
                # Without a key anybody can say that members come and go, and it would be believed.
                kin = [*real, *mutations(attacker.rng, real, 30)] if keyed else []
                flood = [*kin, *noise(attacker.rng, 30 if keyed else 60)] * 200
                await cluster.traffic(rate=300)
                before = [await stats(member) for member in cluster.members.values()]
                await asyncio.to_thread(blast, attacker, flood)
                await cluster.settle()
                await grown(cluster.members.values(), before)
                for member in cluster.members.values():
                    counted = await stats(member)
                    assert sum(counted["malformed"].values()) > 1000
                    if keyed:
                        assert set(counted["malformed"]) <= HARMLESS
            finally:
                attacker.close()
            await cluster.finish()

    asyncio.run(run())


@pytest.mark.parametrize("keyed", [False, True], ids=["open", "sealed"])
def test_a_flood_that_lasts_changes_no_view(tmp_path: Path, keyed: bool) -> None:
    """Small datagrams for seconds, as many as a process can send: the kernel keeps them from the members."""

    async def run() -> None:
        key = new_key(Cipher.AES_256_GCM)
        save_keyring(tmp_path / "keys.toml", Keyring([key], key.id), replace=False)
        settings: dict[str, Any] = {"token_loss": "2s"}
        if keyed:
            settings |= {"key_file": str(tmp_path / "keys.toml"), "bind": "127.0.0.1:0"}
        async with asyncio.timeout(60), Cluster(tmp_path, **settings) as cluster:
            await cluster.start(*"abc")
            await cluster.together()
            attacker = await open_attacker(cluster)
            try:
                real = await attacker.capture(6) if keyed else []
                flood = [*real, *noise(attacker.rng, 30)] * 100
                await cluster.traffic(rate=200)
                await cluster.flowing()
                views = [len(member.said("view")) for member in cluster.members.values()]
                before = [await stats(member) for member in cluster.members.values()]
                async with asyncio.timeout(30):
                    until = asyncio.get_running_loop().time() + 3
                    while asyncio.get_running_loop().time() < until:
                        await asyncio.to_thread(blast, attacker, flood)
                await cluster.flowing()
                assert views == [len(member.said("view")) for member in cluster.members.values()]
                await grown(cluster.members.values(), before)
                for member in cluster.members.values():
                    assert (await stats(member))["kept_out"] > 0
            finally:
                attacker.close()
            await cluster.finish()

    asyncio.run(run())


def test_a_key_that_is_not_ours_and_words_of_the_drivers(tmp_path: Path) -> None:
    """Sealed with another key; pieces that make nothing; addresses that are none; probes; names too long."""

    async def run() -> None:
        settings = {"token_loss": "2s"}  # the attack takes up the processor, too
        async with asyncio.timeout(60), Cluster(tmp_path, **settings) as cluster:
            await cluster.start(*"abc")
            await cluster.together()
            attacker = await open_attacker(cluster)
            try:
                views = [len(member.said("view")) for member in cluster.members.values()]
                attacks = [drivers_words(attacker.rng, cluster.group, 1500)]
                await under_attack(cluster, attacks, attacker)
                assert views == [len(member.said("view")) for member in cluster.members.values()]
                for member in cluster.members.values():
                    counted = (await stats(member))["malformed"]
                    assert counted[Malformed.SEALED.value] > 100
                    assert counted[Malformed.BODY.value] > 100
            finally:
                attacker.close()
            await cluster.finish()

    asyncio.run(run())


def drivers_words(rng: Random, group: str, count: int) -> Iterator[bytes]:
    """What no stack ever sees, with absurd contents."""
    codec = Codec(group, (), 60_000, RING_FRAMES)
    key = new_key(Cipher.AES_256_GCM)
    sealer = Sealer(
        Keyring([key], key.id), fingerprint(group, ()), "x", rng.randbytes, time.time_ns() // 10**6
    )
    sealed = SealedCodec(codec, sealer)
    ghost = MemberId("ghost", 1)
    places = ["0.0.0.0", "255.255.255.255", "224.0.0.1", "::", "ff02::1", "x" * 64, "127.0.0.1", "::1"]  # noqa: S104
    for number in range(count):
        kind = number % 5
        if kind == 0:
            yield from sealed.encode(ghost, [Leave(ConfId(1, ghost))])
        elif kind == 1:
            whole = cut(rng.randbytes(rng.choice([900, 5000])), 500, codec.group, rng.randrange(1 << 20))
            yield rng.choice([*whole, whole[0][: rng.randrange(len(whole[0]))], whole[0] + b"more"])
        elif kind == 2:
            known = [
                (MemberId(f"n{each}"), rng.choice(places), rng.choice([1, 9, 65_535])) for each in range(60)
            ]
            yield from codec.encode(ghost, [Contacts(known)])
        elif kind == 3:
            probe = Probe(rng.randrange(1 << 61), bytes(rng.choice([0, 1300, 50_000])))
            yield from codec.encode(ghost, [probe, Probed(rng.randrange(1 << 61))])
        else:
            yield from codec.encode(MemberId("n" * rng.choice([65, 30_000]), 1), [Leave(ConfId(1, ghost))])


HARMLESS = {
    each.value
    for each in (
        Malformed.TRUNCATED,
        Malformed.VERSION,
        Malformed.GROUP,
        Malformed.UNSEALED,
        Malformed.KEY,
        Malformed.FORGED,
        Malformed.REPLAYED,
        Malformed.STALE,
    )
}


def blast(attacker: Attacker, flood: list[bytes]) -> None:
    for data in flood:
        for target in attacker.targets:
            attacker._out.sendto(data, target)


def test_a_datagram_from_port_zero_does_not_end_a_member(tmp_path: Path) -> None:
    """It cannot be answered: the kernel refuses to send there."""
    if os.geteuid() != 0:
        pytest.skip("only root may send from port 0")

    async def run() -> None:
        async with asyncio.timeout(60), Cluster(tmp_path) as cluster:
            await cluster.start(*"ab")
            await cluster.together()
            with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as raw:
                ghost = MemberId("zero")
                [data] = Codec(cluster.group, (), 1400, RING_FRAMES).encode(
                    ghost, [AttemptJoin(ConfId(1, ghost), 1, True, TERMS)]
                )
                for member in cluster.members.values():
                    host, port = (await stats(member))["address"]
                    header = struct.pack(">HHHH", 0, port, 8 + len(data), 0)
                    for _ in range(5):
                        raw.sendto(header + data, (host, 0))
            await cluster.flowing()
            await cluster.together()
            await cluster.finish()

    asyncio.run(run())


def test_every_frame_type_is_in_the_lies() -> None:
    """A reminder: whoever adds a frame to the ring lets ghosts send it."""
    codec = Codec("g", (), 60_000, RING_FRAMES)
    seen = set()
    for data in lies(Random(1), "g", 70):
        datagram = codec.decode(data)
        assert not isinstance(datagram, Malformed)
        seen |= {type(frame) for frame in datagram.frames}
    assert seen == {Packet, Token, FormToken, Join, AttemptJoin, Presence, Leave}
