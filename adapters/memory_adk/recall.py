"""Recall for ADK: search within limits, and quote the memories in a prompt as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from google.adk.models.llm_request import LlmRequest
from google.genai import types

from memory_adk.convert import shortened
from memory_adk.others import current
from memory_adk.shown import SHOWS_NOTHING, Shown
from memory_core import Hit, Recalled, RecallOptions
from memory_core.adapting import (
    NOTHING,
    AgentMemory,
    Asked,
    block_for,
    count_reads,
    cut_query,
    equal_form,
    without_blocks,
)

SEARCH: Final = RecallOptions(limit=10, max_chars=8_000, min_score=0.1)
"""The options of a search that is given none: what it returns goes into a prompt, and into the session, which is sent
again with each turn. Up to this least score, no question of the development corpora (`tests/benchmarks/breadth.py`)
loses evidence among the first ten results."""
_MOST_HITS: Final = 10_000
"""Most hits that one search of the core returns."""
_MORE: Final = 4
"""So many times the wanted number is searched for, since some hits repeat others."""
_NO_BLOCK: Final = 100_000_000
"""Character budget that never limits the number of results; the text block itself is not used."""
_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f")


async def find(
    handle: AgentMemory, query: str, options: RecallOptions, shown: Shown = SHOWS_NOTHING
) -> list[tuple[Hit, str]]:
    """Search memories about `query` and return them with the text to show, in the order of `BoundMemory.search`.

    Each text is there once. If there are more than `options.limit`, those are there that a recall would choose: what
    only asks the same gives way to what may answer it.

    Args:
        handle: The memory to search.
        query: A question or some words.
        options: Recall options. The character budget applies to all texts together; texts beyond it are cut.
        shown: The records to leave out, because the current conversation shows them already.
    """
    words = cut_query(without_blocks(str(query).encode(errors="replace").decode()))  # models pass any type
    # They are no message of the person's.
    asked = Asked(words, shows=shown.shows, shown=shown.condition(), shows_query=False, counts_reads=False)
    most = _MOST_HITS if options.limit is None else options.limit
    whole = replace(options, limit=most, max_chars=_NO_BLOCK, max_tokens=None, count_tokens=None, neighbors=False)

    async def search(question: Asked) -> Recalled:
        # A session that is left out may have more hits than are wanted.
        limit = min(_MORE * most, _MOST_HITS) if question is asked else _MOST_HITS
        conditions = asked.not_shown(options.where)
        found = await handle.search(words, limit=limit, where=conditions, mode=options.mode, floor=options.floor)
        hits = list(_distinct(found, question, options.min_score))
        if len(hits) <= most:
            return replace(NOTHING, hits=tuple(hits))
        chosen = await block_for(handle, question, whole)
        return replace(chosen, hits=tuple(_in_order_of(hits, chosen.hits)))

    read = shown.read
    found = await (search(asked) if read is None else current(handle, asked, search, shown.session, read))
    results = list(_within(options, found.hits))
    count_reads(handle, [hit.record for hit, _ in results])
    return results


def _distinct(hits: Sequence[Hit], asked: Asked, share: float) -> Iterator[Hit]:
    """The hits with at least this share of the best one's score, each text once; without those that the conversation
    shows, or that only repeat the question."""
    least, question = share * max((hit.score for hit in hits), default=0.0), equal_form(asked.text)
    forms = {question} if asked.text.rstrip().endswith(_QUESTION_MARKS) else set[str]()
    for hit in hits:
        form = equal_form(hit.record.text)
        if hit.score >= least and form.strip() and form not in forms and not asked.shows(hit.record):
            forms.add(form)
            yield hit


def _in_order_of(hits: Sequence[Hit], chosen: Sequence[Hit]) -> list[Hit]:
    """The chosen hits in the order of all hits; those beyond these come last."""
    places = {equal_form(hit.record.text): place for place, hit in enumerate(hits)}
    return sorted(chosen, key=lambda hit: places.get(equal_form(hit.record.text), len(places)))


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
