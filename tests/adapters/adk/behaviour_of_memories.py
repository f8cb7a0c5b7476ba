"""Cases of explicit memories, of metadata, and of what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from tests.adapters.adk.agents import entry_of, said_event
from tests.adapters.adk.behaviour import ANN, CASES, DINNER, FERRY, World, case


@case
async def memories_are_added_explicitly(world: World) -> None:
    await world.entries(entry_of(FERRY), entry_of(DINNER))
    assert (await world.texts("ferry"), await world.texts("dinner")) == ([FERRY], [DINNER])


@case
async def many_memories_can_be_added_in_one_call(world: World) -> None:
    await world.entries(*(entry_of(f"fact number {n}") for n in range(30)))
    assert len(await world.stored()) == 30


@case
async def an_explicit_memory_keeps_its_id(world: World) -> None:
    await world.entries(entry_of(FERRY, id="ferry"))
    assert [entry.id for entry in await world.found("ferry")] == ["ferry"]


@case
async def the_memory_id_of_the_call_wins(world: World) -> None:
    await world.entries(entry_of(FERRY, id="entry"), memory_id="call")
    assert [entry.id for entry in await world.found("ferry")] == ["call"]


@case
async def an_explicit_memory_keeps_its_author_and_time(world: World) -> None:
    await world.entries(entry_of(FERRY, author="doctor", timestamp="2026-02-13T14:46:21Z"))
    (entry,) = await world.found("ferry")
    assert (entry.author, entry.timestamp) == ("doctor", "2026-02-13T14:46:21+00:00")


@case
async def metadata_of_a_call_is_kept(world: World) -> None:
    await world.events(said_event(FERRY), source="agent")
    assert (await world.found("ferry"))[0].custom_metadata["source"] == "agent"


@case
async def nested_metadata_and_other_keys_are_merged(world: World) -> None:
    await world.events(said_event(FERRY), metadata={"origin": "test"}, source="agent")
    assert {"origin": "test", "source": "agent"}.items() <= (await world.found("ferry"))[0].custom_metadata.items()


@case
async def metadata_of_an_entry_wins_over_that_of_the_call(world: World) -> None:
    await world.entries(entry_of(FERRY, custom_metadata={"source": "entry"}), source="call")
    assert (await world.found("ferry"))[0].custom_metadata["source"] == "entry"


@case
async def several_types_of_metadata_are_kept(world: World) -> None:
    values = {"text": "a", "number": 1.5, "truth": True, "list": [1, 2], "nothing": None}
    await world.entries(entry_of(FERRY), **values)
    assert values.items() <= (await world.found("ferry"))[0].custom_metadata.items()


@case
async def an_entry_without_metadata_has_none(world: World) -> None:
    await world.entries(entry_of(FERRY))
    assert [entry.custom_metadata for entry in await world.found("ferry")] == [{}]


@case
async def a_time_comes_back_as_a_time(world: World) -> None:
    seen = datetime(2026, 1, 2, tzinfo=UTC)
    await world.entries(entry_of(FERRY), seen=seen)
    assert (await world.found("ferry"))[0].custom_metadata["seen"] == seen


@case
async def consolidation_is_accepted(world: World) -> None:
    await world.entries(entry_of(FERRY), entry_of(DINNER), enable_consolidation=True)
    assert sorted(record.text for record in await world.stored()) == sorted([FERRY, DINNER])


@case
async def a_time_is_kept_as_metadata(world: World) -> None:
    await world.entries(entry_of(FERRY), seen=datetime(2026, 1, 2, tzinfo=UTC))
    assert (await world.found("ferry"))[0].custom_metadata["seen"] == "2026-01-02T00:00:00Z"


def _ttl(name: str, expected: timedelta | None, *, of_entries: bool = True, **metadata: Any) -> None:
    """Cases of how long events and explicit memories are kept."""

    async def check(world: World) -> None:
        await world.events(said_event(FERRY), **metadata)
        await world.entries(entry_of(DINNER), **metadata)
        for record in await world.stored():
            lasts = record.expires_at and round((record.expires_at - record.created_at) / timedelta(minutes=1))
            wanted = expected if of_entries or record.text == FERRY else None
            assert lasts == (wanted and wanted / timedelta(minutes=1))

    CASES[name] = check


_ttl("a time to live in seconds as text", timedelta(hours=1), ttl="3600s")
_ttl("a time to live as a number", timedelta(hours=1), ttl=3600)
_ttl("a time to live of revisions", timedelta(hours=1), of_entries=False, revision_ttl="3600s")
_ttl("a time to live beside an empty one of revisions", timedelta(hours=1), ttl="3600s", revision_ttl=None)
_ttl("no time to live", None, ttl=None)


def _ignored(**metadata: Any) -> None:
    """A case of an option that only Vertex has: accepted, and not returned as metadata."""
    (name,) = metadata

    async def check(world: World) -> None:
        await world.events(said_event(FERRY), **metadata)
        assert name not in (await world.found("ferry"))[0].custom_metadata

    CASES[f"the option {name}"] = check


_ignored(wait_for_completion=None)
_ignored(force_flush=True)
_ignored(stream_id="s")
_ignored(generation_trigger_config={"generation_rule": {"idle_duration": "60s"}})
_ignored(allowed_topics=["USER_PREFERENCES"])
_ignored(http_options={"timeout": 1})
_ignored(disable_memory_revisions=True)


@case
async def options_without_events_are_fine(world: World) -> None:
    await world.events(generation_trigger_config={"generation_rule": {"idle_duration": "60s"}})


def _refused(name: str, error: type[Exception], *memories: Any, given: Any = None, **metadata: Any) -> None:
    """A case of an explicit memory that is refused, with nothing stored."""

    async def check(world: World) -> None:
        wanted = list(memories) if given is None else given
        with pytest.raises(error):
            await world.service.add_memory(
                app_name=world.app, user_id=ANN, memories=wanted, custom_metadata=metadata or None
            )
        assert await world.stored() == []

    CASES[name] = check


def _holding(*parts: types.Part) -> MemoryEntry:
    return MemoryEntry(content=types.Content(parts=list(parts)))


_refused("a text instead of memories", TypeError, given="ferry")
_refused("one memory instead of a list", TypeError, given=entry_of(FERRY))
_refused("texts instead of entries", TypeError, "ferry")
_refused("a content instead of an entry", TypeError, types.Content(parts=[types.Part(text=FERRY)]))
_refused("no memories", ValueError)
_refused("a memory without text", ValueError, _holding())
_refused("a memory of a function call", ValueError, _holding(types.Part(function_call=types.FunctionCall(name="f"))))
_refused("a memory of one blank", ValueError, entry_of("   "))
_refused("a memory of blanks", ValueError, entry_of(FERRY), entry_of("  \n"))
_refused(
    "a memory with an image",
    ValueError,
    _holding(types.Part(text="x"), types.Part(inline_data=types.Blob(data=b"1", mime_type="image/png"))),
)
_refused(
    "a memory of blanks and an image",
    ValueError,
    _holding(types.Part(text=" "), types.Part(inline_data=types.Blob(data=b"1", mime_type="image/png"))),
)
_refused(
    "a memory with a file",
    ValueError,
    _holding(types.Part(file_data=types.FileData(file_uri="gs://a/b", mime_type="image/png"))),
)
_refused("a consolidation that is no boolean", TypeError, entry_of(FERRY), enable_consolidation="yes")
_refused("a memory id that is no text", ValueError, entry_of(FERRY), memory_id=7)
