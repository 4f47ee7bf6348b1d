"""Metrics of a server for Prometheus."""

from collections import Counter

from semcast.server.interface import Database


class Counts:
    """Of requests."""

    def __init__(self) -> None:
        self.under_way = 0
        self.by_status: Counter[int] = Counter()

    def answered(self, status: int) -> None:
        """A request is about to be answered."""
        self.by_status[status] += 1


def exposition(database: Database, counts: Counts) -> str:
    """The text that Prometheus reads: counts of requests, and every number and truth of the status."""
    label = f'database="{_escape(database.name)}"'
    lines = [
        "# HELP semcast_http_requests_total Requests answered, by status.",
        "# TYPE semcast_http_requests_total counter",
        *(
            f'semcast_http_requests_total{{{label},status="{status}"}} {count}'
            for status, count in sorted(counts.by_status.items())
        ),
        "# HELP semcast_http_requests_under_way Requests that are not answered yet.",
        "# TYPE semcast_http_requests_under_way gauge",
        f"semcast_http_requests_under_way{{{label}}} {counts.under_way}",
    ]
    for name, value in database.status().items():
        if isinstance(value, int | float):
            lines += [
                f"# TYPE semcast_database_{name} gauge",
                f"semcast_database_{name}{{{label}}} {float(value):g}",
            ]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
