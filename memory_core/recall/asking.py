"""The searches of a recall: for the question, and for what the last turns of its conversation are about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory_core.agent_memory import Searching
from memory_core.conversation.messages.message_to_draft import Message
from memory_core.models import Hit, Mode
from memory_core.recall.asked import Asked
from memory_core.recall.keys import Key, key_of
from memory_core.recall.pushing import adds
from memory_core.recall.values import MOST_BYTES
from memory_core.retrieval.analysis import analyse, asks
from memory_core.retrieval.dense import chance
from memory_core.retrieval.relevance import SPREADS
from memory_core.retrieval.small_talk import PHRASES, telling
from memory_core.values.query_text import cut_query
from memory_core.where.where import Where

SEARCHED_CHARS: Final = 2_000
"""Maximum number of characters of a question that are searched for, from its beginning and its end. Embedders read
less."""
LAST_TURNS: Final = 2
"""Number of the person's last turns that say what a conversation is about."""
_CONTINUES: Final = 0.75
"""A question near small talk continues a conversation if, asked together with what that is about, it finds at least
this share of the relevance. Chosen on `tests/corpora/follow_ups.jsonl`: questions that continue it keep 79 % or more,
most requests ("How do you spell accommodate?") lose nearly all."""


@dataclass(frozen=True, slots=True)
class InContext:
    """A question in its conversation."""

    question: str
    about: str
    """The words that the person said last before it; empty at the beginning of a conversation."""
    said: frozenset[str]
    """The texts of the conversation before the question, which are never results."""
    prompt: Asked
    """The facts that its caller knows about the prompt."""


@dataclass(frozen=True, slots=True)
class Found:
    """The hits of a search for a question."""

    hits: list[Hit]
    """Best first."""
    surplus: dict[Key, float]
    """By the key of a hit, how far its relevance exceeds chance and small talk, for the question or what it is about;
    without hits that were not compared."""


def in_context(asked: Asked) -> InContext:
    """A question in its conversation."""
    messages = [Message(each, role="user") if isinstance(each, str) else each for each in asked.before]
    if messages and messages[-1].text == asked.text:
        messages.pop()
    about = [message.text for message in messages if message.role == "user"][-LAST_TURNS:]
    return InContext(
        cut_query(asked.text, SEARCHED_CHARS),
        cut_query("\n".join(about), SEARCHED_CHARS),
        frozenset(each.text for each in messages),
        asked,
    )


async def find(
    handle: Searching, asked: InContext, *, limit: int, where: Where, mode: Mode, floor: bool, explain: bool
) -> Found:
    """Search for a question, and for what its conversation is about; the scores of both are added."""

    async def search(text: str, *, floor: bool = floor) -> list[Hit]:
        return await handle.search(
            text, limit=limit, where=where, mode=mode, floor=floor, explain=explain, most_bytes=MOST_BYTES
        )

    if asked.about.strip():
        alone, about = await asyncio.gather(search(asked.question, floor=False), search(asked.about))
        if not _is_small_talk(asked.question, alone) or await _continues(asked, about, search):
            return _together([hit for hit in alone if not floor or _may_answer(hit)], about, alone)
    hits = await search(asked.question)
    return Found(hits, _surplus(hits))


def _is_small_talk(text: str, hits: Sequence[Hit]) -> bool:
    """True if a message asks for nothing, so that it is no question about its conversation either."""
    if not asks(text) and not telling(analyse(text)):
        return True
    level, terms = chance(len(PHRASES)) + SPREADS, frozenset(analyse(text))
    compared = [hit for hit in hits if hit.relevance is not None]
    return any(hit.relevance is not None and hit.relevance.small_talk > level for hit in compared) and all(
        hit.relevance is None or hit.relevance.surplus <= 0 for hit in compared if adds(hit.record, terms)
    )


async def _continues(asked: InContext, about: Sequence[Hit], search: Callable[..., Awaitable[list[Hit]]]) -> bool:
    """True if a short question ("Which days work?") keeps to what its conversation is about."""
    relevant = _best_surplus(about, asked.said)
    if relevant <= 0 or not asks(asked.question):
        return False
    both = await search(f"{asked.about}\n{asked.question}", floor=False)
    return _best_surplus(both, asked.said) >= _CONTINUES * relevant


def _best_surplus(hits: Sequence[Hit], said: Collection[str]) -> float:
    """The highest surplus of the hits that are not part of the conversation."""
    return max(_surplus([hit for hit in hits if hit.record.text not in said]).values(), default=0.0)


def _together(kept: Sequence[Hit], about: Sequence[Hit], alone: Sequence[Hit]) -> Found:
    """The hits of both searches by the sum of their scores; a hit that one of them lacks counts as its last one.

    Args:
        kept: The hits of `alone` that are kept although nothing was found for what the conversation is about.
        about: The hits for what the conversation is about.
        alone: The hits for the question, without the floor.
    """
    hits = {key_of(hit.record): hit for hit in (*about, *kept)}
    scores, surplus = dict.fromkeys(hits, 0.0), _surplus(about)
    for key, above in _surplus(alone).items():
        surplus[key] = max(above, surplus.get(key, above))
    for found in (alone, about):
        own = {key_of(hit.record): hit.score for hit in found}
        for key in hits:
            scores[key] += own.get(key, min(own.values(), default=0.0))
    order = sorted(hits, key=lambda key: -scores[key])
    return Found([replace(hits[key], score=scores[key]) for key in order], surplus)


def _may_answer(hit: Hit) -> bool:
    """True if a hit says more than chance and small talk do; one of a store that does not compare them may."""
    return hit.relevance is None or hit.relevance.surplus > 0


def _surplus(hits: Sequence[Hit]) -> dict[Key, float]:
    return {key_of(hit.record): hit.relevance.surplus for hit in hits if hit.relevance is not None}
