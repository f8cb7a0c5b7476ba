"""Questions of people in four zones that ask when, hand-written: `when.jsonl`.

A line is something that a person said, the moment with the offset of their zone, a question that asks when, one that
names the date, and the day of what it is about: what "yesterday" meant there. Most were said when UTC had another date,
shortly before or after midnight, or on the days on which the clocks change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from memory_core import BoundMemory, Memory, Message
from memory_core.retrieval.time_expressions import format_date, resolve

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}$")
_FILE = Path(__file__).with_suffix(".jsonl")


@dataclass(frozen=True, slots=True)
class Saying:
    """The words of a person, and two questions about them."""

    zone: ZoneInfo
    said: datetime
    text: str
    when: str
    dated: str
    day: date


def sayings() -> list[Saying]:
    """All of them, by zone and moment."""
    lines = map(json.loads, _FILE.read_text(encoding="utf-8").splitlines())
    return [
        Saying(
            ZoneInfo(each["zone"]),
            datetime.fromisoformat(each["said"]),
            each["text"],
            each["when"],
            each["dated"],
            date.fromisoformat(each["day"]),
        )
        for each in lines
    ]


def days_of(block: str, text: str) -> set[str]:
    """The days that a reader of the block may take for that of a text: that of its heading, or what it says itself."""
    heading = ""
    for line in block.splitlines():
        if _DAY.match(line):
            heading = line
        elif text in line and heading:
            day = date.fromisoformat(heading)
            return set(resolve(text, day)) or {format_date(day)}
    return set()


async def memory_of(memory: Memory, said: Sequence[Saying], *, keeps: bool = True) -> BoundMemory:
    """A memory in which a person has said all that, each in a conversation of its own."""
    ann = memory.bind(user="ann")
    for number, each in enumerate(said):
        at = each.said if keeps else each.said.astimezone(UTC)
        await ann.remember([Message(each.text, author="Ann", id=str(number), occurred_at=at)], session=f"s{number}")
    return ann
