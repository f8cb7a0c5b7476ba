"""The public behaviour of ADK's own memory services, case by case, on this one: by words alone, by meaning as by
default, and with neighbours.

A case marked as not holding is explained in `docs/adk.md`; it fails here if it begins to hold.
"""

from __future__ import annotations

import asyncio
import itertools
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from memory_adk import MemoryService
from memory_core import Memory, MemoryRecord
from tests.adapters.adk.agents import START, entry_of, said_event, text_of

ANN, BOB = "ann", "bob"
APPS = itertools.count()


@dataclass
class World:
    """A service in an app of its own."""

    service: MemoryService
    app: str

    async def tell(self, *texts: str, session: str = "s1", user: str = ANN, first: int = 0) -> Session:
        """Add a session in which the user says these texts, one event each."""
        events = [said_event(text, at=n, id=f"{session}-{n}") for n, text in enumerate(texts, first)]
        told = Session(id=session, app_name=self.app, user_id=user, events=events)
        await self.service.add_session_to_memory(told)
        return told

    async def events(self, *events: Event, session: str | None = "s1", **metadata: object) -> None:
        await self.service.add_events_to_memory(
            app_name=self.app, user_id=ANN, events=events, session_id=session, custom_metadata=metadata
        )

    async def entries(self, *entries: MemoryEntry, **metadata: object) -> None:
        await self.service.add_memory(app_name=self.app, user_id=ANN, memories=entries, custom_metadata=metadata)

    async def found(self, query: str, *, user: str = ANN, app: str | None = None) -> list[MemoryEntry]:
        await self.service.settled()
        answer = await self.service.search_memory(app_name=app or self.app, user_id=user, query=query)
        return answer.memories

    async def texts(self, query: str, *, user: str = ANN, app: str | None = None) -> list[str]:
        return [text_of(entry) for entry in await self.found(query, user=user, app=app)]

    async def stored(self, user: str = ANN) -> list[MemoryRecord]:
        return list((await self.service.handle(self.app, user).list(order="oldest")).records)

    async def forget(self, entry: MemoryEntry, user: str = ANN) -> None:
        await self.service.delete_memory(app_name=self.app, user_id=user, memory_id=entry.id)


Case = Callable[[World], Awaitable[None]]
CASES: Final[dict[str, Case]] = {}
KINDS: Final = ("words", "meaning", "neighbours")


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def a_search(name: str, told: Sequence[str], query: str, expected: Sequence[str], *, ordered: bool = False) -> None:
    """A case of what is found when these texts were told, each in its own session."""

    async def check(world: World) -> None:
        for n, text in enumerate(told):
            await world.tell(text, session=f"s{n}", first=n)
        texts = await world.texts(query)
        if not ordered:
            texts.sort()
        assert texts == (list(expected) if ordered else sorted(expected))

    CASES[name] = check


