"""The order of the lines of a block, after they have been chosen: it loses none. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from memory_core.recall.keys import Key, key_of
from memory_core.recall.line import Line
from memory_core.recall.neighbors import is_short_question

NEAR: Final = 0.5
"""Statements with at least this share of the best one's worth or similarity count as equally relevant: of these the
latest comes first, because it may correct the others, in other words."""


def latest_first(lines: Sequence[Line]) -> list[Line]:
    """As given, but among statements about as relevant as the best the latest comes first, and questions come last.

    Answers of the model and summaries keep their positions.
    """
    asking = [line for line in lines if is_short_question(line.record)]
    asked = {line.key for line in asking}
    order = [line for line in lines if line.key not in asked]
    stated = [n for n, line in enumerate(order) if line.record.role != "assistant" and line.record.tier != "summary"]
    worth = max((order[place].worth for place in stated), default=0.0)
    likeness = max((order[place].hit.similarity or 0.0 for place in stated), default=0.0)
    near = [place for place in stated if _is_near(order[place], worth, likeness)]
    latest = sorted((order[place] for place in near), key=_since, reverse=True)
    for place, line in zip(near, latest, strict=True):
        order[place] = line
    return order + asking


def conversations(lines: Sequence[Line], questions: Mapping[Key, Key]) -> list[tuple[Line, ...]]:
    """Put replies behind the questions that they answer, in one line, at the best place of its turns.

    Args:
        questions: For the key of a reply, that of its question.
    """
    by_key = {line.key: line for line in lines}
    for key, line in by_key.items():
        if line.before is not None and key_of(line.before) in by_key:  # it stands there as a line of its own
            by_key[key] = replace(line, before=None)
    together: dict[Key, dict[Key, Line]] = {}
    for line in lines:
        turns = [line.key]
        while (question := questions.get(turns[-1])) in by_key and question not in turns:
            turns.append(question)
        together.setdefault(turns[-1], {}).update((turn, by_key[turn]) for turn in reversed(turns))
    return [tuple(turns.values()) for turns in together.values()]


def _is_near(line: Line, worth: float, likeness: float) -> bool:
    if worth <= 0 or line.worth >= NEAR * worth:
        return True
    return likeness > 0 and (line.hit.similarity or 0.0) >= NEAR * likeness


def _since(line: Line) -> datetime:
    return line.record.valid_from or line.record.occurred_at
