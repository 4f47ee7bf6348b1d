"""Sealed datagrams: authentic and new, or refused with a reason."""

import random
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core import MemberId
from semcast.core.outbox import Frame
from semcast.protocols.semantic.frames import FRAMES as SEMANTIC_FRAMES
from semcast.protocols.semantic.frames import Request
from semcast.wire import Codec, Datagram, Malformed
from semcast.wire.datagrams import fingerprint
from semcast.wire.keyring import Cipher, Key, Keyring, KeyringError, keyring_from
from semcast.wire.sealing import OVERHEAD, RENEWAL, SealedCodec, Sealer, derive
from semcast.wire.sessions import GRACE, MAX_NAMES, TOLERANCE, WINDOW, Session, Sessions, Window

NOW = 1_800_000_000_000
SECRET = bytes(range(32))
KEY = Key("00000001", Cipher.AES_256_GCM, SECRET)
OTHER = Key("00000002", Cipher.CHACHA20_POLY1305, SECRET[::-1])
RING = Keyring([KEY], KEY.id)
BOTH = Keyring([KEY, OTHER], KEY.id)
FRAMES: list[Frame] = [Request(0, [(1, 3)]), Request(1, [(2, 2)])]
LABEL_BYTES = 29

_seeds = count()


def member(
    name: str, keyring: Keyring = RING, *, now: int = NOW, group: str = "prices", limit: int = 1400
) -> SealedCodec:
    """A process that starts now: its sessions are named at random, and differently each time."""
    entropy = random.Random(next(_seeds)).randbytes
    return SealedCodec(
        Codec(group, (), limit - OVERHEAD, SEMANTIC_FRAMES),
        Sealer(keyring, fingerprint(group, ()), name, entropy, now),
    )


def says(codec: SealedCodec, name: str, incarnation: int = 0) -> bytes:
    [datagram] = codec.encode(MemberId(name, incarnation), FRAMES)
    return datagram


def heard(codec: SealedCodec, datagram: bytes) -> bool:
    return isinstance(codec.decode(datagram), Datagram)


@pytest.mark.parametrize("key", [KEY, OTHER], ids=lambda key: key.cipher.value)
def test_what_is_sealed_opens(key: Key) -> None:
    p, q = member("p", Keyring([key], key.id)), member("q", Keyring([key], key.id))
    for _ in range(3):
        assert q.decode(says(p, "p")) == Datagram(MemberId("p"), FRAMES)


def test_datagrams_keep_to_the_limit_and_show_nothing() -> None:
    p, q = member("secretive"), member("q")
    datagrams = p.encode(MemberId("secretive"), [Request(0, [(1, 3)] * 50)] * 100)
    assert len(datagrams) > 3
    assert all(len(datagram) <= 1400 for datagram in datagrams)
    assert max(map(len, datagrams)) > 1200
    assert not any(b"secretive" in datagram for datagram in datagrams)
    assert all(heard(q, datagram) for datagram in datagrams)


def test_no_byte_can_be_changed() -> None:
    p, q = member("p"), member("q")
    for known in (False, True):  # the session, at the second time
        datagram = says(p, "p")
        for at in range(len(datagram)):
            for flip in (0x01, 0x80):
                damaged = bytearray(datagram)
                damaged[at] ^= flip
                assert isinstance(q.decode(bytes(damaged)), Malformed), (known, at)
        assert heard(q, datagram)


def test_no_byte_can_be_left_out_or_added() -> None:
    p, q = member("p"), member("q")
    for _ in range(2):
        datagram = says(p, "p")
        for size in range(len(datagram)):
            expected = Malformed.TRUNCATED if size < OVERHEAD else Malformed.FORGED
            assert q.decode(datagram[:size]) is expected
        assert q.decode(datagram + b"\0") is Malformed.FORGED
        assert heard(q, datagram)


def test_a_datagram_is_heard_once() -> None:
    p, q = member("p"), member("q")
    datagrams = [says(p, "p") for _ in range(10)]
    assert all(heard(q, datagram) for datagram in datagrams)
    assert {q.decode(datagram) for datagram in datagrams} == {Malformed.REPLAYED}


def test_datagrams_may_overtake_each_other_within_the_window() -> None:
    p, q = member("p"), member("q")
    datagrams = [says(p, "p") for _ in range(WINDOW + 1)]
    assert heard(q, datagrams[-1])
    shuffled = datagrams[1:-1]
    random.Random(7).shuffle(shuffled)
    assert all(heard(q, datagram) for datagram in shuffled)
    assert q.decode(datagrams[0]) is Malformed.REPLAYED, "too old: nobody knows whether it came before"
    assert {q.decode(datagram) for datagram in datagrams} == {Malformed.REPLAYED}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.integers(0, 3 * WINDOW) | st.integers(0, 80) | st.sampled_from([2**40, 2**64 - 1]), max_size=60
    )
)
def test_the_window_agrees_with_a_set(counters: list[int]) -> None:
    window, seen = Window(), set[int]()
    for counter in counters:
        expected = counter not in seen and (not seen or counter > max(seen) - WINDOW)
        assert window.fresh(counter) == expected
        if expected:
            window.mark(counter)
            seen.add(counter)