FERRY, DINNER = "The ferry leaves from pier nine.", "Dinner is served at eight."
BOTH = [FERRY, DINNER]
a_search("a word finds its text", BOTH, "ferry", [FERRY])
a_search("a word in capitals finds it", BOTH, "FERRY", [FERRY])
a_search("a word in small letters finds capitals", ["FERRY LATE", DINNER], "ferry", ["FERRY LATE"])
a_search("a question finds it", BOTH, "When does the ferry leave?", [FERRY])
a_search("two words of one text", BOTH, "ferry pier", [FERRY])
a_search("words of two texts find both", BOTH, "ferry dinner", BOTH)
a_search("a word beside a full stop", BOTH, "nine", [FERRY])
a_search("a word in quotes", BOTH, '"ferry"', [FERRY])
a_search("words with a hyphen", BOTH, "pier-nine", [FERRY])
a_search("punctuation after a word", BOTH, "ferry!", [FERRY])
a_search("an operator of a query language", BOTH, "ferry AND NOT pier", [FERRY])
a_search("a query that looks like SQL", BOTH, "ferry'; DROP TABLE memory; --", [FERRY])
a_search("a query that looks like a function", BOTH, "NEAR(ferry pier)", [FERRY])
a_search("a percent sign and an underscore", BOTH, "%_% ferry", [FERRY])
a_search("a number", ["Room 4711 is mine.", DINNER], "4711", ["Room 4711 is mine."])
a_search("a word in brackets", ["The Orbital Relay (ORR) works.", DINNER], "orr", ["The Orbital Relay (ORR) works."])
a_search("an unknown word finds nothing", BOTH, "submarine", [])
a_search("an empty query finds nothing", BOTH, "", [])
a_search("a blank query finds nothing", BOTH, " \n\t ", [])
a_search("punctuation alone finds nothing", BOTH, "!?… --", [])
a_search("the end of a word finds nothing", BOTH, "erry", [])
a_search("the beginning of a word finds nothing", BOTH, "fer", [])
a_search("function words alone find nothing", BOTH, "the is and", [])
a_search("nothing was told", [], "ferry", [])
a_search("a text of function words is not found by another word", ["the and or", FERRY], "ferry", [FERRY])
a_search(
    "a word that two texts share finds both", ["The ferry is late.", FERRY], "ferry", ["The ferry is late.", FERRY]
)
a_search(
    "more matching words rank higher",
    ["An old island.", "The red ferry was painted.", "The red ferry to the island is late."],
    "red ferry island late",
    ["The red ferry to the island is late.", "The red ferry was painted.", "An old island."],
    ordered=True,
)
IN_MORE_WORDS = ["Late.", "The red ferry is late.", "The red ferry to the island is late."]
a_search("a text is found beside one that says more", IN_MORE_WORDS, "red ferry island late", IN_MORE_WORDS)


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


TEXTS_OF_OTHER_SCRIPTS = [
    ("妹の名前は花子です", "花子", True),
    ("妹の名前は花子です", "天気", False),
    ("我们喜欢看电影", "电影", True),
    ("我们喜欢看电影", "足球比赛", False),
    ("제 동생은 지영입니다", "지영입니다", True),
    ("Мою сестру зовут Ольга", "Ольга", True),
    ("花子 lives in OSLO Norway", "花子", True),
    ("花子 lives in OSLO Norway", "OSLO", True),
    ("妹はRustでCLIを書いています", "Rust", True),
    ("妹はRustでCLIを書いています", "cli", True),
    ("我用Rust写程序", "rust", True),
    ("妹はRustでCLIを書いています", "書いて", True),
    ("妹はRustでCLIを書いています", "Perl", False),
    ("My sister writes Rust", "ust", False),
    ("妹はRustでCLIを書いています", "ust", False),
    (nfd("妹はMüllerでCLIを使う"), "Müller", True),
    (nfd("妹はMüllerでCLIを使う"), "müller", True),
    (nfd("妹はMüllerでCLIを使う"), "Perl", False),
    (nfd("Dinner at Müller"), "Müller", True),
    ("Dinner at Müller", nfd("Müller"), True),
    (nfd("バイオリンを弾く"), "バイオリン", True),
    (nfd("제 동생은 지영입니다"), "지영입니다", True),
]
for number, (told, asked, matches) in enumerate(TEXTS_OF_OTHER_SCRIPTS):
    a_search(f"another script {number}", [told], asked, [told] if matches else [])


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
async def a_time_is_kept_as_metadata(world: World) -> None:
    await world.entries(entry_of(FERRY), seen=datetime(2026, 1, 2, tzinfo=UTC))
    assert (await world.found("ferry"))[0].custom_metadata["seen"] == "2026-01-02T00:00:00Z"


def _ttl(name: str, expected: timedelta | None, **metadata: Any) -> None:
    """Cases of how long events and explicit memories are kept."""

    async def check(world: World) -> None:
        await world.events(said_event(FERRY), **metadata)
        await world.entries(entry_of(DINNER), **metadata)
        for record in await world.stored():
            lasts = record.expires_at and round((record.expires_at - record.created_at) / timedelta(minutes=1))
            assert lasts == (expected and expected / timedelta(minutes=1))

    CASES[name] = check


