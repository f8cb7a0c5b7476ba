"""Ask 200 when-questions in four zones, and the same of a memory that knows the moments in UTC only.

python tests/benchmarks/when.py
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from memory_core import BoundMemory, Memory
from memory_core.retrieval.time_expressions import format_date
from tests.corpora.when import Saying, days_of, memory_of, sayings


async def right(ann: BoundMemory, said: Sequence[Saying]) -> tuple[int, int]:
    """The number of questions that ask when and get the day, and of those that name a date and find what was said,
    first."""
    dated, found = 0, 0
    for each in said:
        dated += format_date(each.day) in days_of(str(await ann.recall(each.when)), each.text)
        hits = await ann.search(each.dated, limit=1)
        found += bool(hits) and hits[0].record.text == each.text
    return dated, found


async def main() -> None:
    """Print a line for each zone."""
    total = Counter[int]()
    print("| zone | sayings | day given, in the zone / in UTC | found by the date, in the zone / in UTC |")
    print("|---|---|---|---|")
    for zone, group in groupby(sayings(), key=lambda each: each.zone.key):
        said, counts = list(group), list[int]()
        for keeps in (True, False):
            async with Memory(":memory:") as memory:
                counts += await right(await memory_of(memory, said, keeps=keeps), said)
        total.update(dict(enumerate((len(said), *counts))))
        print(_row(zone, len(said), counts))
    print(_row("all", total[0], [total[place] for place in range(1, 5)]))


def _row(name: str, count: int, counts: Sequence[int]) -> str:
    day, found, day_in_utc, found_in_utc = counts
    return f"| {name} | {count} | {day} / {day_in_utc} | {found} / {found_in_utc} |"


if __name__ == "__main__":
    asyncio.run(main())
