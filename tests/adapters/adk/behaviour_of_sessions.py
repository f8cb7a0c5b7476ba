"""Cases of sessions, events, owners, entries and deletions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from tests.adapters.adk.agents import START, entry_of, said_event, text_of
from tests.adapters.adk.behaviour import ANN, BOB, DINNER, FERRY, World, case


@case
async def a_session_is_added_without_its_empty_events(world: World) -> None:
    said = said_event(FERRY, id="1")
    empty = said_event("", id="2", content=None)
    without_parts = said_event("", id="3", content=types.Content(parts=[]))
    answer = said_event("At nine.", id="4", author="helper", at=1)
    session = Session(id="s", app_name=world.app, user_id=ANN, events=[said, empty, without_parts, answer])
    await world.service.add_session_to_memory(session)
    assert [record.text for record in await world.stored()] == [FERRY, "At nine."]


@case
async def a_session_without_events_is_fine(world: World) -> None:
    await world.tell()
    assert await world.stored() == []


@case
async def only_the_turn_that_matches_is_found(world: World) -> None:
    await world.tell(FERRY, DINNER)
    assert await world.texts("dinner") == [DINNER]


@case
async def only_the_greeting_that_matches_is_found(world: World) -> None:
    await world.tell("Good morning everybody", "What may I do for you?")
    assert await world.texts("morning") == ["Good morning everybody"]


@case
async def only_the_answer_that_matches_is_found(world: World) -> None:
    await world.events(said_event("I sail.", id="1"), said_event("The Orbital Relay Runner!", id="2", author="model"))
    assert await world.texts("orbital") == ["The Orbital Relay Runner!"]


@case
async def a_word_finds_one_of_three_texts(world: World) -> None:
    await world.events(said_event("I sail.", id="1"), said_event("The Orbital Relay Runner!", id="2", author="model"))
    await world.events(said_event("I repair engines in Haskell.", id="3"), session="s2")
    assert [(text_of(entry), entry.author) for entry in await world.found("Haskell")] == [
        ("I repair engines in Haskell.", "user")
    ]


@case
async def a_question_finds_both_turns_that_have_its_word(world: World) -> None:
    texts = ["The ORR is a fine boat.", "Indeed. The Orbital Relay Runner (ORR) sails well!"]
    await world.events(said_event(texts[0], id="1"), said_event(texts[1], id="2", author="model"))
    assert sorted(await world.texts("What of the ORR?")) == sorted(texts)


@case
async def more_matching_words_of_one_session_rank_higher(world: World) -> None:
    told = ["The engine is warm.", "Warm.", "The engine oil is warm."]
    await world.tell(*told)
    assert await world.texts("engine oil warm") == [told[2], told[0], told[1]]


@case
async def the_best_of_many_comes_first_and_the_others_in_their_order(world: World) -> None:
    await world.tell(*(f"note {n} on work" for n in range(20)), "the backlog note on work")
    expected = ["the backlog note on work", *(f"note {n} on work" for n in range(9))]
    assert await world.texts("work backlog note") == expected


@case
async def of_equal_matches_the_newest_comes_first(world: World) -> None:
    await world.tell("My usual cabin is blue", "My usual cabin is green")
    assert await world.texts("usual") == ["My usual cabin is green", "My usual cabin is blue"]


@case
async def a_question_finds_a_text_with_its_author_and_time(world: World) -> None:
    await world.tell("My usual cabin is blue")
    (entry,) = await world.found("What is my usual cabin?")
    assert (text_of(entry), entry.author) == ("My usual cabin is blue", "user")
    assert entry.timestamp


@case
async def an_entry_names_its_session(world: World) -> None:
    await world.tell(FERRY, session="s7")
    assert [entry.custom_metadata["session_id"] for entry in await world.found("ferry")] == ["s7"]


@case
async def an_event_that_comes_with_another_role_gets_that_role(world: World) -> None:
    await world.tell(FERRY)
    content = types.Content(role="model", parts=[types.Part(text=FERRY)])
    await world.events(said_event(FERRY, id="s1-0", content=content))
    assert [entry.content.role for entry in await world.found("ferry")] == ["model"]


@case
async def a_session_with_a_function_call_is_added(world: World) -> None:
    call = types.Content(parts=[types.Part(function_call=types.FunctionCall(name="f"))])
    said, empty = said_event(FERRY, id="1"), said_event("", id="2", content=None)
    await world.events(said, empty, said_event("", id="3", author="helper", content=call))
    assert await world.texts("ferry") == [FERRY]


@case
async def owners_are_pairs_of_app_and_user(world: World) -> None:
    owners = [(app, user) for app in (world.app, f"{world.app} two") for user in (ANN, BOB)]
    for app, user in owners[:3]:
        session = Session(id="s", app_name=app, user_id=user, events=[said_event(f"ferry of {app}, {user}")])
        await world.service.add_session_to_memory(session)
    for app, user in owners[:3]:
        assert await world.texts("ferry", user=user, app=app) == [f"ferry of {app}, {user}"]
    assert await world.texts("ferry", user=BOB, app=owners[3][0]) == []


@case
async def events_are_added_concurrently(world: World) -> None:
    first, second = said_event("first cabin info", id="1"), said_event("second cabin info", id="2")
    await asyncio.gather(world.events(first), world.events(second))
    assert (await world.texts("first"), await world.texts("second")) == (["first cabin info"], ["second cabin info"])


@case
async def events_are_added(world: World) -> None:
    await world.events(said_event(FERRY))
    assert await world.texts("ferry") == [FERRY]


@case
async def events_without_a_session_are_added(world: World) -> None:
    await world.events(said_event(FERRY), session=None)
    assert await world.texts("ferry") == [FERRY]


@case
async def no_events_are_fine(world: World) -> None:
    await world.events()
    assert await world.stored() == []


@case
async def events_without_text_store_nothing(world: World) -> None:
    call = types.Part(function_call=types.FunctionCall(name="f", args={"a": "ferry"}))
    await world.events(said_event("", content=types.Content(parts=[call])), said_event("", content=None))
    assert await world.stored() == []


@case
async def events_are_appended_to_a_session(world: World) -> None:
    await world.tell("ferry one", "ferry two")
    await world.events(said_event("ferry three", id="s1-2", at=2))
    assert [record.text for record in await world.stored()] == ["ferry one", "ferry two", "ferry three"]


@case
async def a_session_added_twice_is_stored_once(world: World) -> None:
    for _ in range(2):
        await world.tell(FERRY, DINNER)
    assert len(await world.stored()) == 2


@case
async def an_event_id_is_stored_once(world: World) -> None:
    await world.tell(FERRY)
    await world.events(said_event("The ferry was cancelled.", id="s1-0"))
    assert len(await world.stored()) == 1


@case
async def of_an_event_id_the_last_text_counts(world: World) -> None:
    await world.tell(FERRY)
    await world.events(said_event("The ferry was cancelled.", id="s1-0"))
    assert await world.texts("ferry") == ["The ferry was cancelled."]


@case
async def of_an_event_id_the_first_text_counts(world: World) -> None:
    await world.tell(FERRY)
    await world.events(said_event("The ferry was cancelled.", id="s1-0"))
    assert await world.texts("ferry") == [FERRY]


@case
async def an_event_without_an_id_is_stored_once(world: World) -> None:
    for _ in range(2):
        event = said_event(FERRY)
        event.id = ""
        await world.events(event)
    assert len(await world.stored()) == 1


@case
async def a_grown_session_adds_what_is_new(world: World) -> None:
    await world.tell(FERRY)
    await world.tell(FERRY, DINNER)
    assert [record.text for record in await world.stored()] == [FERRY, DINNER]


@case
async def a_shorter_session_replaces_the_longer_one(world: World) -> None:
    await world.tell(FERRY, DINNER)
    await world.tell(FERRY)
    assert [record.text for record in await world.stored()] == [FERRY]


@case
async def one_event_in_two_sessions_is_found_twice(world: World) -> None:
    for session in ("s1", "s2"):
        await world.events(said_event(FERRY, id="e1"), session=session)
    assert await world.texts("ferry") == [FERRY, FERRY]


@case
async def several_text_parts_are_searched(world: World) -> None:
    await world.events(said_event("", content=types.Content(parts=[types.Part(text="red"), types.Part(text="ferry")])))
    assert len(await world.found("ferry")) == 1


@case
async def parts_without_text_are_returned(world: World) -> None:
    image = types.Part(inline_data=types.Blob(data=b"1", mime_type="image/png"))
    await world.events(said_event("", content=types.Content(parts=[types.Part(text=FERRY), image])))
    (entry,) = await world.found("ferry")
    assert len(entry.content.parts or ()) == 2


@case
async def a_long_text_is_found_by_its_end(world: World) -> None:
    await world.events(said_event("nothing much happened here today and " * 150 + "the ferry left"))
    assert len(await world.found("ferry")) == 1


@case
async def a_long_text_is_returned_whole(world: World) -> None:
    long = "nothing much happened here today and " * 150 + "the ferry left"
    await world.events(said_event(long))
    assert await world.texts("ferry") == [long]


@case
async def times_in_any_order_are_fine(world: World) -> None:
    await world.events(said_event(FERRY, at=50), said_event("The ferry is late.", at=-50))
    assert len(await world.found("ferry")) == 2


@case
async def users_are_kept_apart(world: World) -> None:
    await world.tell(FERRY)
    await world.tell("The ferry is a secret.", session="b", user=BOB)
    assert await world.texts("ferry") == [FERRY]
    assert await world.texts("ferry", user=BOB) == ["The ferry is a secret."]


@case
async def an_unknown_user_finds_nothing(world: World) -> None:
    await world.tell(FERRY)
    assert await world.texts("ferry", user="nobody else") == []


@case
async def apps_are_kept_apart(world: World) -> None:
    await world.tell(FERRY)
    assert await world.texts("ferry", app="another app") == []


@case
async def a_slash_in_a_name_does_not_join_two_names(world: World) -> None:
    events = [said_event(FERRY)]
    await world.service.add_session_to_memory(Session(id="s", app_name=f"{world.app}/x", user_id="y", events=events))
    assert await world.texts("ferry", user="x/y") == []
    assert await world.texts("ferry", user="y", app=f"{world.app}/x") == [FERRY]


@case
async def the_same_session_id_of_two_users_is_two_sessions(world: World) -> None:
    await world.tell(FERRY)
    await world.tell(DINNER, user=BOB)
    assert (await world.texts("ferry"), await world.texts("dinner", user=BOB)) == ([FERRY], [DINNER])


@case
async def an_entry_has_an_author(world: World) -> None:
    await world.events(said_event(FERRY, author="helper"))
    assert [entry.author for entry in await world.found("ferry")] == ["helper"]


@case
async def an_entry_has_an_id(world: World) -> None:
    await world.tell(FERRY)
    assert all(entry.id for entry in await world.found("ferry"))


@case
async def the_id_of_an_entry_is_that_of_its_event(world: World) -> None:
    await world.events(said_event(FERRY, id="e1"))
    assert [entry.id for entry in await world.found("ferry")] == ["e1"]


@case
async def an_entry_has_an_iso_time(world: World) -> None:
    await world.tell(FERRY)
    (entry,) = await world.found("ferry")
    assert datetime.fromisoformat(str(entry.timestamp)).astimezone(UTC) == datetime.fromtimestamp(START, UTC)


@case
async def an_entry_has_a_local_time_without_an_offset(world: World) -> None:
    await world.tell(FERRY)
    (entry,) = await world.found("ferry")
    assert datetime.fromisoformat(str(entry.timestamp)).tzinfo is None


@case
async def an_entry_has_the_role_of_its_content(world: World) -> None:
    await world.events(said_event(FERRY), said_event("The ferry is late.", author="helper", at=1))
    assert sorted(str(entry.content.role) for entry in await world.found("ferry")) == ["model", "user"]


@case
async def at_most_ten_are_found(world: World) -> None:
    await world.tell(*(f"note {n} on the ferry" for n in range(20)))
    assert len(await world.found("ferry note")) == 10


@case
async def the_best_of_many_comes_first(world: World) -> None:
    await world.tell(*(f"note {n} on work" for n in range(20)), "the backlog note on work")
    assert (await world.texts("work backlog note"))[0] == "the backlog note on work"


@case
async def equal_matches_keep_the_order_in_which_they_were_added(world: World) -> None:
    await world.tell(*(f"note {n} on work" for n in range(12)))
    assert await world.texts("work note") == [f"note {n} on work" for n in range(10)]


async def _mutated(world: World, change: Callable[[Event, MemoryEntry], None]) -> None:
    event = said_event(FERRY, id="e1")
    await world.events(event)
    change(event, (await world.found("ferry"))[0])
    assert await world.texts("ferry") == [FERRY]
    assert (await world.found("ferry"))[0].author == "user"


@case
async def changing_an_event_does_not_change_its_memory(world: World) -> None:
    def change(event: Event, _: MemoryEntry) -> None:
        event.author = "changed"
        event.content = types.Content(parts=[types.Part(text="changed")])

    await _mutated(world, change)


@case
async def changing_a_session_does_not_change_its_memory(world: World) -> None:
    told = await world.tell(FERRY)
    told.events.clear()
    assert await world.texts("ferry") == [FERRY]


@case
async def changing_a_result_does_not_change_the_memory(world: World) -> None:
    def change(_: Event, entry: MemoryEntry) -> None:
        assert entry.content.parts
        entry.content.parts.clear()
        entry.author = "changed"

    await _mutated(world, change)


@case
async def changing_a_result_does_not_change_the_event(world: World) -> None:
    event = said_event(FERRY)
    await world.events(event)
    (entry,) = await world.found("ferry")
    assert entry.content.parts
    entry.content.parts[0].text = "changed"
    assert event.content == types.Content(role="user", parts=[types.Part(text=FERRY)])


@case
async def a_deleted_memory_is_not_found(world: World) -> None:
    await world.tell(FERRY, DINNER)
    await world.forget((await world.found("ferry"))[0])
    assert await world.texts("ferry") == []
    assert await world.texts("dinner") == [DINNER]


@case
async def a_deleted_memory_stays_deleted_when_its_session_is_added_again(world: World) -> None:
    await world.tell(FERRY)
    await world.forget((await world.found("ferry"))[0])
    await world.tell(FERRY)
    assert await world.texts("ferry") == []


@case
async def a_deleted_memory_stays_deleted_when_its_event_is_added_again(world: World) -> None:
    event = said_event(FERRY, id="e1")
    await world.events(event)
    await world.forget((await world.found("ferry"))[0])
    await world.events(event)
    assert await world.texts("ferry") == []


@case
async def deleting_an_unknown_memory_does_nothing(world: World) -> None:
    await world.tell(FERRY)
    await world.forget(entry_of("x", id="nobody"))
    assert await world.texts("ferry") == [FERRY]


@case
async def deleting_without_an_id_does_nothing(world: World) -> None:
    await world.tell(FERRY)
    await world.forget(entry_of("x"))
    assert await world.texts("ferry") == [FERRY]


@case
async def another_user_cannot_delete_a_memory(world: World) -> None:
    await world.tell(FERRY)
    await world.forget((await world.found("ferry"))[0], user=BOB)
    assert await world.texts("ferry") == [FERRY]


@case
async def all_memories_of_a_user_can_be_deleted(world: World) -> None:
    await world.tell(FERRY, DINNER)
    await world.tell(FERRY, user=BOB)
    assert await world.service.clear_user(app_name=world.app, user_id=ANN) == 2
    assert (await world.stored(), len(await world.stored(BOB))) == ([], 1)


@case
async def a_search_while_others_write_does_not_fail(world: World) -> None:
    writes = (world.tell(FERRY, session=f"s{n}") for n in range(10))
    searches = (world.found("ferry") for _ in range(10))
    await asyncio.gather(*writes, *searches)
    assert len(await world.stored()) == 10
