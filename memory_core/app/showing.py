"""The output of commands: tables for people, with every stored text made harmless for their terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from memory_core.app.ids import UUID
from memory_core.errors import FingerprintError, ReadOnlyError
from memory_core.models import Component, Hit, MemoryRecord
from memory_core.recall.values import Considered, Reason
from memory_core.values import printable
from memory_core.values.json_text import encode_json

PIPE_WIDTH: Final = 200
"""Columns of a table that no terminal shows."""
MAX_CELL_CHARS: Final = 300
"""Characters of a memory in a table; `show` prints all of them."""
MOST_ASKED: Final = 5
"""Memories that a question shows."""
MAX_SENTENCE_CHARS: Final = 2_000
"""Characters of an error or a problem, whose end says the way out."""
BAR: Final = 24
"""Columns of the longest bar."""

REASONS: Final[Mapping[Reason, str]] = {
    "shown": "it is in the block",
    "question": "it only asks the same, or is a question without a known answer",
    "duplicate": "another memory in the block says the same",
    "author": "its author has a third of the lines already",
    "copy": "it copies the question",
    "small talk": "it says no more about the message than small talk does",
    "adds nothing": "it says nothing that matters",
    "superseded": "it is no longer true",
    "excluded": "the prompt shows it already",
    "score": "it is less relevant than --min-score asks for",
    "no text": "it has no text",
    "limit": "the block has as many memories as it may have",
    "budget": "the block was full before its turn",
    "filter": "it is archived, compacted, or outside the conditions",
    "floor": "it is not more relevant than an unrelated memory would be",
}
"""The reasons why a memory is in the block, or is not, each as a clause."""


def plain(text: str) -> str:
    """The text with every character escaped that could move the cursor, colour, reorder or hide what is printed."""
    return printable.plain(text)


def line(text: str, most: int = MAX_CELL_CHARS) -> str:
    """The text as one line of at most so many characters."""
    return printable.one_line(text, most)


def console(*, errors: bool = False) -> Console:
    """The terminal, or a pipe with room for long lines."""
    stream = sys.stderr if errors else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=errors)


def complain(text: str) -> None:
    """Print a sentence on standard error."""
    said = f"memory-core: {line(text, MAX_SENTENCE_CHARS)}"
    console(errors=True).print(Text(said, "red" if sys.stderr.isatty() else ""))


def sentence(error: Exception) -> str:
    """The sentence of an error, with the way out of this program."""
    if isinstance(error, ReadOnlyError):
        return "this user may not write the memory file or its folder, so it is only read; nothing was changed"
    if not isinstance(error, FingerprintError):
        return str(error)
    found = str(error).partition(";")[0]  # what follows is for Python
    return f"{found}; name that model with --embedder, or compute them again with `memory-core reembed`"


def note(text: str) -> None:
    """Print an aside on standard error, so that it is not part of what a pipe receives."""
    console(errors=True).print(Text(line(text, MAX_SENTENCE_CHARS), "dim"))


def as_json(value: object) -> str:
    """One line of JSON in ASCII, in which no character can drive a terminal."""
    return encode_json(value).replace("\x7f", "\\u007f")


def text(value: object, style: str = "", most: int = MAX_CELL_CHARS) -> Text:
    """A cell of at most so many characters."""
    if value is None:
        return Text("")
    if isinstance(value, datetime):
        return Text(moment(value), style)
    shown = f"{value:.2f}" if isinstance(value, float) else str(value)
    return Text(line(shown, most), style)


def counted(count: int, noun: str) -> str:
    """So many of something: `1 memory`, `2 memories`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"


def with_derived(count: int, derived: int) -> str:
    """So many memories, and those that go with them: `1 memory and 2 made from it`."""
    made = f" and {derived} made from {'it' if count == 1 else 'them'}" if derived else ""
    return f"{counted(count, 'memory')}{made}"


