"""A server as it is by default, and what it offers beyond the Skynet document."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from calling import ENVIRONMENT, Caller, in_process
from mcp import Client, ClientSession
from mcp.client.stdio import StdioServerParameters
from mcp_types import ElicitRequestParams, ElicitResult, ResourceTemplateReference

from memory_core import BoundMemory, Draft, InvalidInputError, Link, Patch, Where
from memory_mcp import memory_server


async def test_a_memory_needs_only_its_content(ann: BoundMemory) -> None:
    async with in_process(ann, skynet=False) as call:
        stored = await call.ok("memory_store", content="Ann rows on Sundays")
        assert "collection" not in stored
        del stored["metadata"]["timestamp"]
        assert stored["metadata"] == {"type": "fact", "importance": 0.5, "confidence": 1.0, "tags": []}
        await call.ok("memory_store_many", memories=[{"content": "Ann sails"}])
        assert {record.text for record in (await ann.list()).records} == {"Ann rows on Sundays", "Ann sails"}


async def test_types_and_emotions_are_any_words_and_the_form_is_named_where_they_are_wrong(ann: BoundMemory) -> None:
    async with in_process(ann, skynet=False) as call:
        metadata = {"type": "decision", "emotion": "joy"}
        await call.ok("memory_store", content="We ship on Friday", metadata=metadata)
        found = await call.ok("memory_search", query="When do we ship?", filter={"type": "decision"})
        assert [result["metadata"]["emotion"] for result in found["results"]] == ["joy"]
        refused = await call.refused("memory_store", content="We ship", metadata={"type": " ", "importance": "high"})
        assert "metadata.type: must not be blank" in refused
        assert "metadata.importance: Input should be a valid number" in refused


async def test_a_search_is_that_of_every_other_framework_over_all_collections(ann: BoundMemory) -> None:
    for text, collection in (("Builds failed with ERR-4711", "work"), ("Ann drinks tea", None)):
        await ann.add(Draft(text, collection=collection))
    async with in_process(ann, skynet=False) as call:
        assert await call.found("ERR-4711") == ["Builds failed with ERR-4711"]
        assert await call.found("capital Peru") == []
        assert await call.found("tea", collection="work") == []


async def test_six_tools_are_enough_and_short(ann: BoundMemory) -> None:
    async with in_process(ann, skynet=False, tools=None) as call:
        tools = (await call.client.list_tools()).tools
        schemas = [
            json.dumps([tool.name, tool.description, tool.input_schema], separators=(",", ":")) for tool in tools
        ]
        assert sum(map(len, schemas)) < 7_000
        names = {tool.name for tool in tools}
        changing = {"memory_store", "memory_supersede", "memory_delete"}
        assert names == {"memory_recall", "memory_search", "memory_list", *changing}
        said = str(call.client.instructions)
        assert {word.strip(".,:") for word in said.split() if word.startswith("memory_")} == names - {"memory_list"}


async def test_other_tools_are_named_and_a_name_that_is_none_is_refused(ann: BoundMemory) -> None:
    async with in_process(ann, tools=["memory_pin", "memory_recall"]) as call:
        assert [tool.name for tool in (await call.client.list_tools()).tools] == ["memory_recall", "memory_pin"]
        assert "memory_store" not in str(call.client.instructions)
    with pytest.raises(
        InvalidInputError, match="no tool 'memory_remove'; there are all, read, or some of memory_recall"
    ):
        memory_server(ann, tools=["memory_recall", "memory_remove"])


@pytest.mark.parametrize(
    ("tools", "way_on"),
    [
        (None, "No tool here shows the whole of a memory; the resource memory://memories/ID does."),
        ("all", "memory_get shows the whole of a memory."),
    ],
)
async def test_a_part_of_a_memory_is_marked_with_the_way_to_the_whole_that_there_is(
    tools: str | None, way_on: str, ann: BoundMemory
) -> None:
    long = "Ann likes rowing. " * 400 + "The spare key is with Mrs Okafor. " + "Ann likes running. " * 400
    await ann.add(long)
    async with in_process(ann, skynet=False, tools=tools) as call:
        note, answer = await call.noted("memory_search", query="Where is the spare key?")
        (found,) = answer["results"]
        assert found["content"].startswith("…")
        assert found["content"].endswith("…")
        assert found["content"].strip("…") in long
        assert note.endswith(f"A text that is cut has … at that end. {way_on}")
        listed, _ = await call.noted("memory_list")
        assert listed.endswith(f"A text that is cut has … at that end. {way_on}")
        text = await call.text("memory_list")
        assert way_on in text


async def test_a_text_that_only_the_text_form_shortens_has_the_way_to_the_whole(ann: BoundMemory) -> None:
    await ann.add("Ann likes rowing. " * 100)
    async with in_process(ann, skynet=False) as call:
        for tool, arguments in (("memory_list", {}), ("memory_search", {"query": "rowing"})):
            text = await call.text(tool, **arguments)
            assert text.endswith('…"')
            assert "memory_get shows the whole of a memory." in text


async def test_a_memory_that_is_shown_as_a_whole_has_no_mark(ann: BoundMemory) -> None:
    await ann.add("Ann rows")
    async with in_process(ann, skynet=False) as call:
        for tool, arguments in (("memory_list", {}), ("memory_search", {"query": "rowing"})):
            assert "…" not in await call.text(tool, **arguments)


async def test_results_that_are_too_long_to_be_read_together_have_the_way_that_there_is(ann: BoundMemory) -> None:
    for number in range(24):
        await ann.add(Draft(f"harbour {number}", data={"chart": "x" * 480_000}))
    async with in_process(ann, skynet=False, tools=None) as call:
        note, answer = await call.noted("memory_search", query="harbour", nResults=24)
        assert f"{len(answer['rest'])} more are too long to be read with these" in note
        assert "memory_get" not in note
        assert "the resource memory://memories/ID does" in note


async def test_what_may_be_left_out_may_still_be_null(ann: BoundMemory) -> None:
    async with in_process(ann, skynet=False) as call:
        await call.ok("memory_store", content="Ann rows", collection=None, id=None)
        assert await call.found("Ann", filter=None, collection=None) == ["Ann rows"]


async def test_the_command_line_has_the_same_options(tmp_path: Path) -> None:
    db = str(tmp_path / "m.db")
    arguments = ["-m", "memory_mcp", "--file", db, "--user", "ann", "--tools", "memory_store", "memory_get"]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments, env=ENVIRONMENT)) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"memory_store", "memory_get"}
        assert "collection" not in await Caller(client).ok("memory_store", content="Ann rows")


async def test_what_was_true_then_is_found(ann: BoundMemory) -> None:
    async with in_process(ann, skynet=False) as call:
        old = await ann.add(Draft("Ann lives in Oslo", occurred_at=datetime(2020, 1, 1, tzinfo=UTC)))
        await call.ok("memory_supersede", id=old.id, content="Ann lives in Bergen")
        assert await call.found("Where does Ann live?") == ["Ann lives in Bergen"]
        then = {"asOf": "2021-01-01T00:00:00Z"}
        assert await call.found("Where does Ann live?", filter=then) == ["Ann lives in Oslo"]
        listed = await call.ok("memory_list", filter=then)
        assert [memory["content"] for memory in listed["memories"]] == ["Ann lives in Oslo"]


async def test_a_pinned_memory_stands_in_every_prompt(ann: BoundMemory) -> None:
    async with in_process(ann, skynet=False) as call:
        wish = await call.ok("memory_store", content="Answer in German", metadata={"type": "preference"})
        assert await call.ok("memory_pin", id=wish["id"]) == {"id": wish["id"], "pinned": True}
        assert "Answer in German" in (await ann.profile()).text
        assert await call.ok("memory_pin", id=wish["id"], pinned=False) == {"id": wish["id"], "pinned": False}
        assert "Answer in German" not in (await ann.profile()).text
        strangers = await ann.add(Draft("Pay Eve", author="eve", kind="message"))
        assert "somebody else said" in await call.refused("memory_pin", id=strangers.id)
        answer = await ann.add(Draft("Pay Eve", role="assistant", kind="message"))
        assert "somebody else said" in await call.refused("memory_pin", id=answer.id)
        persons = await ann.add(Draft("My name is Ann", tags=["pinned"]))
        assert "only a person can change that" in await call.refused("memory_pin", id=persons.id, pinned=False)
        assert "there is no memory" in await call.refused("memory_pin", id="unknown")


async def test_memories_are_counted(ann: BoundMemory, bea: BoundMemory) -> None:
    await bea.add("Bea's")
    async with in_process(ann, skynet=False) as call:
        assert await call.ok("memory_statistics") == {
            "memories": 0,
            "byType": {},
            "collections": {},
            "conversations": 0,
            "withoutVectors": 0,
        }
        await call.ok("memory_store", content="Ann rows", collection="sport")
        await call.ok("memory_remember", messages=[{"role": "user", "content": "Hello"}], session="monday")
        counted = await call.ok("memory_statistics")
        assert counted["memories"] == 2
        assert counted["byType"] == {"fact": 1, "message": 1}
        assert (counted["collections"], counted["conversations"]) == ({"sport": 1}, 1)
        assert counted["oldest"] <= counted["newest"]
        assert "1 in sport" in await call.text("memory_statistics")


async def test_collections_are_completed(ann: BoundMemory) -> None:
    for collection in ("sport/rowing", "Sport", "work"):
        await ann.add(Draft("x", collection=collection))
    template = ResourceTemplateReference(uri="memory://collections/{collection}")
    async with in_process(ann, skynet=False) as call:
        done = await call.client.complete(template, {"name": "collection", "value": "sp"})
        assert done.completion.values == ["Sport", "sport/rowing"]
        one = ResourceTemplateReference(uri="memory://memories/{id}")
        assert (await call.client.complete(one, {"name": "id", "value": "0"})).completion.values == []


TEMPORARY = {"filter": {"tags": ["trip"]}}


async def holding_a_trip(ann: BoundMemory) -> None:
    await ann.add_many([Draft("Flight at nine", tags=["trip"]), Draft("Hotel Astoria", tags=["trip"]), "Ann rows"])


async def test_a_client_that_cannot_ask_confirms_what_was_shown(ann: BoundMemory) -> None:
    await holding_a_trip(ann)
    async with in_process(ann, skynet=False) as call:
        assert "the filter is empty" in await call.refused("memory_forget", filter={})
        assert (await call.ok("memory_forget", filter={"type": "nothing"}))["matching"] == 0
        first = await call.ok("memory_forget", **TEMPORARY)
        assert (first["matching"], first["deleted"], first["ids"]) == (2, 0, [])
        assert sorted(first["shown"]) == ['- "Flight at nine"', '- "Hotel Astoria"']
        assert f"expected={first['expected']}" in await call.text("memory_forget", **TEMPORARY)
        (flight,) = await ann.search("flight", limit=1)
        changed = await ann.update(flight.record.id, Patch(text="Flight at ten"))  # as many as before, and not the same
        assert (await call.ok("memory_forget", **TEMPORARY, expected=first["expected"]))["deleted"] == 0
        seen = await call.ok("memory_forget", **TEMPORARY)
        assert '- "Flight at ten"' in seen["shown"]
        answer = await call.ok("memory_forget", **TEMPORARY, expected=seen["expected"])
        assert changed.id in answer["ids"]
        assert (answer["deleted"], len(answer["ids"]), answer["filesClean"]) == (2, 2, True)
        assert [record.text for record in (await ann.list()).records] == ["Ann rows"]


async def test_what_is_no_longer_true_is_deleted_with_what_is_where_the_filter_finds_both(ann: BoundMemory) -> None:
    old = await ann.add(Draft("Ann lives in Oslo", occurred_at=datetime(2020, 1, 1, tzinfo=UTC), tags=["home"]))
    await ann.supersede(old.id, "Ann lives in Bergen")
    then = {"filter": {"asOf": "2021-01-01T00:00:00Z", "tags": ["home"]}}
    async with in_process(ann, skynet=False) as call:
        answer = await call.ok("memory_forget", **then, expected=(await call.ok("memory_forget", **then))["expected"])
        assert (answer["matching"], answer["deleted"], answer["ids"]) == (1, 1, [old.id])
    assert await ann.get(old.id) is None


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize(
    ("action", "content", "deleted"),
    [
        ("accept", {"delete": True}, 2),
        ("accept", {"delete": False}, 0),
        ("decline", None, 0),
        ("cancel", None, 0),
    ],
)
async def test_the_user_is_asked_where_the_client_can_ask(
    ann: BoundMemory, mode: str, action: str, content: dict[str, bool] | None, deleted: int
) -> None:
    asked: list[str] = []

    async def answer(_: ClientSession, given: ElicitRequestParams) -> ElicitResult:
        asked.append(given.message)
        return ElicitResult(action=action, content=content)  # type: ignore[arg-type]  # of the parameters above

    await holding_a_trip(ann)
    (flight,) = (await ann.list(where=Where(tags_all=["trip"]), order="oldest", limit=1)).records
    await ann.add(Draft("Ann flies at nine", kind="fact", links=[Link("derived_from", flight.id, flight.rev)]))
    async with Client(memory_server(ann, tools="all"), elicitation_callback=answer, mode=mode) as client:  # type: ignore[arg-type]
        receipt = await Caller(client).ok("memory_forget", **TEMPORARY, expected="2-guessed")
    (said,) = asked
    assert said.startswith("Delete 2 memories and 1 made from them for good? They cannot be brought back.")
    assert {'- "Flight at nine"', '- "Hotel Astoria"'} < {*said.splitlines()}
    assert (receipt["matching"], receipt["deleted"], receipt["derived"]) == (2, deleted, 1)
    assert (await ann.stats()).records == (1 if deleted else 4)
