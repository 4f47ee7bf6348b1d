"""Whether anybody answers at the address of a cluster: Spark itself would try for a minute, or for ten."""

import socket

from semcast.pipeline.failures import ClusterError, failures, told

CONNECT = "sc://"
"""How addresses of Spark Connect servers begin."""

STANDALONE = "spark://"
"""And those of standalone masters: one, or several that stand in for each other, `spark://a:7077,b:7077`."""

ANSWER_SECONDS = 20.0
"""The longest that anybody may take to answer."""


def reach_master(address: str) -> None:
    """Make sure that a standalone master listens at one of the addresses.

    Raises:
        ClusterError: none does.
    """
    reasons = []
    for one in address.removeprefix(STANDALONE).split(","):
        host, _, port = one.rpartition(":")
        if not host or not port.isdigit():
            raise ClusterError(f"{address}: the address of a master is spark://host:port")
        try:
            socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
        except (OSError, OverflowError) as error:
            reasons.append(getattr(error, "strerror", None) or str(error))
        else:
            return
    raise ClusterError(f"{address}: no Spark master answers there: {', '.join(reasons)}")


def reach_server(address: str) -> None:
    """Make sure that there is a Spark Connect server.

    Raises:
        ClusterError: there is none, or its client is not installed.
    """
    try:
        import grpc  # type: ignore[import-not-found, import-untyped, unused-ignore] # noqa: PLC0415
    except ImportError as error:
        raise ClusterError(
            f"{address}: Spark Connect needs grpcio: pip install 'pyspark[connect]'"
        ) from error
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415 (needs grpcio)

    try:
        channel = DefaultChannelBuilder(address).toChannel()
        try:
            grpc.channel_ready_future(channel).result(timeout=ANSWER_SECONDS)
        finally:
            channel.close()
    except grpc.FutureTimeoutError as error:
        raise ClusterError(f"{address}: no Spark Connect server answers there") from error
    except failures() as error:
        raise ClusterError(f"{address}: {told(error)}") from error
