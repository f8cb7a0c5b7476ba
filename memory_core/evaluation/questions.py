"""The questions of an evaluation, and the memories that each should find."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from memory_core.errors import InvalidInputError
from memory_core.models import MemoryRecord
from memory_core.values.checks import shown

TEMPLATE: Final = "EDIT: "
"""Begins a question that nobody has written yet."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and what answers it."""

    text: str
    expected: Sequence[str]
    """Ids of memories, or words of them; all of these together are the answer. Empty if nothing is to be found."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A question whose expected memories are known."""

    question: Question
    wanted: Sequence[frozenset[str]]
    """For each expected memory the ids of those that are it: several may have the same words."""


def read_questions(lines: Iterable[str]) -> list[Question]:
    """Read one JSON object a line: `{"question": "Who has a key?", "expect": ["Mrs Okafor has the key"]}`.

    `expect` is a string or a list; without it, nothing is to be found.

    Raises:
        InvalidInputError: A line has another form, or a question is still a template; the message names the line.
    """
    found = [_question(number, json_of(number, line)) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise InvalidInputError("there are no questions; `memory-core eval --make 20 FILE` writes templates to edit")
    if count := sum(question.text.startswith(TEMPLATE) for question in found):
        raise InvalidInputError(
            f"there are still questions that begin with {TEMPLATE.strip()!r} ({count}); write each as a person would "
            "ask it, or delete it"
        )
    return found


def json_of(number: int, line: str) -> object:
    """The JSON value of a line.

    Raises:
        InvalidInputError: It is not JSON.
    """
    try:
        return cast("object", json.loads(line))
    except ValueError as error:
        raise InvalidInputError(f"line {number} is not JSON: {shown(line)}") from error


def _question(number: int, value: object) -> Question:
    line = shown(value)
    given = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    text, expected = given.get("question"), _texts(given.get("expect", []))
    if not isinstance(text, str) or not text.strip() or expected is None:
        raise InvalidInputError(
            f'line {number} is no question: {line}; write {{"question": "...", "expect": ["an id, or words"]}}'
        )
    return Question(text, expected)


def _texts(value: object) -> list[str] | None:
    """A string or a list of strings as a list; `None` for anything else."""
    listed = cast("list[object]", value) if isinstance(value, list) else [value]
    texts = [each for each in listed if isinstance(each, str) and each.strip()]
    return texts if len(texts) == len(listed) else None


def resolve(questions: Iterable[Question], records: Sequence[MemoryRecord]) -> list[Resolved]:
    """Find the memories that the questions expect.

    Raises:
        InvalidInputError: There is no memory with such an id or such words.
    """
    ids = {record.id for record in records}
    texts = [(record.id, _plain(record.text)) for record in records]

    def wanted(question: Question, expected: str) -> frozenset[str]:
        if expected in ids:
            return frozenset([expected])
        words = _plain(expected)
        if found := frozenset(key for key, text in texts if words in text):
            return found
        raise InvalidInputError(
            f"no memory has the id or the words {shown(expected)}, which {shown(question.text)} should find"
        )

    return [Resolved(each, [wanted(each, expected) for expected in each.expected]) for each in questions]


def templates(records: Sequence[MemoryRecord], count: int, *, seed: int = 0) -> Iterator[str]:
    """Lines of a file of questions to edit, each about a memory chosen at random.

    A question that a program makes from a text shares its words, and so says little about a search: a person has to
    ask.
    """
    chosen = random.Random(seed).sample(list(records), min(count, len(records)))  # noqa: S311  (no secret)
    for record in sorted(chosen, key=lambda each: each.occurred_at):
        line = {"question": f"{TEMPLATE}ask for this: {record.text[:300]}", "expect": [record.id]}
        yield json.dumps(line, ensure_ascii=False)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
