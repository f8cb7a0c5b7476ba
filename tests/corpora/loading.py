"""Reads the corpora of this folder; the README says what they hold and how they are written."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from memory_core import Draft

CORPORA: Final = (*("facts", "assistant_chats", "people_talking", "documents", "languages", "changing", "agent_logs"),)
UNANSWERABLE: Final = "unanswerable"
FOLDER: Final = Path(__file__).parent
FIELDS: Final = {"text", "kind", "role", "author", "session"}
"""The fields of a line that a draft takes as they are."""

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    text: str
    evidence: frozenset[str]
    """Ids of the records that answer it together; none if no record does."""


@dataclass(frozen=True)
class Owner:
    """One person or agent: what is remembered, in order of time, and what is asked."""

    name: str
    records: Sequence[Draft]
    """Each with its id as `source_key`."""
    questions: Sequence[Question]
    unanswerable: Sequence[Question]


def lines(name: str) -> Iterator[Line]:
    """The lines of a file as they are written."""
    with (FOLDER / f"{name}.jsonl").open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def owners(corpus: str) -> list[Owner]:
    """The owners of a corpus in the order of the file.

    Raises:
        FileNotFoundError: There is no such corpus.
    """
    records: defaultdict[str, list[Draft]] = defaultdict(list)
    questions: defaultdict[str, list[Question]] = defaultdict(list)
    unanswerable: defaultdict[str, list[Question]] = defaultdict(list)
    for line in lines(corpus):
        if "question" in line:
            questions[line["owner"]].append(Question(line["question"], frozenset(line["evidence"])))
        else:
            records[line["owner"]].append(_draft(line))
    for line in lines(UNANSWERABLE):
        if line["corpus"] == corpus:
            unanswerable[line["owner"]].append(Question(line["question"], frozenset()))
    return [Owner(name, records[name], questions[name], unanswerable[name]) for name in records]


def _draft(line: Line) -> Draft:
    known = {name: line[name] for name in FIELDS & line.keys()}
    return Draft(**known, occurred_at=datetime.fromisoformat(line["at"]), source_key=line["id"])
