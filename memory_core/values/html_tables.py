"""Tables that notebooks show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Final

MAX_CELL_CHARS: Final = 200
"""Maximum length of a text in a cell."""


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in HTML; all cells are escaped."""
    header = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return text if len(text) <= MAX_CELL_CHARS else text[: MAX_CELL_CHARS - 1] + "…"
