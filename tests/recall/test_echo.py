"""A fact that is asked again and again must not be buried under the questions."""

from __future__ import annotations

import pytest

from memory_core import Memory, RecallOptions
from tests.recall.asking import ANSWER, FACT, FOREIGN, WAYS, facts


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_a_fact_is_in_the_block_however_often_it_was_asked(way: str) -> None:
    async with Memory(":memory:") as memory:
        ann = memory.bind(app="chat", user="ann")
        for n, text in enumerate(facts()):
            await ann.remember([("user", text), ("assistant", "Noted.")], session=f"fact {n}")
        for n, question in enumerate(WAYS[way]):
            recalled = await ann.recall(question, RecallOptions(max_chars=1_000, floor=False))
            wanted = (FACT, ANSWER) if question in FOREIGN else (FACT,)
            assert any(said in recalled.text for said in wanted), f"asking {n}: {question!r}\n{recalled}"
            texts = [record.text for record in recalled.records]
            assert len(set(texts)) == len(texts)
            assert question not in texts
            await ann.remember([("user", question), ("assistant", ANSWER)], session=f"asking {n}")
