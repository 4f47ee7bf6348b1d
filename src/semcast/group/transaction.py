"""`Group.transaction()`: assignments to several items, which everybody sees together."""

import msgspec

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, bytes]).decode


def payload_of(values: dict[str, bytes]) -> bytes:
    """The message that carries them."""
    for item, value in values.items():
        if not isinstance(item, str) or not isinstance(value, bytes):
            raise TypeError(f"{item!r}: an item must be a string, and its value bytes")
    return _encode(values)


def assignments(payload: bytes) -> dict[str, bytes]:
    """The values that a transaction set, by item. ValueError if the payload is not a transaction.

    >>> assignments(payload_of({"bid": b"159", "ask": b"161"}))
    {'bid': b'159', 'ask': b'161'}
    """
    try:
        return _decode(payload)
    except msgspec.MsgspecError as error:
        raise ValueError(f"this is not what a transaction sent: {error}") from None
