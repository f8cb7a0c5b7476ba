"""On forty everyday chats the block holds what a plain list of the search's hits holds, and the best hit."""

from __future__ import annotations

import pytest

from tests.recall.everyday_chats import measure


@pytest.mark.slow
async def test_the_block_holds_an_answer_at_least_as_often_as_a_plain_list_in_every_budget() -> None:
    for budget, tally in (await measure()).items():
        assert tally.questions == 165
        assert tally.in_block >= tally.in_dated_list, f"{budget} characters: {tally.missing}"
        # The header, quotes and dates have no room in the plain list; where they cost an answer, it is one of 165.
        assert tally.in_block >= tally.in_list - 1, f"{budget} characters: {tally.missing}"
        assert tally.best_in_block == tally.found, f"{budget} characters: {tally.missing}"
