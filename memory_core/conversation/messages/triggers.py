"""Detect messages that ask to be remembered: "important: the gate code is 4711 #beto_home"."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memory_core.errors import InvalidInputError

MEMORIES: Final = "memories"
IMPORTANT_FACT: Final = "important_fact"

MEMORY_TRIGGERS: Final = (
    "we designed",
    "we built",
    "our plan for",
    "achieved together",
    "this setup for",
    "memory goal:",
    "let's save this",
    "memory:",
    "remember this conversation",
    "save this design",
    "save our work",
    "store this idea",
)
"""Triggers of the kind `memories`: what was achieved or designed together."""
FACT_TRIGGERS: Final = (
    "important:",
    "remember this fact:",
    "my preference is",
    "I always do",
    "key detail:",
    "memorize this:",
    "fact:",
    "never forget:",
    "critical info:",
    "note this:",
    "remember:",
    "store this fact",
)
"""Triggers of the kind `important_fact`."""
_TAG: Final = re.compile(r"[ \t]?(?<![\w#@])[#@](beto_\w+)")

_SENTENCE_END: Final = re.compile(r"[.!?\u2026]\s+|\n")
_WORD: Final = re.compile(r"\w+")
_SAYS_NOTHING: Final = frozenset(
    _WORD.findall(
        "a about above all an and as at been before conversation design did down earlier fact for from had has have i "
        "idea in is it just last let me message my of on one our please previous s said save say so store that the "
        "them there these this those to told too us was we what which work wrote you your"
    )
)
"""Words that only refer to something said before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """A message that asks to be remembered."""

    kind: str
    """`memories` or `important_fact`."""
    text: str
    """The text to remember, without tags; empty if `previous`."""
    tags: tuple[str, ...]
    previous: bool
    """True if it has no content itself ("let's save this") and so refers to the message before."""


@dataclass(frozen=True, slots=True)
class TriggerDetector:
    """Finds trigger phrases and tags in messages.

    Triggers match whole words in any case: `fact:` does not match "artifact:", nor `memory:` "in-memory:". Triggers for
    memories are tried before those for facts, each in their order.

    For a trigger that ends with a word, such as "my preference is", its whole sentence and the text after it are
    remembered; for one that ends with a sign, such as "important:", only the text after it. Tags are `#beto_home` and
    `@beto_home`.

    Raises:
        InvalidInputError: A trigger is blank.
    """

    memory_triggers: Sequence[str] = MEMORY_TRIGGERS
    fact_triggers: Sequence[str] = FACT_TRIGGERS

    def __post_init__(self) -> None:
        for trigger in (*self.memory_triggers, *self.fact_triggers):
            if not trigger.strip():
                raise InvalidInputError(f"a trigger must not be blank (got {trigger!r})")

    def detect(self, message: str) -> Detection | None:
        """Find what `message` asks to have remembered; `None` if it contains no trigger."""
        for kind, triggers in ((MEMORIES, self.memory_triggers), (IMPORTANT_FACT, self.fact_triggers)):
            for trigger in triggers:
                if found := _trigger(trigger).search(message):
                    return self._detection(message, kind, found)
        return None

    def tags(self, message: str) -> tuple[str, ...]:
        """The tags in `message`, with their prefix, each once, in order."""
        return tuple(dict.fromkeys(_TAG.findall(message)))

    def _detection(self, message: str, kind: str, found: re.Match[str]) -> Detection:
        before, after = message[: found.start()], message[found.end() :]
        own = {word.casefold() for word in _WORD.findall(_untagged(f"{before} {after}"))}
        previous = own <= _SAYS_NOTHING
        start = _sentence_start(message, found.start()) if _ends_with_word(found[0]) else found.end()
        text = "" if previous else _untagged(message[start:]) or _untagged(message)
        return Detection(kind=kind, text=text, tags=self.tags(message), previous=previous)


class LastMessages:
    """The last message with content of each conversation, for messages that only refer to it.

    Messages are kept by user and session, so that "save this" never saves the words of another user. Thread-safe.

    Args:
        conversations: The number that is kept; the least recently used are dropped first.
    """

    def __init__(self, conversations: int = 1_000) -> None:
        self._conversations = conversations
        self._last: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, message: str, *, user: str, session: str = "") -> None:
        """Keep `message` as the last of its conversation."""
        with self._lock:
            self._last[user, session] = message
            self._last.move_to_end((user, session))
            while len(self._last) > self._conversations:
                self._last.popitem(last=False)

    def last(self, *, user: str, session: str = "") -> str | None:
        """The last message of a conversation; `None` if none is kept."""
        with self._lock:
            return self._last.get((user, session))


@lru_cache(maxsize=1_024)
def _trigger(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(re.escape(word) for word in phrase.split())
    apostrophes = words.replace("'", "['\u2019]")
    right = r"(?!\w)" if _ends_with_word(phrase.strip()) else ""
    return re.compile(rf"(?<![\w-]){apostrophes}{right}", re.IGNORECASE)


def _untagged(text: str) -> str:
    return _TAG.sub("", text).strip()


def _ends_with_word(text: str) -> bool:
    return _WORD.fullmatch(text[-1]) is not None


def _sentence_start(message: str, at: int) -> int:
    return max((end.end() for end in _SENTENCE_END.finditer(message, 0, at)), default=0)
