"""Maintenance of a memory of some months: show the plan and the proposals, apply them, query an earlier moment, undo.

python examples/maintenance.py
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from memory_core import BoundMemory, Draft, MaintainPolicy, Memory, Where, maintain, undo_maintenance

SAID = (
    ("2026-01-04", "My favourite tea is jasmine"),
    ("2026-01-09", "The spare key hangs behind the kitchen door"),
    ("2026-02-20", "the spare key hangs behind the kitchen door."),
    ("2026-03-02", "I live in Oslo"),
    ("2026-03-02", "I drink coffee every morning"),
    ("2026-04-15", "In April I bought a sail in Bergen"),
    ("2026-04-16", "I bought a sail in Bergen in April"),
    ("2026-05-01", "I no longer drink coffee"),
    ("2026-06-01", "I moved to Bergen"),
    ("2026-06-20", "My favourite tea is now mint"),
)
CORRECTIONS = {
    "I no longer drink coffee": "I drink coffee every morning",
    "I moved to Bergen": "I live in Oslo",
    "My favourite tea is now mint": "My favourite tea is jasmine",
}


async def show(ann: BoundMemory, title: str) -> None:
    """Print the memories that searches can find."""
    page = await ann.list(order="oldest")
    print(f"{title}: {len(page.records)}", *(f"  {record.text}" for record in page.records), sep="\n")


async def corrects(ann: BoundMemory, text: str) -> dict[str, str]:
    """The stored memory that a text corrects, as a model would say (see docs/knowledge.md)."""
    old = CORRECTIONS.get(text)
    return {} if old is None else {"corrects": next(record.id for record in await ann.list() if record.text == old)}


async def main() -> None:
    """Plan, maintain, look back, undo."""
    policy = MaintainPolicy(contradictions="supersede")
    async with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(app="demo", user="ann")
        for day, text in SAID:
            at = datetime.fromisoformat(day).replace(tzinfo=UTC)
            await ann.add(Draft(text, kind="fact", occurred_at=at, data=await corrects(ann, text)))
        print("What would be done:")
        plan = await maintain(ann, policy, dry_run=True)
        for step in plan.steps:
            print(f"  {step.reason}: {step.kept!r} instead of {step.gone}")
        print("What only looks alike:", *((step.kept, *step.gone) for step in plan.proposed))
        done = await maintain(ann, policy)
        await show(ann, "Afterwards")
        april = Where(as_of=datetime(2026, 4, 1, tzinfo=UTC), keywords=["live", "moved"])
        print("In April:", [record.text for record in (await ann.list(where=april)).records])
        await undo_maintenance(ann, done)
        print("Taken back:", len((await ann.list()).records), "memories")
        print("Steps of the next run:", len((await maintain(ann, policy)).steps))


if __name__ == "__main__":
    asyncio.run(main())
