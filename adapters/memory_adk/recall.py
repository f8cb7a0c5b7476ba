"""From a question to memories in a prompt: searching within limits, and quoting what was found as data."""

from __future__ import annotations

try:
    from google.adk.events.event import Event
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai import types
except ImportError as error:
    raise ImportError("`memory_adk` needs google-adk: pip install 'memory-core[adk]'") from error

from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Final

from memory_adk.convert import EVENT_ID, memory_entry, shortened
from memory_core import Hit, MemoryRecord, Recalled, RecallOptions
from memory_core.adapting import AgentMemory, recall_with

MOST_HITS: Final = 10_000
"""Most hits one search of the core returns."""
in_conversation: Final[ContextVar[frozenset[str]]] = ContextVar("memory_adk_in_conversation", default=frozenset())
"""Ids of the events that the conversation shows to the agent whose tool is running."""
_NO_BLOCK: Final = 100_000_000
"""Characters of a block that nobody looks at, for as many results as are wanted."""


async def recall(
    handle: AgentMemory, query: str, options: RecallOptions, *, without_events: Collection[str] = ()
) -> Recalled:
    """Recall what is remembered about `query`.

    Args:
        handle: Whose memory.
        query: A question or some words.
        options: How to recall.
        without_events: Ids of events to leave out, because the conversation at hand shows them already.
    """
    wanted = str(query).encode("utf-8", "replace").decode()  # may be a model's argument, whatever it wrote

    def without(record: MemoryRecord) -> bool:
        return record.data.get(EVENT_ID) in without_events or options.without(record)

    return await recall_with(handle, wanted, replace(options, without=without))


async def find(
    handle: AgentMemory, query: str, options: RecallOptions, *, without_events: Collection[str] = ()
) -> list[MemoryEntry]:
    """Find what is remembered about `query`, best first, as ADK returns it.

    Args:
        handle: Whose memory.
        query: A question or some words.
        options: How to recall; the budget in characters is that of all texts together, and what does not fit is cut.
        without_events: Ids of events to leave out, because the conversation at hand shows them already.
    """
    whole = replace(options, max_chars=_NO_BLOCK, max_tokens=None, count_tokens=None)
    found = await recall(handle, query, whole, without_events=without_events)
    return list(_within(options, _once(found.hits)))


def for_search(max_results: int, max_chars: int) -> RecallOptions:
    """How memories are recalled as a list of results, best first.

    Args:
        max_results: At least 1.
        max_chars: Most characters of text in all results together, at least 1.
    """
    return as_results(RecallOptions(max_chars=max_chars, limit=max_results))


def as_results(options: RecallOptions) -> RecallOptions:
    """The same for a list of results, best first, in place of a block."""
    return replace(options, shows_query=False, latest_first=False, neighbours=False)


def in_prompt(events: Sequence[Event]) -> frozenset[str]:
    """The ids of a session's events that its prompts still show: those that no compaction has summarised."""
    summaries = (event.actions.compaction for event in events)
    end = max((summary.end_timestamp for summary in summaries if summary), default=float("-inf"))
    return frozenset(event.id for event in events if event.timestamp > end)


def show(contents: list[types.Content], memories: str) -> None:
    """Put a block of memories into a prompt, just before the latest user message, unless another plugin has done so."""
    if memories and not any(part.text == memories for content in contents for part in content.parts or []):
        quoted = types.Content(role="user", parts=[types.Part(text=memories)])
        contents.insert(end_of_history(contents), quoted)


def end_of_history(contents: Sequence[types.Content]) -> int:
    """Where a prompt's latest user message begins; the end, if a tool answered last. What stands before it stays the
    same from turn to turn, so a provider can cache it."""
    at = len(contents)
    while at and contents[at - 1].role == "user" and not _answers_a_call(contents[at - 1]):
        at -= 1
    return at


def _once(hits: Sequence[Hit]) -> list[Hit]:
    """The hits, an exchange in place of the question it holds, where both were found."""
    exchanges = {_told(hit): hit for hit in hits if hit.record.kind == "conversation_turn"}
    chosen = [exchanges.get(_told(hit), hit) if hit.record.kind == "user_query" else hit for hit in hits]
    return list({hit.record.id: hit for hit in chosen}.values())


def _told(hit: Hit) -> tuple[object, object]:
    """What a hit tells of: an event of a session, or the record itself."""
    return hit.record.session, hit.record.data.get(EVENT_ID, hit.record.id)


def _within(options: RecallOptions, hits: Sequence[Hit]) -> Iterator[MemoryEntry]:
    room = _NO_BLOCK if options.max_chars is None else options.max_chars
    tokens = options.max_tokens
    for hit in hits:
        # Half of what is left at most, so that one long memory does not crowd out the others.
        text = shortened(hit.record.text, max(room // 2, 1))
        if tokens is not None and options.count_tokens is not None:
            tokens -= options.count_tokens(text)
        if room < 1 or (tokens is not None and tokens < 0):
            return
        room -= len(text)
        yield memory_entry(hit, text)


def _answers_a_call(content: types.Content) -> bool:
    return any(part.function_response for part in content.parts or [])
