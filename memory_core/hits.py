"""The result of a search: a list of hits that notebooks show as a table."""

from __future__ import annotations

from typing import Any

from memory_core.models import Hit
from memory_core.plain import html_table


class Hits(list[Hit]):
    """The hits of a search, best first."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """A row for each hit; with `explain=True` the last column has the parts of the score, the largest first."""
        explained = any(hit.components for hit in self)
        head = ["score", "text", "kind", "author", "occurred at (UTC)", *(["parts"] if explained else [])]
        return html_table(head, (_row(hit, explained=explained) for hit in self))

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: Any) -> Any:  # pydantic's types
        from pydantic_core import core_schema as core  # noqa: PLC0415  (only pydantic calls this, so it is installed)

        return core.no_info_after_validator_function(cls, handler.generate_schema(list[Hit]))


def _row(hit: Hit, *, explained: bool) -> list[object]:
    record = hit.record
    text = record.text if hit.passage is None else hit.passage.text
    row: list[object] = [hit.score, text, record.kind, record.author, record.occurred_at]
    if explained:
        parts = sorted((hit.components or {}).items(), key=lambda part: -abs(part[1].weighted))
        row.append(", ".join(f"{name} {part.weighted:.2f}" for name, part in parts if part.weighted))
    return row
