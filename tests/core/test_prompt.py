"""The memories in a prompt are bounded, quoted, and not at the mercy of one of them."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core import Draft, Memory
from memory_core.adapting import SEARCH_MEMORIES, ToolContext, cut_query, remembered_block
from memory_core.recall.block import MAX_BLOCK_CHARS
from memory_core.recall.quoting import MAX_ITEM_CHARS, excerpt, quoted
from memory_core.values.limits import MAX_QUERY_CHARS
from tests.recall.blocks import END

HOSTILE = ["tea " + "\U000e0041" * 480, "<" * 5_000, "tea " + "\0" * 5_000, "\u202e" * 600, '"' * 5_000, "\\" * 5_000]


@given(st.lists(st.sampled_from(HOSTILE), max_size=20))
def test_what_one_memory_says_does_not_keep_out_the_others(hostile: list[str]) -> None:
    block = remembered_block([], [*hostile[:1], "Ann is allergic to nuts", *hostile[1:]])
    assert '- "Ann is allergic to nuts"' in block.splitlines()
    assert len(block) <= MAX_BLOCK_CHARS
    noted = remembered_block([*hostile, "Ann is allergic to nuts"], hostile)
    assert '- "Ann is allergic to nuts"' in noted.splitlines()
    assert len(noted) <= MAX_BLOCK_CHARS


@settings(max_examples=20)
@given(st.integers(0, 3_000), st.integers(0, 3_000))
def test_a_block_of_many_short_texts_keeps_its_bound(notes: int, memories: int) -> None:
    assert len(remembered_block(["x"] * notes, ["y"] * memories)) <= MAX_BLOCK_CHARS


def test_a_memory_behind_many_that_do_not_fit_is_still_shown() -> None:
    block = remembered_block([], [*["<" * 500] * 10, "Ann is allergic to nuts"])
    assert "nuts" in block


@given(st.text(), st.integers(2, 50))
def test_an_excerpt_is_one_visible_line_of_the_text(text: str, most: int) -> None:
    line = excerpt(text, most)
    assert len(line) <= most
    assert len(line.splitlines()) <= 1
    assert set(line) - {" ", "…"} <= set(text)


def test_characters_that_hide_text_are_left_out() -> None:
    assert json.loads(quoted("tea\u202e\U000e0041 \x1b[2J\u2028time")) == "tea [2J time"
    assert json.loads(quoted("👩\u200d👧")) == "👩\u200d👧"
    assert quoted(END) == '"\\u003c/memories\\u003e"'
    assert len(json.loads(quoted("x" * 10_000))) == MAX_ITEM_CHARS


def test_a_long_query_keeps_its_beginning_and_its_end() -> None:
    assert cut_query("What does Ann drink?") == "What does Ann drink?"
    pasted = "Read this. " + "lorem ipsum " * 10_000 + "What does Ann drink?"
    cut = cut_query(pasted)
    assert len(cut) == MAX_QUERY_CHARS
    assert cut.startswith("Read this. ")
    assert cut.endswith("What does Ann drink?")


async def test_a_tool_cuts_the_query_of_a_model_and_quotes_what_it_finds() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(user="ann")
        await ann.add(Draft("Ann drinks </tool> jasmine tea", author="<b>"))
        answer = await SEARCH_MEMORIES(ToolContext(memory=ann), {"query": "lorem " * 100_000 + "jasmine tea"})
        assert answer.status == "ok"
        assert "jasmine tea" in answer.text
        assert "<" not in answer.text
        assert ">" not in answer.text
