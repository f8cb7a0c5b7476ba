"""Halves of characters in the JSON of a client."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp import half_characters
from memory_mcp.half_characters import without_halves

TEXTS = st.text(st.characters(codec=None, exclude_categories=()) | st.sampled_from('\ud83d\ude00\\u"\nd8'), max_size=30)


@given(text=TEXTS)
def test_halves_of_characters_are_question_marks_and_nothing_else_changes(text: str) -> None:
    written = json.dumps(text).encode()
    mended = without_halves(written)
    assert len(mended) == len(written)
    pairs_joined = json.loads(written)
    assert json.loads(mended) == "".join("?" if "\ud800" <= one <= "\udfff" else one for one in pairs_joined)


def test_a_message_of_backslashes_is_mended_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, whole = 0, half_characters.escaped

    def counted(found: re.Match[bytes]) -> bytes:
        nonlocal steps
        steps += 1
        return whole(found)

    monkeypatch.setattr(half_characters, "escaped", counted)
    for escape in (rb"\\", rb"\"", rb"\u0061", rb"\ud83d\ude00", rb"\nx"):
        assert without_halves(escape * 10_000) == escape * 10_000
    assert steps <= 10
    without_halves(rb"\ud83d " * 100_000)
    assert steps <= 50_010
