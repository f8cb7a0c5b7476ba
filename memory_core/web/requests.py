"""The answers of a server: they are counted, and shown to Prometheus.

Labels are methods, routes and statuses, of which there are few: a route is the template of a path, such as
`/v1/records/{id}`, and never a path with a name or an id in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper limits in seconds; the last bucket has what takes longer."""
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER: Final = "other"


class Requests:
    """Counts of what was answered since the start. Used on the server's loop only."""

    def __init__(self) -> None:
        self.in_progress = 0
        self._answered: Counter[tuple[str, str, int]] = Counter()
        self._in_bucket: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._answered[method if method in METHODS else OTHER, route, status] += 1
        counts = self._in_bucket.setdefault(route, [0] * (len(BUCKETS) + 1))
        counts[sum(limit < seconds for limit in BUCKETS)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """The counts in Prometheus' form."""
        yield from metric("memory_core_http_requests_in_progress", "gauge", {"": self.in_progress})
        yield from metric(
            "memory_core_http_requests_total",
            "counter",
            {
                _labels(method=method, route=route, status=str(status)): count
                for (method, route, status), count in sorted(self._answered.items())
            },
        )
        name = "memory_core_http_request_duration_seconds"
        yield f"# TYPE {name} histogram"
        for route, counts in sorted(self._in_bucket.items()):
            for limit, total in zip((*map(str, BUCKETS), "+Inf"), accumulate(counts), strict=True):
                yield f"{name}_bucket{_labels(route=route, le=limit)} {total}"
            yield f"{name}_sum{_labels(route=route)} {self._seconds[route]:.6f}"
            yield f"{name}_count{_labels(route=route)} {sum(counts)}"


def metric(name: str, kind: str, values: Mapping[str, float]) -> Iterator[str]:
    """A metric in Prometheus' form; `values` by labels as they are written."""
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{labels} {value:g}" if isinstance(value, float) else f"{name}{labels} {value}"


def _labels(**values: str) -> str:
    """Labels, whose values are names of this program or templates of paths."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in values.items()) + "}"
