"""What travels: typed frames, and datagrams that pack many of them."""

from semcast.wire.annotations import WireAnnotation, from_wire, to_wire
from semcast.wire.datagrams import VERSION, Codec, Datagram, DatagramCodec, Malformed
from semcast.wire.limits import MAX_PAYLOAD, check_message
from semcast.wire.semantic import (
    ChannelAck,
    ChannelData,
    Data,
    Gossip,
    Notice,
    Request,
    Round,
)

__all__ = [
    "MAX_PAYLOAD",
    "VERSION",
    "ChannelAck",
    "ChannelData",
    "Codec",
    "Data",
    "Datagram",
    "DatagramCodec",
    "Gossip",
    "Malformed",
    "Notice",
    "Request",
    "Round",
    "WireAnnotation",
    "check_message",
    "from_wire",
    "to_wire",
]
