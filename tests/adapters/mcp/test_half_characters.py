"""Halves of characters in JSON that comes in parts."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp import half_characters
from memory_mcp.half_characters import Mending

TEXTS = st.text(st.characters(codec=None, exclude_categories=()) | st.sampled_from('\ud83d\ude00\\u"\nd8'), max_size=30)


def mended(text: bytes, cuts: Sequence[int]) -> bytes:
    mending, places = Mending(), sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    parts = [text[start:end] for start, end in itertools.pairwise(places)]
    return b"".join(mending.part(part, is_last=at == len(parts) - 1) for at, part in enumerate(parts))


@given(text=TEXTS, cuts=st.lists(st.integers(0, 200), max_size=20))
def test_halves_of_characters_are_question_marks_and_nothing_else_changes(text: str, cuts: list[int]) -> None:
    whole = json.dumps(text).encode()
    after = mended(whole, cuts)
    assert len(after) == len(whole)
    pairs_joined = json.loads(whole)
    assert json.loads(after) == "".join("?" if "\ud800" <= one <= "\udfff" else one for one in pairs_joined)


def test_a_text_that_comes_in_two_parts_is_mended_wherever_it_is_cut() -> None:
    whole = rb'"x\ud83d y\ud83d\ude00 \\ud83d \n"'
    for cut in range(1, len(whole)):
        assert mended(whole, [cut]) == whole.replace(rb"x\ud83d", rb"x\u003f")


def test_a_message_of_backslashes_is_mended_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, whole = 0, half_characters.escaped

    def counted(found: re.Match[bytes]) -> bytes:
        nonlocal steps
        steps += 1
        return whole(found)

    monkeypatch.setattr(half_characters, "escaped", counted)
    for escape in (rb"\\", rb"\"", rb"\u0061", rb"\ud83d\ude00", rb"\nx"):
        assert mended(escape * 10_000, [30_000]) == escape * 10_000
    assert steps <= 10
