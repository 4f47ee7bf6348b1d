"""What travels: datagrams that pack many frames. The frames themselves stand with their families."""

from semcast.wire.annotations import WireAnnotation, from_wire, to_wire
from semcast.wire.datagrams import VERSION, Codec, DatagramCodec, Malformed
from semcast.wire.decoded import Datagram
from semcast.wire.limits import MAX_PAYLOAD, check_message

__all__ = [
    "MAX_PAYLOAD",
    "VERSION",
    "Codec",
    "Datagram",
    "DatagramCodec",
    "Malformed",
    "WireAnnotation",
    "check_message",
    "from_wire",
    "to_wire",
]