_ttl("a time to live in seconds as text", timedelta(hours=1), ttl="3600s")
_ttl("a time to live as a number", timedelta(hours=1), ttl=3600)
_ttl("a time to live under its other name", timedelta(hours=1), revision_ttl="3600s")
_ttl("a time to live beside an empty other name", timedelta(hours=1), ttl="3600s", revision_ttl=None)
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
_refused("no memories", ValueError)
_refused("a memory without text", ValueError, _holding())
_refused("a memory of blanks", ValueError, entry_of(FERRY), entry_of("  \n"))
_refused(
    "a memory with an image",
    ValueError,
    _holding(types.Part(text="x"), types.Part(inline_data=types.Blob(data=b"1", mime_type="image/png"))),
)
_refused(
    "a memory with a file",
    ValueError,
    _holding(types.Part(file_data=types.FileData(file_uri="gs://a/b", mime_type="image/png"))),
)
_refused("a consolidation that is no boolean", TypeError, entry_of(FERRY), enable_consolidation="yes")
_refused("a memory id that is no text", ValueError, entry_of(FERRY), memory_id=7)


BY_DESIGN: Final = {
    "a text is found beside one that says more": "what another result says is not repeated",
    "of_an_event_id_the_first_text_counts": "the last text counts, as in ADK's SQLite service",
    "a_shorter_session_replaces_the_longer_one": "nothing is deleted by leaving it out",
    "one_event_in_two_sessions_is_found_twice": "a text is returned once",
    "parts_without_text_are_returned": "only text is stored",
    "the_id_of_an_entry_is_that_of_its_event": "a memory has its own id",
    "an_entry_has_a_local_time_without_an_offset": "times are UTC and say so",
    "a_long_text_is_returned_whole": "one memory takes at most half of the characters of an answer",
}
"""Cases that do not hold, whatever the options; `docs/adk.md` explains each."""
BY_MEANING: Final = (
    "a word beside a full stop",
    "words with a hyphen",
    "a query that looks like SQL",
    "a query that looks like a function",
    "an unknown word finds nothing",
    "another script 1",
    "another script 3",
    "only_the_turn_that_matches_is_found",
    "only_the_greeting_that_matches_is_found",
    "only_the_answer_that_matches_is_found",
    "equal_matches_keep_the_order_in_which_they_were_added",
)
"""Cases that do not hold by meaning: texts without a common word match in meaning, and equal words differ in it."""
WITH_NEIGHBOURS: Final = ("only_the_turn_that_matches_is_found", "only_the_answer_that_matches_is_found")
"""Cases that do not hold if neighbours are wanted, too."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def memories(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Memory]]:
    """One memory by words and one by meaning for all cases, each of which has an app of its own."""
    folder: Path = tmp_path_factory.mktemp("memories")
    async with Memory(folder / "words.db", embedder=None) as words, Memory(folder / "meaning.db") as meaning:
        yield {"words": words, "meaning": meaning, "neighbours": words}


def every_case() -> Iterator[Any]:
    for name, kind in itertools.product(CASES, KINDS):
        by_kind = {"words": (), "meaning": BY_MEANING, "neighbours": WITH_NEIGHBOURS}
        differs = name in BY_DESIGN or name in by_kind[kind]
        marks = [pytest.mark.xfail(reason=BY_DESIGN.get(name, f"found by {kind}"))] if differs else []
        yield pytest.param(name, kind, id=f"{name}, {kind}", marks=marks)


@pytest.mark.parametrize(("name", "kind"), list(every_case()))
async def test_what_adks_own_services_do_holds(memories: dict[str, Memory], name: str, kind: str) -> None:
    service = MemoryService(memories[kind], neighbours=kind == "neighbours")
    await CASES[name](World(service, f"app {next(APPS)}"))


def test_there_are_as_many_cases_as_adk_tests_and_few_do_not_hold() -> None:
    assert len(CASES) >= 108
    hold = len(CASES) - len(BY_DESIGN)
    assert min(hold, hold - len(BY_MEANING), hold - len(WITH_NEIGHBOURS)) >= 100
