"""Read what a chat model answers about a conversation: strict, bounded, and only numbers that it was shown.

Pure functions. An answer has one line for each thing it says; other lines are ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from memory_core.errors import UnreadableAnswerError
from memory_core.recall.quoting import excerpt

MAX_SAID: Final = 100
"""Most lines of one answer that are used: a model may repeat itself for pages."""
MAX_FACT_CHARS: Final = 500
"""Longest text of one line that is used; the rest is cut."""

Verb = Literal["add", "pin", "correct", "same"]

_LINE: Final = re.compile(
    r"(?P<add>add) T(?P<add_turn>\d{1,9}) (?P<kind>fact|preference|event): (?P<add_text>.*\S)"
    r"|(?P<pin>pin) T(?P<pin_turn>\d{1,9}): (?P<pin_text>.*\S)"
    r"|(?P<correct>correct) T(?P<correct_turn>\d{1,9}) F(?P<correct_fact>\d{1,9}): (?P<correct_text>.*\S)"
    r"|(?P<same>same) T(?P<same_turn>\d{1,9}) F(?P<same_fact>\d{1,9})[.!]?",
    re.IGNORECASE,
)
_NOTHING: Final = re.compile(r"nothing[.!]?", re.IGNORECASE)
_MARKS: Final = " \t-*\u2022`"
"""Characters around a line by which models format lists and code."""


@dataclass(frozen=True, slots=True)
class Said:
    """The statement of one line of an answer."""

    verb: Verb
    turn: int
    """Position of the turn that it is drawn from, among the turns that were shown, from 0."""
    fact: int | None = None
    """Position of the known fact that it corrects or repeats, from 0."""
    kind: str = "fact"
    text: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The statements of an answer, in order."""

    said: tuple[Said, ...]
    refused: int
    """Lines of the right form that were not used: they name a number that was not shown, have no visible text, repeat
    another line, or are beyond `MAX_SAID`."""


def read_answer(text: str, turns: int, facts: int) -> Answer:
    """The answer of a model about so many turns and known facts.

    Raises:
        UnreadableAnswerError: No line has a form that was asked for, or none of them names what was shown.
    """
    lines = [line.strip(_MARKS) for line in text.splitlines()]
    found = [match for line in lines if (match := _LINE.fullmatch(line))]
    said = [one for one in dict.fromkeys(map(_said, found)) if _can_be_used(one, turns, facts)]
    if not said and (found or not any(map(_NOTHING.fullmatch, lines))):
        raise UnreadableAnswerError(
            f"the answer has no line that can be used, of {len(lines)}; check what the model returns, or use one that "
            "follows instructions"
        )
    return Answer(tuple(said[:MAX_SAID]), len(found) - len(said[:MAX_SAID]))


def _can_be_used(said: Said, turns: int, facts: int) -> bool:
    is_shown = 0 <= said.turn < turns and (said.fact is None or 0 <= said.fact < facts)
    return is_shown and (said.verb == "same" or bool(said.text))


def _said(found: re.Match[str]) -> Said:
    verb = _verb(found)
    groups = found.groupdict()
    fact, text = groups.get(f"{verb}_fact"), groups.get(f"{verb}_text") or ""
    return Said(
        verb,
        int(groups[f"{verb}_turn"]) - 1,
        None if fact is None else int(fact) - 1,
        (groups["kind"] or "fact").lower() if verb == "add" else "preference" if verb == "pin" else "fact",
        excerpt(text, MAX_FACT_CHARS),
    )


def _verb(found: re.Match[str]) -> Verb:
    verbs: tuple[Verb, ...] = ("add", "pin", "correct", "same")
    return next(verb for verb in verbs if found[verb] is not None)
