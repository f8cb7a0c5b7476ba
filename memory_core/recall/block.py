"""Format the block of memories for a prompt: escaped lines, marked as data, within a budget. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from memory_core.local_time import local_day
from memory_core.models import ROLES, MemoryRecord
from memory_core.recall.quoting import named, printable, quoted
from memory_core.recall.values import MAX_LINE_CHARS, RecallOptions
from memory_core.values.frame import FRAME_END, QUOTES, frame_start, framed

if TYPE_CHECKING:
    from memory_core.recall.line import Line

Format = Callable[[MemoryRecord, str], str]

MAX_BLOCK_CHARS: Final = 6_000
"""Maximum number of characters of the whole block. The oldest notes and the worst hits are left out first."""

BLOCK_START: Final = frame_start(QUOTES)

SHARE_OF_BUDGET: Final = 2
"""A memory takes at most this fraction of the budget (half), so that a long one does not crowd out the others. A third
holds as much in blocks of 1,500 characters and more of the development corpora, and less of the everyday chats."""
_FEWEST_CHARS: Final = 80
"""Minimum number of characters to which a text is cut, since a shorter rest says little."""


def longest_text(options: RecallOptions) -> int:
    """Maximum number of characters of one memory in a block."""
    return min(MAX_LINE_CHARS, max(_FEWEST_CHARS, options.about_chars() // SHARE_OF_BUDGET))


def line_of(turns: Sequence[Line], longest: int, options: RecallOptions, space: str | None) -> str:
    """Format a memory as a line, with the question before it or the answer after it; or several turns, oldest first.

    Args:
        space: The label of the space that they are from; `None` for the owner's own memory.
    """
    form = options.format
    if form is not None:
        return f"- {' / '.join(part for turn in turns for part in _parts(turn, longest, form))}"
    label = [] if space is None else [f"[{named(space)}]"]
    said = [part for turn in turns for part in (*_validity(turn.record), *_parts(turn, longest, None))]
    return " ".join(["-", *label, *said])


def _parts(turn: Line, longest: int, form: Format | None) -> Iterator[str]:
    if turn.before is not None:  # it asks in its last sentence
        most = _longest_before(longest)
        yield _said(turn.before, _end_of(turn.before.text, most), most, form)
    yield _said(turn.record, turn.text, longest, form)
    if turn.after is not None:
        yield _said(turn.after, turn.after.text, longest, form)


def whole_neighbors(turn: Line, longest: int) -> list[MemoryRecord]:
    """The turns beside a line of which `line_of` shows the whole text."""
    beside = ((turn.before, _longest_before(longest)), (turn.after, longest))
    return [record for record, most in beside if record is not None and len(record.text) <= most]


def _longest_before(longest: int) -> int:
    """Maximum number of characters of a question before a reply, which is shown from its end."""
    return longest // 2


def block_of(lines: Sequence[str]) -> str:
    """Join the lines to a block; empty without lines."""
    return framed(QUOTES, lines)


def _said(record: MemoryRecord, text: str, longest: int, form: Format | None) -> str:
    if form is not None:
        return printable(form(record, _cut(text, longest)), MAX_LINE_CHARS)
    name = _speaker(record)
    said = f'"{printable(text, longest)}"'
    return f"{name}: {said}" if name else said


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _end_of(text: str, longest: int) -> str:
    return text if len(text) <= longest else "…" + text[1 - longest :]


def _speaker(record: MemoryRecord) -> str:
    """The author, and the role unless the author is a person; a name that is the word of a role proves none."""
    if record.author is None:
        return record.role or ""
    name, word = named(record.author), record.author.casefold()
    if word == record.role or (record.role in (None, "user") and word not in ROLES):
        return name
    return f'"{name}"' if record.role is None else f"{name} ({record.role})"


def _validity(record: MemoryRecord) -> list[str]:
    if record.valid_to is not None:
        return [f"until {local_day(record, record.valid_to).isoformat()},"]
    return [] if record.valid_from is None else [f"since {local_day(record, record.valid_from).isoformat()},"]


def remembered_block(notes: Sequence[str], memories: Sequence[str]) -> str:
    """The block for a prompt; empty when nothing is remembered.

    Args:
        notes: Notes of this conversation, oldest first.
        memories: Long-term memories, best first.
    """
    room = MAX_BLOCK_CHARS - len(BLOCK_START) - len(FRAME_END) - 100
    newest_first = _fitting(reversed(notes), room)
    best_first = _fitting(memories, room - sum(len(line) + 1 for line in newest_first))
    if not newest_first and not best_first:
        return ""
    parts: list[str] = []
    if newest_first:
        parts += ["Notes of this conversation, oldest first:", *reversed(newest_first)]
    if best_first:
        parts += ["Long-term memories that may matter here:", *best_first]
    return framed(QUOTES, parts)


def _fitting(texts: Iterable[str], room: int) -> list[str]:
    """A line for each text that fits; texts after one that is too long may still fit."""
    lines: list[str] = []
    for text in texts:
        line = f"- {quoted(text)}"
        if len(line) < room:
            lines.append(line)
            room -= len(line) + 1
    return lines
