"""The requests that a store answers: a search, and one page of a listing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from memory_core.models import Mode, Order
from memory_core.where.where import Where

if TYPE_CHECKING:
    from memory_core.supplied import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """One complete search request, which every store answers by the same rules."""

    text: str
    limit: int
    mode: Mode
    where: Where
    explain: bool
    floor: bool = True
    """Leave out records that are not relevant; `False` returns the best `limit` records even if none is relevant."""
    context: bool = True
    """Find a turn also by what was said just before and after it; `False` finds only what matches itself."""
    every_word: bool = False
    """Find only records that have every word of the text."""
    recency: float = 0.0
    """Weight of how recent a record is (`retrieval/recency.py`); 0 leaves it out."""
    importance: float = 0.0
    """Weight of a record's importance; 0 leaves it out."""
    today: date | None = None
    """The day of the person who asks, from which "yesterday" in the text counts; `None` if it is not known."""
    most_bytes: int | None = None
    """Bytes (`records/size.py`) after which the records of further hits are not read; their ids are `Hits.rest`."""
    vector: Vector | None = field(default=None, compare=False)
    """Unit vector to search for instead of the text; for the mode `vector`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """One page of an unranked listing. `touch` counts the read in `accessed_at` and `access_count`."""

    where: Where
    order: Order
    limit: int
    cursor: str | None
    touch: bool
