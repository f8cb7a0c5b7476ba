"""The finds of maintenance among 10,000 sentences that people wrote, and the time that it takes.

python tests/benchmarks/maintain.py [records]

The sentences are those of the project's corpora and of the documentation strings of Python's standard library. Beside
a fifth of them their like is planted (other marks, which are merged; a slip of the keys or another order, which are
only proposed), and beside others a hard negative (another number, name, date, or "not").
"""

from __future__ import annotations

import ast
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory_core import BoundMemory, Draft, Memory, MemoryRecord, Where
from memory_core.lifecycle import Maintenance, maintain, undo_maintenance
from tests.corpora.loading import CORPORA, owners
from tests.lifecycle.planting import HARD, sentences, with_other_marks, with_other_order, with_typo

START = datetime(2026, 1, 1, tzinfo=UTC)
Plant = Callable[[str, random.Random], str | None]
Pairs = list[tuple[str, str]]


def docstrings() -> list[str]:
    """The sentences by which the modules of the standard library describe themselves."""
    found: list[str] = []
    for path in sorted(Path(ast.__file__).parent.rglob("*.py")):
        if not {"site-packages", "dist-packages", "test", "tests", "lib2to3"} & set(path.parts):
            nodes = ast.walk(ast.parse(path.read_bytes()))
            kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            found += [" ".join((ast.get_docstring(node) or "").split()) for node in nodes if isinstance(node, kinds)]
    return found


def planted(written: list[str], changes: Sequence[Plant], count: int, chance: random.Random) -> Pairs:
    """Sentences and what a change makes of them; each sentence is taken from `written` and used once."""
    found: Pairs = []
    for place in reversed(range(len(written))):
        for change in changes:
            other = change(written[place], chance)
            if other is not None and len(found) < count:
                found.append((written.pop(place), other))
                break
    return found


async def fill(ann: BoundMemory, texts: Sequence[str]) -> None:
    """All texts on one day."""
    drafts = [Draft(text, kind="fact", occurred_at=START + timedelta(seconds=n)) for n, text in enumerate(texts)]
    for at in range(0, len(drafts), 1_000):
        await ann.add_many(drafts[at : at + 1_000])


async def all_records(ann: BoundMemory, where: Where) -> list[MemoryRecord]:
    return list((await ann.list(where=where, limit=10_000)).records)


async def main(count: int) -> None:
    chance = random.Random(17)
    texts = [record.text for name in CORPORA for owner in owners(name) for record in owner.records]
    texts += docstrings()
    written = sentences(texts)
    chance.shuffle(written)
    kinds: dict[str, tuple[Sequence[Plant], int]] = {
        "other marks": ((with_other_marks,), count * 67 // 1000),
        "slip of the keys": ((with_typo,), count * 67 // 1000),
        "other order": ((with_other_order,), count * 66 // 1000),
    }
    hard = planted(written, HARD, count // 20, chance)
    same = {name: planted(written, changes, most, chance) for name, (changes, most) in kinds.items()}
    pairs = [pair for some in (*same.values(), hard) for pair in some]
    filler = written[: max(0, count - 2 * len(pairs))]
    shuffled = [*filler, *(text for pair in pairs for text in pair)]
    chance.shuffle(shuffled)
    with tempfile.TemporaryDirectory() as folder:
        async with Memory(Path(folder) / "m.db", embedder=None) as memory:
            ann = memory.bind(user="ann")
            await fill(ann, shuffled)
            begun = time.perf_counter()
            done = await maintain(ann)
            seconds = time.perf_counter() - begun
            print(f"{(await ann.stats()).records} records; maintained in {seconds:.1f} s, {len(done.steps)} steps")
            tell(done, same, hard)
            again = await maintain(ann)
            print(f"second run: {len(again.steps)} steps")
            left = await undo_maintenance(ann, done)
            active = await all_records(ann, Where())
            print(f"undone: {len(active)} records active, {len(left)} changes left")
            again = await maintain(ann)
            print(f"run after that: {len(again.steps)} steps")


def tell(done: Maintenance, same: dict[str, Pairs], hard: Pairs) -> None:
    """Print the number of planted pairs that were merged or proposed, and what else was."""
    wanted = {frozenset(pair) for pairs in same.values() for pair in pairs}
    for said, reason, steps in (("merged", "duplicate", done.steps), ("proposed", "alike", done.proposed)):
        found = [step for step in steps if step.reason == reason]
        step_of = {text: step for step in found for text in (step.kept, *step.gone)}
        for name, pairs in same.items():
            count = sum(one in step_of and step_of[one] is step_of.get(other) for one, other in pairs)
            print(f"  {name}: {count} of {len(pairs)} {said}")
        others = [step for step in found if frozenset({step.kept, *step.gone}) not in wanted]
        print(
            f"  {said} without being planted: {len(others)}",
            *(f"\n    {each.kept} | {each.gone}" for each in others[:9]),
        )
        print(
            f"  hard negatives {said}: {sum(step_of.get(one) is step_of.get(other) is not None for one, other in hard)}"
        )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
