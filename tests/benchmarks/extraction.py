"""What the patterns extract from the conversations of `tests/corpora`, line by line, for a reader to judge.

python tests/benchmarks/extraction.py [CORPUS ...]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from memory_core import Memory, Where
from memory_core.lifecycle import PatternExtractor, maintain

sys.path.insert(0, str(Path(__file__).parents[2]))  # a script finds only what is in its own folder

from tests.corpora.loading import CORPORA, owners


async def main(corpora: Sequence[str]) -> None:
    turns = found = 0
    async with Memory(":memory:", embedder=None) as memory:
        for corpus in corpora:
            for owner in owners(corpus):
                said = [draft for draft in owner.records if draft.session and draft.role in ("user", None)]
                turns += len(said)
                handle = memory.bind(app=corpus, user=owner.name)
                await handle.add_many(owner.records)
                plan = await maintain(handle, extractor=PatternExtractor(), dry_run=True)
                for draft in (draft for step in plan.steps for draft in step.added if draft.text):
                    found += 1
                    (turn,) = (await handle.list(where=Where(ids=[draft.links[0].id]))).records
                    print(f"{corpus} | {draft.kind} | {draft.text} | from: {turn.text}")
    print(f"{found} extractions from {turns} turns")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or CORPORA))
