"""The statements of the Skynet document about its tools, example by example."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from calling import Caller, in_process

from memory_core import BoundMemory

pytestmark = pytest.mark.uncovered

CONCISE: dict[str, Any] = {
    "content": "User prefers concise responses without verbose explanations",
    "metadata": {
        "type": "preference",
        "user": "alice",
        "importance": 0.9,
        "confidence": 0.95,
        "tags": ["communication", "style"],
    },
}
MONDAYS: dict[str, Any] = {
    "content": "User tends to ask about authentication on Monday mornings",
    "metadata": {
        "type": "pattern",
        "user": "alice",
        "importance": 0.7,
        "emotion": "curiosity",
        "tags": ["temporal", "authentication"],
    },
}
DATABASE: dict[str, Any] = {
    "content": "User's production environment uses PostgreSQL 14",
    "metadata": {
        "type": "fact",
        "user": "alice",
        "importance": 0.8,
        "confidence": 1.0,
        "tags": ["infrastructure", "database"],
    },
}
TYPES = ("insight", "fact", "preference", "pattern", "connection")
EMOTIONS = ("curiosity", "satisfaction", "concern", "neutral", "excitement")


async def test_the_examples_of_storing_answer_as_documented(ann: BoundMemory) -> None:
    async with in_process(ann) as call:
        for example in (CONCISE, MONDAYS, DATABASE):
            stored = await call.ok("memory_store", **example)
            assert set(stored) == {"id", "collection", "content", "metadata"}
            assert re.fullmatch(r"mem_\d{13}_\w+", stored["id"])
            assert stored["collection"] == "skynet_memories"
            assert stored["content"] == example["content"]
            metadata = stored["metadata"]
            assert {"confidence": 0.8, **example["metadata"]}.items() <= metadata.items()
            assert abs(metadata["timestamp"] - ann.memory.clock().timestamp() * 1000) < 60_000


async def test_the_examples_of_searching_find_what_was_stored(bea: BoundMemory) -> None:
    async with in_process(bea) as call:
        for example in (CONCISE, MONDAYS, DATABASE):
            await call.ok("memory_store", **example)
        slow = "Users complained about slow performance on the dashboard"
        await call.store(slow, "insight", emotion="concern")
        assert (await call.found("user preferences for API responses", nResults=3))[0] == CONCISE["content"]
        important = {"type": "fact", "user": "alice", "minImportance": 0.7}
        assert await call.found("database configuration", filter=important, nResults=5) == [DATABASE["content"]]
        assert await call.found("performance issues", filter={"emotion": "concern"}) == [slow]
        assert await call.found("tone", filter={"type": "preference", "user": "alice"}) == [CONCISE["content"]]
        assert await call.found("stack", filter={"type": "fact", "minImportance": 0.8}) == [DATABASE["content"]]
        assert await call.found("when?", filter={"type": "pattern", "user": "alice"}) == [MONDAYS["content"]]


async def test_results_have_the_documented_fields_and_come_nearest_first(bea: BoundMemory) -> None:
    async with in_process(bea) as call:
        for example in (CONCISE, MONDAYS, DATABASE):
            await call.ok("memory_store", **example)
        answer = await call.ok("memory_search", query="authentication")
        assert set(answer) == {"results", "query", "count"}
        distances = [result["distance"] for result in answer["results"]]
        assert len(distances) == 3
        assert distances == sorted(distances)
        assert all(0 <= distance <= 1 for distance in distances)
        first = answer["results"][0]
        assert first["content"] == MONDAYS["content"]
        assert set(first) == {"id", "collection", "content", "metadata", "distance"}
        assert set(first["metadata"]) == {*MONDAYS["metadata"], "confidence", "timestamp"}


async def test_the_text_as_it_was_stored_is_at_distance_0(bea: BoundMemory) -> None:
    async with in_process(bea) as call:
        await call.ok("memory_store", **DATABASE)
        answer = await call.ok("memory_search", query=DATABASE["content"])
        assert answer["results"][0]["distance"] == pytest.approx(0, abs=0.01)


async def test_what_is_left_out_takes_the_documented_defaults(ann: BoundMemory) -> None:
    async with in_process(ann) as call:
        stored = await call.ok("memory_store", content="Ann has a dog", metadata={"type": "fact"})
        del stored["metadata"]["timestamp"]
        assert stored["metadata"] == {"type": "fact", "importance": 0.5, "confidence": 0.8, "tags": []}
        for number in range(6):
            await call.store(f"Ann has {number} cats")
        assert len(await call.found("pets")) == 5


@pytest.mark.parametrize(
    ("metadata", "complaint"),
    [
        ({"type": "idea"}, "metadata.type: Input should be 'insight', 'fact', 'preference', 'pattern' or 'connection'"),
        ({}, "metadata.type: is missing"),
        ({"type": "fact", "emotion": "joy"}, "metadata.emotion: Input should be 'curiosity'"),
        ({"type": "fact", "importance": 1.1}, "metadata.importance: Input should be less than or equal to 1"),
        ({"type": "fact", "confidence": -0.1}, "metadata.confidence: Input should be greater than or equal to 0"),
        ({"type": "fact", "tags": "one"}, "metadata.tags: must be a JSON array"),
        ({"type": "fact", "mood": "fine"}, "metadata.mood: there is no such field"),
    ],
)
async def test_wrong_metadata_is_refused_and_nothing_is_stored(
    ann: BoundMemory, metadata: dict[str, Any], complaint: str
) -> None:
    async with in_process(ann) as call:
        said = await call.refused("memory_store", content="Ann has a dog", metadata=metadata)
        assert said.startswith(f"memory_store failed: {complaint}")
        assert (await ann.stats()).records == 0


@pytest.mark.parametrize("content", ["", "   ", "\n\t", "\u3000"])
async def test_empty_content_is_refused(ann: BoundMemory, content: str) -> None:
    async with in_process(ann) as call:
        assert "must not be blank" in await call.refused("memory_store", content=content, metadata={"type": "fact"})
        assert "must not be blank" in await call.refused("memory_search", query=content)
        assert (await ann.stats()).records == 0


@pytest.mark.parametrize("limit", [0, 51, -1, 1.5, "many"])
async def test_a_search_returns_1_to_50_results_and_refuses_other_numbers(ann: BoundMemory, limit: object) -> None:
    async with in_process(ann) as call:
        assert "nResults" in await call.refused("memory_search", query="dog", nResults=limit)
        assert "limit" in await call.refused("memory_list", limit=limit)


async def test_a_search_returns_up_to_50_results(ann: BoundMemory) -> None:
    async with in_process(ann) as call:
        batch = [{"content": f"Fact number {n}", "metadata": {"type": "fact"}} for n in range(51)]
        await call.ok("memory_store_many", memories=batch)
        assert len(await call.found("fact", nResults=50)) == 50
        assert len(await call.found("fact", nResults=1)) == 1


async def test_collections_are_apart_and_an_unknown_one_is_empty_and_not_made(ann: BoundMemory) -> None:
    async with in_process(ann) as call:
        await call.ok("memory_store", content="Ann rows", metadata={"type": "fact"}, collection="sport")
        assert await call.found("rowing") == []
        assert await call.found("rowing", collection="sport") == ["Ann rows"]
        assert await call.found("rowing", collection="nowhere") == []
        assert await call.found("rowing", collection="*") == ["Ann rows"]
        assert await ann.collections() == ["sport"]


async def test_storing_under_an_id_again_updates_the_memory(ann: BoundMemory) -> None:
    async with in_process(ann) as call:
        memory_id = await call.store("Ann lives in Oslo", user="ann", tags=["home"], importance=0.9)
        again = await call.ok(
            "memory_store",
            id=memory_id,
            content="Ann lives in Bergen",
            metadata={"type": "insight", "emotion": "neutral"},
        )
        assert again["id"] == memory_id
        assert (
            again["metadata"].items()
            >= {"type": "insight", "importance": 0.5, "emotion": "neutral", "tags": []}.items()
        )
        assert "user" not in again["metadata"]
        assert await call.found("Where does Ann live?") == ["Ann lives in Bergen"]
        versions = (await call.ok("memory_history", id=memory_id))["versions"]
        assert [version["content"] for version in versions] == ["Ann lives in Oslo", "Ann lives in Bergen"]


async def test_storing_under_the_id_of_another_frameworks_memory_updates_that(ann: BoundMemory) -> None:
    theirs = await ann.add("Ann lives in Oslo")
    async with in_process(ann, "*") as call:
        await call.ok(
            "memory_store", id=theirs.id, content="Ann lives in Bergen", metadata={"type": "fact", "user": "ann"}
        )
        assert await call.found("Where does Ann live?", filter={"user": "ann"}) == ["Ann lives in Bergen"]
        refusal = await call.refused(
            "memory_store", id=theirs.id, content="Ann moved", metadata={"type": "fact"}, collection="other"
        )
        assert "belongs to a memory of another collection" in refusal


FILTERS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "type": ({"type": "fact"}, {"a", "b", "c"}),
    "user": ({"user": "alice"}, {"a", "b", "d"}),
    "minImportance": ({"minImportance": 0.7}, {"a", "c", "d"}),
    "minConfidence": ({"minConfidence": 0.9}, {"a", "b", "e"}),
    "emotion": ({"emotion": "concern"}, {"a", "c", "e"}),
    "tags": ({"tags": ["x", "y"]}, {"a", "d", "e"}),
    "since": ({"since": "2000-01-01T00:00:00Z"}, {"a", "b", "c", "d", "e"}),
    "until": ({"until": "2000-01-01T00:00:00Z"}, set()),
}


async def store_five(call: Caller) -> None:
    """Five memories, of which each filter finds three."""
    for content, metadata in {
        "a": {
            "type": "fact",
            "user": "alice",
            "importance": 0.7,
            "confidence": 0.9,
            "emotion": "concern",
            "tags": ["x", "y"],
        },
        "b": {"type": "fact", "user": "alice", "importance": 0.1, "confidence": 0.9, "tags": ["x"]},
        "c": {"type": "fact", "user": "bob", "importance": 1.0, "emotion": "concern", "tags": ["y"]},
        "d": {"type": "insight", "user": "alice", "importance": 0.9, "confidence": 0.1, "tags": ["y", "z", "x"]},
        "e": {"type": "pattern", "confidence": 1.0, "emotion": "concern", "tags": ["x", "y"]},
    }.items():
        await call.ok("memory_store", content=content, metadata=metadata)


async def test_every_filter_works_alone_and_with_every_other(ann: BoundMemory) -> None:
    async with in_process(ann) as call:
        await store_five(call)
        for one, other in itertools.combinations_with_replacement(FILTERS, 2):
            wanted = {**FILTERS[one][0], **FILTERS[other][0]}
            expected = FILTERS[one][1] & FILTERS[other][1]
            assert set(await call.found("letter", filter=wanted)) == expected, wanted
            listed = await call.ok("memory_list", filter=wanted)
            assert {memory["content"] for memory in listed["memories"]} == expected, wanted
        everything = {
            name: value for filter_, _ in FILTERS.values() for name, value in filter_.items() if name != "until"
        }
        assert await call.found("letter", filter=everything) == ["a"]


async def test_filters_apply_before_the_limit(ann: BoundMemory) -> None:
    async with in_process(ann) as call:
        for number in range(20):
            await call.store(f"The dog barks {number} times")
        await call.store("A cat", user="carol")
        assert await call.found("The dog barks", nResults=1, filter={"user": "carol"}) == ["A cat"]


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ({"type": "idea"}, "filter.type: Input should be"),
        ({"emotion": "joy"}, "filter.emotion: Input should be"),
        ({"minImportance": 2}, "filter.minImportance: Input should be less than or equal to 1"),
        ({"min_importance": 0.5}, "filter.min_importance: there is no such field"),
        ({"$where": "1"}, "filter.$where: there is no such field"),
        ({"since": "yesterday"}, "filter.since: must be a time, such as 2026-01-31T12:00:00Z"),
        ({"since": "2026-01-31 at noon"}, "filter.since: must be a time, such as 2026-01-31T12:00:00Z"),
        ({"since": True}, "filter.since: must be a time, such as 2026-01-31T12:00:00Z"),
        ({"since": "2026-01-01T00:00:00"}, "filter.since: must have a zone, as in 2026-01-31T12:00:00Z"),
        ({"since": "2026-01-31"}, "filter.since: must have a zone, as in 2026-01-31T12:00:00Z"),
    ],
)
async def test_a_wrong_filter_is_refused_rather_than_ignored(
    ann: BoundMemory, wanted: dict[str, Any], complaint: str
) -> None:
    async with in_process(ann) as call:
        assert complaint in await call.refused("memory_search", query="dog", filter=wanted)
        assert "there is no such field" in await call.refused("memory_search", query="dog", filters={})


async def test_all_documented_types_and_emotions_are_taken(ann: BoundMemory) -> None:
    async with in_process(ann) as call:
        for kind, emotion in zip(TYPES, EMOTIONS, strict=True):
            await call.store(f"a {kind} of {emotion}", kind, emotion=emotion)
        for kind, emotion in zip(TYPES, EMOTIONS, strict=True):
            assert await call.found("x", filter={"type": kind}) == [f"a {kind} of {emotion}"]
            assert await call.found("x", filter={"emotion": emotion}) == [f"a {kind} of {emotion}"]


async def test_two_memories_of_one_millisecond_have_different_ids(ann: BoundMemory) -> None:
    async with in_process(ann) as call:
        batch = [{"content": f"Fact number {n}", "metadata": {"type": "fact"}} for n in range(100)]
        stored = await call.ok("memory_store_many", memories=batch)
        assert len(set(stored["ids"])) == 100
