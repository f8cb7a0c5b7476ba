"""Texts and names that are made to look like the frame around them: every block and every list keeps its lines."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from memory_core import (
    BoundMemory,
    Draft,
    InvalidInputError,
    Memory,
    MemoryCoreError,
    MemoryRecord,
    RecallOptions,
    run_sync,
)
from memory_core.adapting import remembered_block
from memory_core.profile import PROFILE_START
from memory_core.recall.block import BLOCK_START, MAX_BLOCK_CHARS
from memory_core.recall.values import PUSHED
from memory_core.values.frame import FRAME_END
from memory_mcp.showing import fields_of, line_of, listed, text_of_list, text_of_stored
from memory_mcp.values import ListAnswer, StoredMemory
from tests.fuzz.mutating import changed_bytes, each, insist_on_sentence, kept, mutants

pytestmark = pytest.mark.uncovered

SUBJECT = "blocks"
PINNED = "pinned"
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
DAY = re.compile(r"\d{1,4}-\d\d-\d\d")
QUERY = "What is the gate code of the marina?"
KNOWN = "The gate code of the marina is 4711"
JOINERS = "\u200c\u200d"


def insist_on_lines(text: str) -> list[str]:
    """The lines, each of printable characters, in which nothing but whole literals of JSON is in quotes; lines that
    a caller formats have the same escapes without quotes."""
    lines = text.split("\n")
    assert text.splitlines() == lines
    assert all(char.isprintable() or char in JOINERS for line in lines for char in line)
    for line in lines:
        assert '"' not in LITERAL.sub("", line).replace('\\"', ""), line
        assert all(isinstance(json.loads(found), str) for found in LITERAL.findall(line))
    return lines


def insist_on_frame(text: str, start: str, end: str, most: int) -> list[str]:
    """The lines between a beginning and an end that nothing repeats; none in an empty block."""
    assert len(text) <= most
    if not text:
        return []
    lines, head = insist_on_lines(text), start.split("\n")
    assert (lines[: len(head)], lines[-1]) == (head, end)
    assert text.count("<") == text.count(">") == 2
    return lines[len(head) : -1]


def insist_on_recalled(ann: BoundMemory, options: RecallOptions) -> None:
    found = run_sync(ann.recall, QUERY, options)
    body = insist_on_frame(found.text, BLOCK_START, FRAME_END, options.max_chars or 0)
    said = [line for line in body if line.startswith("- ")]
    assert all(line.startswith("- ") or DAY.fullmatch(line) for line in body)
    assert len(said) <= len(found.hits) <= len(found.records)
    assert bool(found) is bool(said)


def insist_on_lists(records: Sequence[MemoryRecord]) -> None:
    """A memory is one line in what tools answer, and a note is one in what is pushed."""
    shown = [listed(record, space=record.author) for record in records]
    lines = insist_on_lines(text_of_list(ListAnswer(note="Some memories.", memories=shown, count=len(shown))))
    assert len(lines) == len(shown) + 1
    for record, one in zip(records, shown, strict=True):
        assert insist_on_lines(line_of(one)) == [line_of(one)]
        stored = StoredMemory.model_validate({**fields_of(record, space=record.author), "note": "Stored."})
        assert len(insist_on_lines(text_of_stored(stored))) in {4, 5}
    texts = [record.text for record in records if record.text]
    for notes, memories in ((texts, []), ([], texts), (texts, texts)):
        body = insist_on_frame(remembered_block(notes, memories), BLOCK_START, FRAME_END, MAX_BLOCK_CHARS)
        assert sum(line.startswith("- ") for line in body) <= len(notes) + len(memories)
        assert all(line.startswith(("- ", "Notes of this", "Long-term")) for line in body)


def drafts_of(choice: random.Random, texts: Sequence[str]) -> list[Draft]:
    """Memories that have these texts in every place where one fits."""

    def name() -> str | None:
        return choice.choice((None, "user", "ann", choice.choice(texts)[: choice.choice((8, 60, 512))]))

    return [
        Draft(
            f"{text} {KNOWN[: choice.randrange(len(KNOWN))]}" if choice.random() < 0.8 else text,
            author=name(),
            role=choice.choice((None, "user", "assistant", "tool", "system")),
            kind=name() or "note",
            session=choice.choice((None, "monday")),
            tags=(PINNED,) if choice.random() < 0.3 else (),
            data={"user": name()},
            valid_from=choice.choice((None, datetime(2020, 1, 1, tzinfo=UTC))),
            occurred_at=choice.choice((None, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))),
        )
        for text in texts
    ]


def check(content: bytes) -> None:
    """Every block of a memory that has parts of this text beside an honest one."""
    choice = random.Random(content)
    said = content.decode(errors="replace")
    size = choice.choice((20, 200, 5_000))
    texts = [KNOWN, said, *(said[at : at + size] for at in range(0, min(len(said), 5 * size), size)), said[::-1]]
    with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(app="chat", user="ann")
        for draft in drafts_of(choice, [text for text in texts if text]):
            try:
                run_sync(ann.add, draft)
            except InvalidInputError as error:
                insist_on_sentence(error)
        records = run_sync(ann.list, limit=100).records
        for most in (0, 80, 140, 300, 1_000, 4_000):
            insist_on_recalled(ann, RecallOptions(max_chars=most, floor=False))
        insist_on_recalled(ann, PUSHED)
        try:
            shared = memory.bind(app="chat", user="bea").sharing({choice.choice(texts): ann})
        except MemoryCoreError as error:
            insist_on_sentence(error)
        else:
            insist_on_recalled(shared, RecallOptions(floor=False))
        insist_on_recalled(ann, RecallOptions(floor=False, format=lambda record, text: f"{record.kind} {text}"))
        for most in (200, 1_000, 10_000):
            profile = run_sync(ann.profile, max_chars=most)
            body = insist_on_frame(profile.text, PROFILE_START, FRAME_END, most)
            assert len(body) == len(profile.records) + bool(profile.text and profile.left_out)
        insist_on_lists(records)


def test_the_kept_texts() -> None:
    each(SUBJECT, (content for _, content in kept(SUBJECT)), ".txt", check)


@pytest.mark.parametrize("count", [30, pytest.param(6_000, marks=pytest.mark.torture)])
def test_changed_texts(count: int) -> None:
    assert each(SUBJECT, mutants(kept(SUBJECT), count, changed_bytes), ".txt", check) == count


@cache
def plain() -> dict[str, Any]:
    """The fields of some memory."""
    with Memory(":memory:", embedder=None) as memory:
        return run_sync(memory.bind(user="ann").add, "x").to_dict()


@pytest.mark.parametrize(
    "start",
    [
        *range(0, 0x3000, 0x1000),
        *(pytest.param(start, marks=pytest.mark.torture) for start in range(0x3000, 0x11_0000, 0x1000)),
    ],
)
def test_every_character_in_a_text_and_a_name(start: int) -> None:
    """Each character of Unicode that can be stored, between letters, in a line of its own memory."""
    chars = [chr(code) for code in range(start, start + 0x1000) if not 0xD800 <= code < 0xE000]
    names = ["x".join(chars[at : at + 100]) for at in range(0, len(chars), 100)]
    records = [
        MemoryRecord.from_dict(
            {**plain(), "id": str(number), "text": name, "author": name, "kind": name, "data": {"user": name}}
        )
        for number, name in enumerate(names)
    ]
    insist_on_lists(records)
