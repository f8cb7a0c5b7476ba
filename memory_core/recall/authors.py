"""Nobody buys the block: among several authors, a stranger's lines beyond a third give way to those of others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from memory_core.models import MemoryRecord
from memory_core.recall.keys import Key
from memory_core.recall.line import Line

FEWEST_AUTHORS: Final = 3
"""With fewer authors of relevant hits nobody's share is limited: in a dialogue half of the lines are of one person."""
COMPARABLE: Final = 0.25
"""A line gives way to lines of others with at least this share of its worth."""


def is_shared(records: Sequence[MemoryRecord], is_trusted: Callable[[MemoryRecord], bool]) -> bool:
    """True if the records are of at least three authors, one of them not trusted."""
    return len(set(map(_author, records))) >= FEWEST_AUTHORS and not all(map(is_trusted, records))


def in_fair_order(
    lines: Sequence[Line], is_trusted: Callable[[MemoryRecord], bool], first: int | None = None
) -> tuple[list[Line], set[Key]]:
    """The same lines in an order in which an author has at most a third of every first few lines.

    A line stays where it is if its author is trusted, or if no line of somebody else is comparable.

    Args:
        lines: Best first.
        first: The number of lines that are wanted; by default all.

    Returns:
        These lines, best first, and the keys of those that gave way.
    """
    rest = [(_author(each.record), is_trusted(each.record), each) for each in lines]
    order, gave_way = list[Line](), set[Key]()
    held = Counter[str]()
    while rest and len(order) != first:
        most = math.ceil((len(order) + 1) / FEWEST_AUTHORS)
        place = next((n for n, (author, trusted, _) in enumerate(rest) if trusted or held[author] < most), 0)
        if place and rest[place][-1].worth < COMPARABLE * rest[0][-1].worth:
            place = 0
        gave_way.update(each.key for _, _, each in rest[:place])
        author, _, chosen = rest.pop(place)
        order.append(chosen)
        held[author] += 1
    return order, gave_way


def _author(record: MemoryRecord) -> str:
    return record.author or record.role or ""
