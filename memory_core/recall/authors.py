"""Nobody buys the block: among several authors, a stranger's lines beyond a third give way to those of others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from memory_core.models import MemoryRecord
from memory_core.recall.line import Line

FEWEST_AUTHORS: Final = 3
"""With fewer authors of relevant hits nobody's share is limited: in a dialogue half of the lines are of one person."""
COMPARABLE: Final = 0.4
"""A line gives way to lines of others with at least this share of its worth."""


def in_fair_order(lines: Sequence[Line], is_trusted: Callable[[MemoryRecord], bool]) -> tuple[list[Line], set[str]]:
    """The same lines in an order in which an author has at most a third of every first few lines.

    A line stays where it is if its author is trusted, if fewer than three authors have comparable lines, or if no line of
    somebody else is comparable.

    Args:
        lines: Best first.

    Returns:
        All lines, best first, and the ids of those that gave way.
    """
    if not _several(lines):
        return list(lines), set()
    rest, order, gave_way = list(lines), list[Line](), set[str]()
    held = Counter[str]()
    while rest:
        full = {author for author, count in held.items() if count >= math.ceil((len(order) + 1) / FEWEST_AUTHORS)}
        place = next((n for n, each in enumerate(rest) if is_trusted(each.record) or _author(each) not in full), 0)
        if place and rest[place].worth < COMPARABLE * rest[0].worth:
            place = 0
        gave_way.update(each.record.id for each in rest[:place])
        chosen = rest.pop(place)
        order.append(chosen)
        held[_author(chosen)] += 1
    return order, gave_way


def _several(lines: Sequence[Line]) -> bool:
    authors = {_author(each) for each in lines if each.worth >= COMPARABLE * lines[0].worth}
    return len(authors) >= FEWEST_AUTHORS


def _author(line: Line) -> str:
    return line.record.author or line.record.role or ""
