"""Chat models whose answers are known: one that follows rules, and one that gives a list of answers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from memory_core.supplied import ChatMessage

_LINE = re.compile(r'^(?:([TF])(\d+)|(-)) \d{4}-\d\d-\d\d \d\d:\d\d (.*?): (".*")$')
_HOME = re.compile(r"(.*?)\b(?:lives?|moved|is) (?:in|to) ")
_STATES = re.compile(
    r"I'm (?:allergic|a )|I (?:live|moved|collect|bought|am in) |My sister |\w+ (?:lives|moved|joined) "
)


def shown(messages: Sequence[ChatMessage]) -> tuple[list[str], list[tuple[str, str]]]:
    """The known facts of a prompt, and the turns with their speakers, in order."""
    facts: list[str] = []
    turns: list[tuple[str, str]] = []
    for line in messages[1]["content"].splitlines():
        if found := _LINE.match(line):
            letter, _, _, who, quoted = found.groups()
            text = json.loads(quoted)
            if letter == "F":
                facts.append(text)
            elif letter == "T":
                turns.append((who, text))
    return facts, turns


class Diligent:
    """Answers as a good model would about simple statements: it sees what is new, known or changed."""

    def __init__(self) -> None:
        self.asked: list[Sequence[ChatMessage]] = []

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """See `ChatModel.complete`."""
        self.asked.append(messages)
        facts, turns = shown(messages)
        lines = [
            line
            for number, (who, text) in enumerate(turns, 1)
            if who not in ("assistant", "bot")
            for sentence in re.split(r"(?<=[.!?]) ", text)
            if _STATES.match(sentence) and not sentence.endswith("?")
            for line in [_line(number, sentence, facts)]
        ]
        return "\n".join(dict.fromkeys(lines)) or "nothing"


def _line(turn: int, said: str, facts: Sequence[str]) -> str:
    if said in facts:
        return f"same T{turn} F{facts.index(said) + 1}"
    about = _about(said)
    old = next((place for place, fact in enumerate(facts, 1) if _about(fact) == about is not None), None)
    return f"add T{turn} fact: {said}" if old is None else f"correct T{turn} F{old}: {said}"


def _about(said: str) -> str | None:
    found = _HOME.match(said)
    return None if found is None else found[1].strip()


class Answers:
    """Gives one answer after the other; an exception is raised."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[Sequence[ChatMessage]] = []

    async def complete(self, messages: Sequence[ChatMessage]) -> str:
        """See `ChatModel.complete`."""
        self.asked.append(messages)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[return-value]  # what a careless adapter may do