def test_strangers_are_refused_by_reason() -> None:
    p = member("p")
    unsealed = Codec("prices", (), 1400, SEMANTIC_FRAMES)
    same_id = Key(KEY.id, Cipher.AES_256_GCM, SECRET[::-1])
    assert p.decode(unsealed.encode(MemberId("q"), FRAMES * 20)[0]) is Malformed.UNSEALED
    assert unsealed.decode(says(p, "p")) is Malformed.SEALED
    assert p.decode(says(member("q", Keyring([OTHER], OTHER.id)), "q")) is Malformed.KEY
    assert p.decode(says(member("q", Keyring([same_id], same_id.id)), "q")) is Malformed.FORGED
    assert p.decode(says(member("q", group="news"), "q")) is Malformed.GROUP
    assert p.decode(b"\x07" + says(member("q"), "q")[1:]) is Malformed.VERSION
    assert p.decode(b"") is Malformed.TRUNCATED
    assert len(p.sealer.sessions) == 1, "none of them left a trace"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, LABEL_BYTES + 8))
def test_random_bytes_never_raise_and_never_open(data: bytes, honest: int) -> None:
    p, q = member("p"), member("q")
    first = says(p, "p")
    assert isinstance(q.decode(data), Malformed)
    assert isinstance(q.decode(first[:honest] + data), Malformed)
    assert heard(q, first)
    assert isinstance(q.decode(first[:honest] + data), Malformed)
    assert len(q.sealer.sessions) == 2


def test_nonces_never_repeat() -> None:
    """Restarts at the same moment, under the same name and key; renewals; rotations back and forth."""
    seen = set[tuple[bytes, bytes]]()
    sent = 0
    for _ in range(20):
        p = member("p", BOTH)
        for step in range(6):
            for _ in range(5):
                datagram = says(p, "p")
                seen.add((datagram[:LABEL_BYTES], datagram[LABEL_BYTES : LABEL_BYTES + 8]))
                sent += 1
            if step % 2:
                p.sealer.tend(NOW + step * RENEWAL)
            else:
                p.sealer.rotate(BOTH.using(OTHER.id if p.sealer.keyring.sealing == KEY else KEY.id))
    assert len(seen) == sent


def test_each_session_and_cipher_has_a_secret_of_its_own() -> None:
    twin = Key(KEY.id, Cipher.CHACHA20_POLY1305, SECRET)
    made = [derive(key, label) for key in (KEY, twin) for label in (b"a", b"b")]
    sealed = {each.encrypt(bytes(12), b"text", None) for each in made}
    assert len(sealed) == 4


def test_a_restart_and_what_was_before_it() -> None:
    q = member("q")
    before = member("p")
    old = [says(before, "p", 1) for _ in range(3)]
    assert heard(q, old[0])
    after = member("p", now=NOW + 5000)
    assert heard(q, says(after, "p", 2))
    assert heard(q, old[1]), "may have been under way"
    q.sealer.tend(NOW + GRACE)
    assert q.decode(old[2]) is Malformed.STALE
    assert q.decode(old[1]) is Malformed.STALE
    assert heard(q, says(after, "p", 2))


def test_a_receiver_that_restarted_refuses_what_its_peers_said_in_former_sessions() -> None:
    p = member("p")
    old = says(p, "p")
    p.sealer.tend(NOW + RENEWAL)
    receiver = member("q", now=NOW + RENEWAL)
    assert heard(receiver, says(p, "p"))
    assert receiver.decode(old) is Malformed.STALE


def test_nobody_replays_to_a_member_what_it_said_in_a_former_life() -> None:
    old = says(member("p"), "p", 1)
    assert member("p", now=NOW + 1).decode(old) is Malformed.STALE


def test_a_member_hears_itself_at_the_meeting_point() -> None:
    p = member("p")
    assert heard(p, says(p, "p"))


@pytest.mark.parametrize(("behind", "welcome"), [(TOLERANCE, True), (TOLERANCE + 1, False)])
@pytest.mark.parametrize("sign", [-1, 1])
def test_clocks_may_differ_by_a_day(behind: int, welcome: bool, sign: int) -> None:
    p, q = member("p", now=NOW + sign * behind), member("q")
    assert heard(q, says(p, "p")) == welcome
    if not welcome:
        assert q.decode(says(p, "p")) is Malformed.STALE


