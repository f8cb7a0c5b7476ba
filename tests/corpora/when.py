"""When-questions of people in four zones, hand-written: `when.jsonl`.

A line is something that a person said, the moment with the offset of their zone, a question that asks when, one that
names the date, and the day of what it is about: what "yesterday" meant there. Most were said when UTC had another date,
shortly before or after midnight, or on the days on which the clocks change.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

_FILE = Path(__file__).with_suffix(".jsonl")


@dataclass(frozen=True, slots=True)
class Saying:
    """What a person said, and two questions about it."""

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
