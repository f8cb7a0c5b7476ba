"""The contract of chunkers."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

from typing import Final

import pytest

from memory_core.chunking import Chunker, pieces_of
from memory_core.values.graphemes import is_boundary

TEXTS: Final = {
    "empty": "",
    "word": "tea",
    "spaces": "  tea  \n\n  and biscuits \t",
    "blank": " \n\t ",
    "sentences": "Ann drinks tea. Bob drinks coffee! Does Zoe? " * 40,
    "no spaces": "x" * 3_000,
    "lines": "one\r\ntwo\r\n" * 200,
    "japanese": "毎日お茶を飲みます。とてもおいしいです。" * 80,
    "families": "👩‍👩‍👧‍👦" * 200,
    "flags": "🇫🇷🇩🇪" * 200,
    "marks": ("e\u0301" + "o\u0308\u0323") * 400,
    "mixed": "Ann said: お茶! नमस्ते — שלום. " * 60,
}


class ChunkerContract:
    """Subclass it and define the fixture `chunker`."""

    @pytest.fixture
    def chunker(self) -> Chunker:
        """The chunker under test."""
        raise NotImplementedError("a subclass of the contract has to define the fixture `chunker`")

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    def test_no_text_is_lost_and_no_character_is_split(self, chunker: Chunker, text: str) -> None:
        pieces = pieces_of(text, chunker)
        assert bool(pieces) or not text.strip()
        for start, stop in pieces:
            assert is_boundary(text, start)
            assert is_boundary(text, stop)

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    def test_the_same_text_gives_the_same_pieces(self, chunker: Chunker, text: str) -> None:
        assert list(chunker.split(text)) == list(chunker.split(text))