@pytest.mark.parametrize("jump", [-3 * TOLERANCE, -3_600_000, 3_600_000, 3 * TOLERANCE])
def test_a_clock_that_jumps_while_the_group_runs(jump: int) -> None:
    p, q = member("p"), member("q")
    assert heard(q, says(p, "p"))
    for now in (NOW + jump, NOW + jump + 1000, NOW + 2000, NOW + 3000):
        for codec in (p, q):
            codec.sealer.tend(now)
        assert heard(q, says(p, "p"))
        assert heard(p, says(q, "q"))


def test_a_living_session_is_renewed() -> None:
    p, q = member("p"), member("q")
    labels = set[bytes]()
    for minute in range(60):
        p.sealer.tend(NOW + minute * 60_000)
        datagram = says(p, "p")
        labels.add(datagram[:LABEL_BYTES])
        assert heard(q, datagram)
        q.sealer.tend(NOW + minute * 60_000)
    assert len(labels) == 6
    assert len(q.sealer.sessions) <= 3, "its own, p's, and perhaps the one before"


def test_keys_turn_over_without_a_gap() -> None:
    """First all can open with the new key, then all seal with it, then the old one goes."""
    members = {"p": member("p"), "q": member("q")}

    def all_hear_all() -> bool:
        return all(
            heard(other, says(codec, name))
            for name, codec in members.items()
            for peer, other in members.items()
            if peer != name
        )

    for ring in (BOTH, BOTH.using(OTHER.id), Keyring([OTHER], OTHER.id)):
        for codec in members.values():
            assert all_hear_all()
            codec.sealer.rotate(ring)
    assert all_hear_all()


def test_a_key_that_is_gone_opens_nothing_until_it_is_back() -> None:
    p, q = member("p"), member("q", BOTH)
    first = says(p, "p")
    assert heard(q, first)
    q.sealer.rotate(Keyring([OTHER], OTHER.id))
    assert q.decode(says(p, "p")) is Malformed.KEY
    q.sealer.rotate(BOTH)
    assert heard(q, says(p, "p"))
    assert q.decode(first) is Malformed.REPLAYED


def test_the_sessions_are_bounded_and_who_was_forgotten_is_not_replayed() -> None:
    sessions = Sessions(NOW)
    aead = derive(KEY, b"")
    for at in range(MAX_NAMES + 10):
        assert sessions.admit(f"m{at}", Session(b"%d" % at, NOW + at, KEY, aead))
    assert len(sessions) == MAX_NAMES
    assert not sessions.admit("m3", Session(b"3", NOW + 3, KEY, aead))
    assert sessions.admit("m3", Session(b"again", NOW + MAX_NAMES, KEY, aead)), "a renewed one is let in"


def test_a_peer_that_seals_nonsense_is_refused() -> None:
    p, q = member("p"), member("q")
    assert q.decode(p.sealer.seal(b"nonsense of some length")) is Malformed.VERSION
    assert heard(q, says(p, "p"))
    assert q.decode(p.sealer.seal(b"")) is Malformed.TRUNCATED


def test_secrets_do_not_show() -> None:
    shown = repr(KEY) + str(KEY) + repr(BOTH) + str(BOTH) + repr(member("p").sealer)
    assert repr(SECRET)[2:-1] not in shown
    assert SECRET.hex() not in shown
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({}, "no \\[\\[keys"),
        ({"keys": []}, "`use`"),
        ({"keys": [], "use": "00000001"}, "0 keys"),
        ({"keys": [5], "use": "00000001"}, "key 1 is not a table"),
        ({"keys": [{"id": "00000001"}], "use": "00000001"}, "key 1 has no cipher"),
        ({"keys": [{"id": "TOPSECRET", "cipher": "", "secret": ""}], "use": ""}, "key 1: the id"),
        (
            {"keys": [{"id": "00000001", "cipher": "TOPSECRET", "secret": ""}], "use": ""},
            "00000001: the cipher",
        ),
        (
            {"keys": [{"id": "00000001", "cipher": "aes-256-gcm", "secret": "TOPSECRET!"}], "use": ""},
            "not base64",
        ),
        (
            {"keys": [{"id": "00000001", "cipher": "aes-256-gcm", "secret": "AAAA"}], "use": ""},
            "3 bytes, not 32",
        ),
        (
            {
                "keys": [{"id": "00000001", "cipher": "aes-256-gcm", "secret": "A" * 43 + "="}],
                "use": "TOPSECRET",
            },
            "`use` names none",
        ),
        (
            {"keys": [{"id": "00000001", "cipher": "aes-256-gcm", "secret": "A" * 43 + "="}] * 2, "use": ""},
            "same id",
        ),
    ],
)
def test_a_broken_keyring_is_described_and_not_quoted(document: dict[str, object], complaint: str) -> None:
    with pytest.raises(KeyringError, match=complaint) as caught:
        keyring_from(document)
    assert "TOPSECRET" not in str(caught.value)
