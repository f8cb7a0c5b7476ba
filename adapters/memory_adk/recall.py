"""Recall for ADK: search within limits, and quote the memories in a prompt as data."""

from __future__ import annotations

try:
    from google.adk.models.llm_request import LlmRequest
    from google.genai import types
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from memory_adk.convert import shortened
from memory_adk.matching import LEAST_SCORE, Alone
from memory_adk.others import Current
from memory_adk.shown import SHOWS_NOTHING, Shown
from memory_core import BoundMemory, Hit, RecallOptions
from memory_core.adapting import AgentMemory, Asked, block_for

MOST_HITS: Final = 10_000
"""Most hits that one search of the core returns."""
_NO_BLOCK: Final = 100_000_000
"""Character budget that never limits the number of results; the text block itself is not used."""


def in_context(handle: AgentMemory, options: RecallOptions, shown: Shown) -> AgentMemory | Alone | Current:
    """The memory in which a message is found by what was said just before and after it, if the options say so, and in
    which nothing is found that another session has taken back."""
    if not isinstance(handle, BoundMemory):
        return handle
    found = handle if options.neighbors else Alone(handle)
    return found if shown.others is None else Current(found, shown.others, shown.session)


async def find(
    handle: AgentMemory, query: str, options: RecallOptions, shown: Shown = SHOWS_NOTHING
) -> list[tuple[Hit, str]]:
    """Search memories about `query` and return them with the text to show, best first.

    Args:
        handle: The memory to search.
        query: A question or some words.
        options: Recall options. The character budget applies to all texts together; texts beyond it are cut. With
            `neighbors`, a message is also found by what was said just before and after it.
        shown: What to leave out, because the current conversation shows it already.
    """
    whole = replace(options, max_chars=_NO_BLOCK, max_tokens=None, count_tokens=None, neighbors=False)
    # Models pass any type. Their words are no message of the person's.
    asked = Asked(str(query), shows=shown.shows, shown=shown.condition(), shows_query=False)
    found = await block_for(in_context(handle, options, shown), asked, whole)
    # A score below zero is worse than that of an unrelated text.
    relevant = [hit for hit in found.hits if hit.score >= 0 or not options.floor]
    return list(_within(options, relevant))


def for_search(max_results: int, max_chars: int) -> RecallOptions:
    """The default options of a search for results.

    Args:
        max_results: At least 1.
        max_chars: Most characters of text in all results together, at least 1.
    """
    return RecallOptions(max_chars=max_chars, limit=max_results, min_score=LEAST_SCORE)


def as_results(options: RecallOptions, neighbors: bool = False) -> RecallOptions:  # noqa: FBT001, FBT002
    """Adapt options to return a list of results, best first, instead of a block.

    Args:
        options: The options of the caller.
        neighbors: Whether a message is also found by what was said just before and after it.
    """
    return replace(options, latest_first=False, neighbors=neighbors)


def show(request: LlmRequest, memories: str) -> None:
    """Insert a block of memories before the latest user message of a prompt, unless another plugin has done so."""
    contents = request.contents
    end = end_of_history(contents)
    # ADK makes each prompt of the session, in whose history no block is.
    if memories and not any(part.text == memories for content in contents[end:] for part in content.parts or []):
        quoted = types.Content(role="user", parts=[types.Part(text=memories)])
        # In the first turn, the parts of a static instruction that are not text are user messages too.
        static: int | None = getattr(request, "_static_instruction_prefix_end_index", None)
        contents.insert(max(end, static or 0), quoted)


def end_of_history(contents: Sequence[types.Content]) -> int:
    """Index of a prompt's latest user message, or the end of the prompt if a tool answered last. The part before it
    stays the same from turn to turn, so a provider can cache it."""
    at = len(contents)
    while at and contents[at - 1].role == "user" and not _answers_a_call(contents[at - 1]):
        at -= 1
    return at


def _within(options: RecallOptions, hits: Sequence[Hit]) -> Iterator[tuple[Hit, str]]:
    room = _NO_BLOCK if options.max_chars is None else options.max_chars
    tokens = options.max_tokens
    for hit in hits:
        # At most half of the remaining budget, so that one long memory does not crowd out the others.
        text = shortened(hit.record.text, max(room // 2, 1))
        if tokens is not None and options.count_tokens is not None:
            tokens -= options.count_tokens(text)
        if room < 1 or (tokens is not None and tokens < 0):
            return
        room -= len(text)
        yield hit, text


def _answers_a_call(content: types.Content) -> bool:
    return any(part.function_response for part in content.parts or [])