def moment(value: datetime | None) -> str:
    """A time for people, where it was, with its offset: `2026-03-10 20:30-07:00`, or `Z` for UTC."""
    return "" if value is None else f"{value:%Y-%m-%d %H:%M}{value.isoformat()[-6:].replace('+00:00', 'Z')}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, most: int = MAX_CELL_CHARS) -> Table:
    """A table without lines; cells that do not fit are folded, and cut only after so many characters."""
    found = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for title in head:
        found.add_column(text(title), overflow="fold")
    for row in rows:
        found.add_row(*(text(value, most=most) for value in row))
    return found


def records(found: Sequence[MemoryRecord]) -> RenderableType:
    """Records, two lines each."""
    if not found:
        return Text("no memories", "dim")
    return Group(*(part for record in found for part in (Text(line(record.text)), about(record))))


def about(record: MemoryRecord) -> Text:
    """The line below the text of a record."""
    seen = "left" if record.left else record.state
    parts = [record.kind, record.author, moment(record.occurred_at), seen, *(f"#{tag}" for tag in record.tags)]
    shown = [line(part) for part in parts if part and part != "active"]
    return Text(f"   {short(record.id)}  {' · '.join(shown)}", "dim")


def first_lines(records: Sequence[MemoryRecord]) -> list[str]:
    """The first texts of what a person is asked about, on the command line and on the page, and how many there are
    besides."""
    lines = [line(record.text) or "(no text)" for record in records[:MOST_ASKED]]
    return lines if len(records) <= MOST_ASKED else [*lines, f"and {len(records) - MOST_ASKED} more"]


def short(id: str) -> str:  # noqa: A002  (the record's own word)
    """The id as lists show it: the last group of one that is a UUID, which commands accept for the whole."""
    return id.rpartition("-")[2] if UUID.fullmatch(id) else line(id)


def details(record: MemoryRecord) -> RenderableType:
    """Every field that is set; the text last, whole."""
    return Group(table(("field", "value"), set_fields(record)), Text(""), Text(plain(record.text)))


def set_fields(record: MemoryRecord) -> list[tuple[str, str | float]]:
    """The names and values of the fields that are set, but for the text; lists and objects as JSON."""
    return [
        (name, value if isinstance(value, str | int | float) else encode_json(value))
        for name, value in record.to_dict().items()
        if name != "text" and value not in (None, [], {})
    ]


def hits(found: Sequence[Hit], *, explain: bool) -> RenderableType:
    """Hits, best first, with the parts of their scores as bars if they are explained."""
    if not found:
        return Text("nothing relevant is remembered", "dim")
    best = max((part.weighted for hit in found for part in (hit.components or {}).values()), default=1.0)
    lines: list[RenderableType] = []
    for rank, hit in enumerate(found, 1):
        passage = hit.record.text if hit.passage is None else hit.passage.text
        lines += [Text(f"{rank}. {line(passage)}"), about(hit.record)]
        if explain:
            lines += bars(hit.components or {}, best)
    return Group(*lines)


def bars(parts: Mapping[str, Component], best: float) -> list[RenderableType]:
    """A bar for each part of a score, the largest first; parts of less than a twentieth are left out."""
    ordered = sorted(parts.items(), key=lambda item: -item[1].weighted)
    return [
        Text.assemble(
            (f"   {line(name):>18} {part.weighted:5.2f} ", "dim"),
            ("█" * max(1, round(BAR * part.weighted / max(best, 0.05))), "green"),
        )
        for name, part in ordered
        if part.weighted >= 0.05
    ]


def considered(found: Sequence[Considered]) -> RenderableType:
    """The memories that a recall considered, and why each is in the block or not."""
    if not found:
        return Text("no memory has a word or a meaning in common with the question", "dim")
    rows = [(each.rank, each.hit.score, each.reason, each.hit.record.text, short(each.hit.record.id)) for each in found]
    return table(("rank", "score", "why", "text", "id"), rows)
