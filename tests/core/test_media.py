"""Text that crosses into a medium with fewer characters: a terminal, a log, JSON Lines, an HTTP header."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_core import Embedder, EmbeddingError, InvalidInputError, QdrantServer
from memory_core.conversation.deadline import Deadline, LateError
from memory_core.embedding.gemini import GeminiEmbedder
from memory_core.embedding.openai import OpenAiEmbedder
from memory_core.lifecycle.openai_chat import OpenAiChat
from memory_core.values.header_values import check_header
from memory_core.values.printable import one_line, plain
from memory_core.values.text_lines import lines_in

EVERY = [chr(point) for point in range(sys.maxunicode + 1)]
ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff]"
)
"""Controls, bidi controls, separators of lines, halves of characters and what is invisible, by their numbers."""
KEY = "A-SECRET-KEY"
texts = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("\n\r\t\x0b\x0c\x1c\x1d\x1e\x1b\x85\u2028\u2029\u202e\ufffe"))
)


@pytest.mark.parametrize("step", [0xFF, pytest.param(1, marks=pytest.mark.torture)], ids=["some", "every one"])
def test_no_character_of_any_text_acts_on_a_terminal_or_begins_a_line_of_a_log(step: int) -> None:
    """In the short form all below 0x3000, all that could act and have no block of their own, and each 255th."""
    acting = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    unsafe = {*acting, "Co"}
    for char in EVERY:
        if ord(char) >= 0x3000 and ord(char) % step and unicodedata.category(char) not in acting:
            continue
        shown = plain(char)
        assert shown == char or shown.isascii()
        assert not ACTS.search(shown.replace("\n", "")), hex(ord(char))
        if shown == char and char not in "\n\t\u200c\u200d":
            assert unicodedata.category(char) not in unsafe
        assert len(one_line(f"a{char}b").splitlines()) == 1, hex(ord(char))


@given(text=texts, most=st.integers(2, 20))
def test_one_line_is_one_line_of_at_most_so_many_characters(text: str, most: int) -> None:
    line = one_line(text, most)
    assert len(line) <= most
    assert len(line.splitlines()) <= 1
    assert not ACTS.search(line)


@given(said=st.lists(texts))
@example(said=["one\u2028line", "\x85", "\x0c", "\x1c\x1d\x1e", ""])
def test_json_lines_give_back_every_text_whatever_ends_its_lines(said: list[str]) -> None:
    file = "".join(f"{json.dumps(text, ensure_ascii=False)}\n" for text in said)
    assert [json.loads(line) for line in lines_in(file)] == said
    assert [json.loads(line) for line in lines_in(file.replace("\n", "\r\n"))] == said
    assert lines_in(file.removesuffix("\n")) == lines_in(file)


@given(texts)
def test_a_header_takes_what_it_can_carry_and_nothing_else(value: str) -> None:
    if all(" " <= char <= "~" for char in value):
        assert check_header("the key", value) == value
        return
    with pytest.raises(InvalidInputError) as refused:
        check_header("the key", f"{KEY}{value}")
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\u2028", "é", "\x00"])
@pytest.mark.parametrize("kind", [OpenAiEmbedder, GeminiEmbedder])
async def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(
    kind: type[OpenAiEmbedder | GeminiEmbedder], end: str
) -> None:
    embedder: Embedder = kind(api_key=KEY + end, base_url="http://127.0.0.1:1")
    with pytest.raises(EmbeddingError, match="which no HTTP header can carry") as refused:
        await embedder.embed_query("tea")
    assert KEY not in str(refused.value)
    with pytest.raises(InvalidInputError, match="which no HTTP header can carry") as refused_by_chat:
        await OpenAiChat("small", api_key=KEY + end, base_url="http://127.0.0.1:1").complete([])
    assert KEY not in str(refused_by_chat.value)
    with pytest.raises(InvalidInputError, match="which no HTTP header can carry") as refused_by_server:
        QdrantServer(host="localhost", api_key=KEY + end)
    assert KEY not in str(refused_by_server.value)


async def test_a_name_cannot_begin_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    deadline, never = Deadline(0.01, "ann\nERROR all is lost\x1b[2J\u202e"), asyncio.Event()
    with pytest.raises(LateError):
        await deadline.read("recalling", never.wait)
    await deadline.finish()
    assert len(caplog.records) == 2
    assert not [record for record in caplog.records if len(record.getMessage().splitlines()) > 1]
    assert not ACTS.search(caplog.text.replace("\n", ""))
