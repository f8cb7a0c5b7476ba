"""The first hit of a search is the first line of the block, or `explain` says why not."""

from __future__ import annotations

from itertools import product

import pytest

from memory_core import PULLED, PUSHED, Memory
from tests.corpora.loading import CORPORA, owners

EVERY = 9
"""One of so many questions is asked."""


@pytest.mark.uncovered
@pytest.mark.parametrize("corpus", CORPORA)
async def test_search_and_recall_agree_on_the_first_hit(corpus: str) -> None:
    async with Memory(":memory:") as memory:
        for owner in owners(corpus)[:2]:
            handle = memory.bind(app=corpus, user=owner.name)
            await handle.add_many(owner.records)
            for question, options in product(owner.questions[::EVERY], (PULLED, PUSHED)):
                hits = await handle.search(question.text)
                recalled = await handle.recall(question.text, options, explain=True)
                if not hits:
                    continue
                first = recalled.considered[0]
                assert first.hit.record.id == hits[0].record.id
                if first.reason != "shown" or first.later is not None:
                    continue
                ids = [hit.record.id for hit in recalled.hits]
                before = recalled.hits[: ids.index(first.hit.record.id)] if first.hit.record.id in ids else ()
                assert all(hit.record.session == first.hit.record.session is not None for hit in before)  # its question
