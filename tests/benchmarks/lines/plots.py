"""The pictures of the page, from results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from charts import Series, chart
from lines.figure import Figure
from lines.result import Result

_STORES: Final = {
    "search": "one search of an owner of n records, ms",
    "first search": "first search after opening, ms",
    "add": "one add, ms",
    "memory": "memory of a process that searches, MB",
    "disk": "on disk, MB",
}
"""By measure, the title."""


def plots(results: Mapping[str, Result]) -> dict[str, str]:
    """SVG by file name."""
    found: dict[str, str] = {}
    if "peers" in results:
        for measure, title in _STORES.items():
            if series := by_size(measure, results["peers"].figures):
                found[f"growth-{measure.split()[0]}.svg"] = chart(title, "records", series)
    if writers := by_writers(results):
        found["adds.svg"] = chart("durable adds a second", "writers", writers)
    return found


def by_size(measure: str, figures: Sequence[Figure]) -> list[Series]:
    """A line for each store, ours first."""
    lines: dict[str, dict[float, float]] = {"memory-core": {}}
    for each in figures:
        what, size = each.name.split(", ", 1)
        if what == measure and each.other is not None:
            for store, value in (("memory-core", each.ours), (each.beside, each.other)):
                if value > 0:
                    lines.setdefault(store, {})[float(size.replace(",", ""))] = value
    return [(store, sorted(points.items())) for store, points in lines.items() if points]


def by_writers(results: Mapping[str, Result]) -> list[Series]:
    """Ours, raw SQLite and LangGraph's store, as far as they were measured."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for name in ("insert", "langgraph"):
        for each in results[name].figures if name in results else ():
            writers = float(each.name.split()[0])
            if name == "insert":
                lines.setdefault("memory-core", []).append((writers, each.ours))
            if each.other is not None:
                lines.setdefault(each.beside.replace("`", ""), []).append((writers, each.other))
    return [*lines.items()]
