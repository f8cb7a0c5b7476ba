"""The public behaviour of ADK's own memory services, case by case, on this one: by words alone, and by meaning as by
default.

A case marked as not holding is explained in `docs/howto/adk-services.md`; it fails here if it begins to hold.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

import tests.adapters.adk.behaviour_of_memories  # adds its cases
import tests.adapters.adk.behaviour_of_sessions  # noqa: F401  (adds its cases)
from memory_adk import MemoryService
from memory_core import Memory
from tests.adapters.adk.behaviour import APPS, CASES, World
from tests.adapters.adk.behaviour_of_files import FILES
from tests.adapters.adk.published import PUBLISHED

KINDS: Final = ("words", "meaning")

BY_DESIGN: Final = {
    "of_an_event_id_the_last_text_counts": "a known event stays as it is, as in ADK's in-memory service",
    "a_shorter_session_replaces_the_longer_one": "nothing is deleted by leaving it out",
    "one_event_in_two_sessions_is_found_twice": "a text is returned once",
    "parts_without_text_are_returned": "only text is stored",
    "the_id_of_an_entry_is_that_of_its_event": "a memory has its own id",
    "an_entry_has_a_local_time_without_an_offset": "times are UTC and say so",
    "a_long_text_is_returned_whole": "one memory takes at most half of the characters of an answer",
    "a_file_is_shared_with_adks_sessions": "a memory has a file of its own",
    "a text with a function word of the question is found as well": "a function word is no match",
    "of_equal_matches_the_newest_comes_first": "ADK's in-memory service has the opposite order",
    "an_event_that_comes_with_another_role_gets_that_role": "the role is that of the author",
    "a_time_comes_back_as_a_time": "metadata is JSON, so a time becomes a text",
}
"""Cases that do not hold, whatever the options; `docs/howto/adk-services.md` explains each."""
BY_MEANING: Final = (
    "a query that looks like SQL",
    "a query that looks like a function",
    "a word beside a full stop",
    "words with a hyphen",
    "an unknown word finds nothing",
    "the beginning of a word finds nothing",
    "function words alone find nothing",
    "of similar texts only the one with the word",
    "a percent sign is no placeholder",
    "an underscore is no placeholder",
    *(f"another script {number}" for number in (3, 13)),
    "equal_matches_keep_the_order_in_which_they_were_added",
    "the_best_of_many_comes_first_and_the_others_in_their_order",
    "only_the_greeting_that_matches_is_found",
    "only_the_turn_that_matches_is_found",
    "events_are_added_concurrently",
    "a_deleted_memory_is_not_found",
)
"""Cases that do not hold by meaning: texts without a common word match in meaning, and equal words differ in it. A word
that no memory has finds what is nearest in a memory of one or two texts."""
LEAST_RELEVANT: Final = "a text is found beside one that says more"
"""Does not hold by words: a tenth of the best score is too little to be returned."""
BESIDE: Final = "only_the_answer_that_matches_is_found"
"""Does not hold: a message is also found by what was said beside it."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def memories(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Memory]]:
    """One memory by words and one by meaning for all cases, each of which has an app of its own."""
    folder: Path = tmp_path_factory.mktemp("memories")
    async with Memory(folder / "words.db", embedder=None) as words, Memory(folder / "meaning.db") as meaning:
        yield {"words": words, "meaning": meaning}


def every_case() -> Iterator[Any]:
    for name, kind in itertools.product(CASES, KINDS):
        if name in FILES and kind != "meaning":
            continue
        by_kind = {"words": (LEAST_RELEVANT, BESIDE), "meaning": (*BY_MEANING, BESIDE)}
        differs = name in BY_DESIGN or name in by_kind[kind]
        marks = [pytest.mark.xfail(reason=BY_DESIGN.get(name, f"found by {kind}"))] if differs else []
        yield pytest.param(name, kind, id=f"{name}, {kind}", marks=marks)


@pytest.mark.uncovered
@pytest.mark.parametrize(("name", "kind"), list(every_case()))
async def test_what_adks_own_services_do_holds(memories: dict[str, Memory], name: str, kind: str) -> None:
    service = MemoryService(memories[kind])
    await CASES[name](World(service, f"app {next(APPS)}"))


def test_of_adks_108_published_tests_100_hold_by_words_and_93_by_meaning() -> None:
    published = [name for names in PUBLISHED.values() for name in names]
    assert [len(names) for names in PUBLISHED.values()] == [38, 42, 28]
    assert set(published) <= set(CASES)
    by_words = [name for name in published if name not in (*BY_DESIGN, BESIDE)]
    by_meaning = [name for name in by_words if name not in BY_MEANING]
    assert (len(published), len(by_words), len(by_meaning)) == (108, 100, 93)
