"""The profile of an owner: what holds whatever is asked, as a block for every prompt.

A memory is in the profile if it is pinned: by a person, who may pin whatever they want, or by a model, through a tool
or as the manager of the memory, which may pin only what the owner said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

from memory_core.agent_memory import Searching
from memory_core.errors import InvalidInputError, UnsupportedError
from memory_core.models import MemoryRecord
from memory_core.recall.quoting import named, printable
from memory_core.values.checks import check_count, shown
from memory_core.values.frame import FRAME_END, WISHES, frame_start, framed
from memory_core.where.where import Where

PINNED: Final = "pinned"
"""The tag of a memory that a person pinned."""
PINNED_BY_MODEL: Final = "pinned-by-model"
"""The tag of a memory that a model pinned, as a tool call or as the manager."""
PINS: Final = (PINNED, PINNED_BY_MODEL)

DEFAULT_PROFILE_CHARS: Final = 800
"""The budget of a profile, about 200 tokens."""
MAX_PINNED: Final = 1_000
"""Most pinned memories that are read, the most important ones."""
MAX_LINE_CHARS: Final = 300
"""Characters of one memory in a profile."""
PROFILE_START: Final = frame_start(WISHES)
_MORE_CHARS: Final = 40
"""Room for the line that says how many memories did not fit."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The memories that hold whatever is asked: `str(profile)` is the block for a prompt."""

    text: str
    """The block, marked as data and escaped; empty if nothing is pinned."""
    records: tuple[MemoryRecord, ...]
    """The memory behind each line, in order: who said it, when, and in its links from what it was derived."""
    left_out: int = 0
    """Pinned memories that did not fit; the block says how many."""

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)


@runtime_checkable
class WithProfile(Protocol):
    """A memory that has a profile."""

    async def profile(self, *, owner: str | None = None) -> Profile:
        """See `BoundMemory.profile`."""
        ...


async def with_profile(memory: object, block: str, *, owner: str | None = None) -> str:
    """The block of a prompt with the profile before it, or the profile alone: what adapters push into every prompt.

    Args:
        memory: The memory that the block was recalled from; one without profiles has none.
        block: The block that was recalled for the prompt; may be empty.
        owner: The name under which the owner speaks; by default the user of the memory.
    """
    if not isinstance(memory, WithProfile):
        return block
    try:
        profile = await memory.profile(owner=owner)
    except UnsupportedError:  # a store that cannot select by tags
        return block
    return "\n".join(filter(None, (profile.text, block)))


def speaks_for(record: MemoryRecord, owner: str | None) -> bool:
    """True if a record says what the owner said, or what the owner's own agent wrote down.

    Args:
        record: Its role must not be that of the model or a tool.
        owner: The name under which the owner speaks.
    """
    names = {name.casefold() for name in (owner, record.agent, "user") if name is not None}
    return record.role in (None, "user") and (record.author is None or record.author.casefold() in names)


def tags_of_pin(record: MemoryRecord, *, owner: str | None, pinned: bool) -> tuple[str, ...]:
    """The tags of a memory that a model pins, or pins no longer.

    Args:
        record: The memory.
        owner: The name under which the owner speaks.
        pinned: True if it is pinned from now on.

    Raises:
        InvalidInputError: Somebody else said it, or a person pinned it: only a person can change that.
    """
    if pinned and not speaks_for(record, owner):
        raise InvalidInputError(
            f"{shown(record.id)} is what somebody else said, which only a person can pin; store what the user wants, "
            "and pin that"
        )
    if not pinned and PINNED in record.tags:
        raise InvalidInputError(f"a person pinned {shown(record.id)}; only a person can change that")
    others = tuple(tag for tag in record.tags if tag != PINNED_BY_MODEL)
    return (*others, PINNED_BY_MODEL) if pinned else others


async def read_profile(memory: Searching, *, owner: str | None, max_chars: int, now: datetime) -> Profile:
    """The profile that a memory holds: the most important pinned memories that fit, oldest first.

    Args:
        memory: The memories of the owner.
        owner: The name under which the owner speaks; of other authors, only what a person pinned is shown.
        max_chars: Budget of the block in characters, header and end included.
        now: A memory that has ended or not begun by now is left out.

    Raises:
        InvalidInputError: `max_chars` is out of range.
    """
    room = check_count("max_chars", max_chars, 0, 1_000_000)
    page = await memory.list(where=Where(tags_any=PINS), order="importance", limit=MAX_PINNED)
    pinned = _once([record for record in page.records if _is_shown(record, owner, now)], owner)
    fitting = _fitting(pinned, room - len(PROFILE_START) - len(FRAME_END) - 2, owner)
    if len(fitting) < len(pinned):
        fitting = _fitting(pinned, room - len(PROFILE_START) - len(FRAME_END) - 2 - _MORE_CHARS, owner)
    left_out = len(pinned) - len(fitting)
    if not fitting:
        return Profile("", (), left_out)
    fitting.sort(key=lambda record: (record.occurred_at, record.id))
    more = [f"({left_out} more are pinned and do not fit)"] if left_out else []
    text = framed(WISHES, [*(_line(record, owner) for record in fitting), *more])
    return Profile(text, tuple(fitting), left_out)


def _is_shown(record: MemoryRecord, owner: str | None, now: datetime) -> bool:
    is_allowed = PINNED in record.tags or speaks_for(record, owner)
    has_begun = record.valid_from is None or record.valid_from <= now
    is_valid = has_begun and (record.valid_to is None or now < record.valid_to)
    return is_allowed and is_valid and record.tier != "summary" and bool(record.text.strip())


def _once(records: Sequence[MemoryRecord], owner: str | None) -> list[MemoryRecord]:
    """The records without those whose line an earlier one has, too."""
    by_line: dict[str, MemoryRecord] = {}
    for record in records:
        by_line.setdefault(_line(record, owner), record)
    return list(by_line.values())


def _fitting(records: Sequence[MemoryRecord], room: int, owner: str | None) -> list[MemoryRecord]:
    """The records whose lines fit, each if there is room; later ones may be shorter."""
    fitting: list[MemoryRecord] = []
    for record in records:
        size = len(_line(record, owner)) + 1
        if size <= room:
            fitting.append(record)
            room -= size
    return fitting


def _line(record: MemoryRecord, owner: str | None) -> str:
    who = "" if record.author is None or speaks_for(record, owner) else f"{named(record.author)}: "
    return f'- {who}"{printable(record.text, MAX_LINE_CHARS)}"'
