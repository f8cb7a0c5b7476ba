"""The demands of ADK on a memory service, and what they leave open."""

from __future__ import annotations

import asyncio
import inspect
import threading
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from memory_adk import MemoryService
from memory_core import ClosedError, Draft, InvalidInputError, Json, Memory, Patch, RecallOptions, Where
from memory_core.embedding.hashing import HashingEmbedder
from tests.adapters.adk.agents import (
    ANN,
    APP,
    START,
    bytes_in,
    entry_of,
    found,
    said_event,
    session_with,
    text_of,
    texts,
)

if TYPE_CHECKING:
    from memory_core.supplied import Vector

METHODS = [
    "add_session_to_memory",
    "add_events_to_memory",
    "add_memory",
    "search_memory",
    "delete_memory",
]


async def rows(memory: Memory, user: str = ANN) -> int:
    return (await memory.bind(app=APP, user=user).stats()).records


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_the_signature_of_the_base_class(name: str) -> None:
    assert issubclass(MemoryService, BaseMemoryService)
    ours, theirs = (inspect.signature(getattr(cls, name)) for cls in (MemoryService, BaseMemoryService))
    assert name in vars(MemoryService)
    assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
        (p.name, p.kind, p.default) for p in theirs.parameters.values()
    ]


@pytest.mark.parametrize("times", [1, 2, 10])
async def test_adding_a_session_again_changes_neither_the_number_nor_the_ids(
    service: MemoryService, memory: Memory, times: int
) -> None:
    session = session_with(said_event("I drink jasmine tea"), said_event("Noted.", author="helper"))
    await service.add_session_to_memory(session)
    before = [entry.id for entry in await found(service, "jasmine tea")]
    for _ in range(times):
        await service.add_session_to_memory(session)
        await service.add_events_to_memory(
            app_name=APP, user_id=ANN, session_id="s1", events=session.events[:1], custom_metadata={"again": True}
        )
    assert await rows(memory) == 2
    assert [entry.id for entry in await found(service, "jasmine tea")] == before


async def test_a_grown_session_adds_what_is_new_and_a_truncated_one_erases_nothing(
    service: MemoryService, memory: Memory
) -> None:
    events = [said_event(f"fact number {n}", at=n) for n in range(3)]
    await service.add_session_to_memory(session_with(*events[:2]))
    await service.add_session_to_memory(session_with(*events))
    await service.add_session_to_memory(session_with(*events[2:]))
    assert await rows(memory) == 3


async def test_events_without_an_id_are_told_apart_by_author_time_and_text(
    service: MemoryService, memory: Memory
) -> None:
    events = [said_event("hello"), said_event("hello"), said_event("hello", at=1), said_event("hello", author="helper")]
    for event in events:
        event.id = ""
    await service.add_session_to_memory(session_with(*events))
    assert await rows(memory) == 3


async def test_a_known_event_stays_as_it_is(service: MemoryService, memory: Memory) -> None:
    await service.add_session_to_memory(session_with(said_event("I drink coffee", id="e1")))
    await service.add_session_to_memory(session_with(said_event("I drink tea", id="e1")))
    assert await texts(service, "drink") == ["I drink coffee"]


async def test_an_id_used_in_two_sessions_is_two_memories(service: MemoryService, memory: Memory) -> None:
    await service.add_session_to_memory(session_with(said_event("I drink tea", id="1"), session_id="s1"))
    await service.add_session_to_memory(session_with(said_event("I eat cake", id="1"), session_id="s2"))
    assert await rows(memory) == 2


async def test_thoughts_are_neither_searchable_nor_returned(service: MemoryService, memory: Memory) -> None:
    parts = [types.Part(text="the passphrase is xyzzy", thought=True), types.Part(text="I cannot tell you.")]
    event = said_event("", author="helper", content=types.Content(role="model", parts=parts))
    await service.add_session_to_memory(session_with(event))
    assert await texts(service, "passphrase xyzzy") == []
    assert await texts(service, "cannot tell") == ["I cannot tell you."]


async def test_blobs_calls_results_and_credentials_reach_neither_the_results_nor_the_file(
    service: MemoryService, memory: Memory, tmp_path: Path
) -> None:
    call = types.FunctionCall(name="send", args={"secret": "ARGUMENT-TOKEN"})
    auth = types.FunctionResponse(name="adk_request_credential", response={"access_token": "RESPONSE-TOKEN"})
    parts = [
        types.Part(text="Look at this photo"),
        types.Part(inline_data=types.Blob(data=b"PNG" * 700_000, mime_type="image/png")),
        types.Part(function_call=call),
        types.Part(function_response=auth),
        types.Part(executable_code=types.ExecutableCode(code="CODE-TOKEN", language=types.Language.PYTHON)),
        types.Part(
            code_execution_result=types.CodeExecutionResult(output="OUTPUT-TOKEN", outcome=types.Outcome.OUTCOME_OK)
        ),
    ]
    await service.add_session_to_memory(session_with(said_event("", content=types.Content(parts=parts))))
    answer = await service.search_memory(app_name=APP, user_id=ANN, query="photo")
    assert [text_of(entry) for entry in answer.memories] == ["Look at this photo\nAttached: image"]
    assert len(answer.model_dump_json()) < 4_000
    assert await rows(memory) == 1
    await memory.close()
    stored = bytes_in(tmp_path)
    assert b"Look at this photo" in stored
    assert b"TOKEN" not in stored
    assert b"PNGPNG" not in stored


@pytest.mark.parametrize(
    "fields",
    [
        {"partial": True},
        {"content": None},
        {"content": types.Content(parts=[])},
        {"content": types.Content(parts=[types.Part(text=" \n")])},
        {"actions": {"rewind_before_invocation_id": "i0"}},
        {
            "actions": {
                "compaction": {
                    "start_timestamp": 0,
                    "end_timestamp": 1,
                    "compacted_content": {"parts": [{"text": "summary"}]},
                }
            }
        },
    ],
    ids=["partial", "no content", "no parts", "blank", "rewind marker", "compaction"],
)
async def test_events_that_say_nothing_are_not_stored(
    service: MemoryService, memory: Memory, fields: dict[str, Any]
) -> None:
    await service.add_session_to_memory(session_with(said_event("something", **fields)))
    assert await rows(memory) == 0


@pytest.mark.parametrize(("finished", "stored"), [(True, 2), (False, 0), (None, 0)])
async def test_only_finished_transcriptions_are_stored(
    service: MemoryService, memory: Memory, *, finished: bool | None, stored: int
) -> None:
    heard = types.Transcription(text="I drink jasmine tea", finished=finished)
    spoken = types.Transcription(text="Noted, jasmine", finished=finished)
    user = said_event("", content=None, input_transcription=heard)
    helper = said_event("", content=None, author="helper", output_transcription=spoken)
    await service.add_session_to_memory(session_with(user, helper))
    assert await rows(memory) == stored
    assert {entry.author for entry in await found(service, "jasmine")} == ({"user", "helper"} if stored else set())


async def test_owners_never_mix(service: MemoryService) -> None:
    secret = said_event("the code word is tamarind")
    await service.add_session_to_memory(session_with(secret, app="a/b", user="c"))
    assert await texts(service, "code word tamarind", app="a/b", user="c") == ["the code word is tamarind"]
    for app, user in [("a", "b/c"), ("a/b", "d"), ("a", "c"), ("a/b/c", "c"), ("A/B", "C")]:
        assert await texts(service, "code word tamarind", app=app, user=user) == []


@pytest.mark.parametrize("user", ["", " ", None])
async def test_a_missing_user_is_an_error_and_never_a_shared_memory(service: MemoryService, user: Any) -> None:
    with pytest.raises(InvalidInputError, match="user"):
        await service.search_memory(app_name=APP, user_id=user, query="tea")


async def test_a_result_says_who_when_and_where(memory: Memory) -> None:
    service = MemoryService(memory)
    event = said_event("I drink jasmine tea", at=0.5, custom_metadata={"mood": "calm"})
    await service.add_session_to_memory(session_with(event))
    (entry,) = await found(service, "jasmine")
    assert entry.author == "user"
    assert entry.timestamp is not None
    assert datetime.fromisoformat(entry.timestamp) == datetime.fromtimestamp(START + 0.5, UTC)
    assert entry.timestamp.endswith("+00:00")
    assert entry.content.role == "user"
    assert entry.custom_metadata == {"mood": "calm", "session_id": "s1", "event_id": event.id}
    entry.custom_metadata["mood"] = "changed"
    assert (await found(service, "jasmine"))[0].custom_metadata["mood"] == "calm"


async def test_what_an_agent_said_comes_back_as_the_models(service: MemoryService) -> None:
    await service.add_session_to_memory(session_with(said_event("I recommend jasmine", author="helper")))
    (entry,) = await found(service, "jasmine")
    assert (entry.author, entry.content.role) == ("helper", "model")


async def test_an_entry_in_the_place_of_a_turn_states_a_fact(service: MemoryService) -> None:
    await service.add_session_to_memory(session_with(said_event("I drink jasmine tea")))
    (turn,) = await found(service, "jasmine")
    stated = entry_of("Ann drinks jasmine tea", id=turn.id)
    await service.add_memory(app_name=APP, user_id=ANN, memories=[stated])
    (record,) = (await service.handle(APP, ANN).list()).records
    assert (record.id, record.kind, record.role) == (turn.id, "fact", None)


async def test_metadata_cannot_pose_as_what_the_memory_knows_itself_nor_fill_a_prompt(service: MemoryService) -> None:
    forged = {
        "session_id": "s9",
        "tags": ["x"],
        "event_id": "e9",
        "invocation_id": "i9",
    }
    await service.add_memory(
        app_name=APP,
        user_id=ANN,
        memories=[entry_of("I drink jasmine tea", custom_metadata={"metadata": forged})],
        custom_metadata={f"label {n}": "x" * 400 for n in range(50)},
    )
    (entry,) = await found(service, "jasmine")
    assert not entry.custom_metadata.keys() & forged.keys()
    assert len(str(entry.custom_metadata)) < 2_500


async def test_an_event_is_the_same_with_and_without_its_session(tmp_path: Path) -> None:
    event = said_event("I drink tea").model_copy(update={"id": str(uuid.uuid4())})
    async with Memory(tmp_path / "memory.db", embedder=HashingEmbedder()) as memory:
        service = MemoryService(memory)
        for session_id in (None, "monday", None):
            await service.add_events_to_memory(app_name=APP, user_id=ANN, events=[event], session_id=session_id)
        assert await rows(memory) == 1
        (entry,) = (await service.search_memory(app_name=APP, user_id=ANN, query="tea")).memories
        await service.delete_memory(app_name=APP, user_id=ANN, memory_id=str(entry.id))
        await service.add_events_to_memory(app_name=APP, user_id=ANN, events=[event], session_id="monday")
        assert await rows(memory) == 0


async def test_a_deleted_memory_stays_deleted_also_after_its_session_is_added_again_elsewhere(tmp_path: Path) -> None:
    session = session_with(said_event("I drink jasmine tea"), said_event("I eat cake", at=1))
    path = tmp_path / "m.db"
    async with Memory(path, embedder=None) as memory:
        service = MemoryService(memory)
        await service.add_session_to_memory(session)
        entry = (await found(service, "jasmine"))[0]
        assert text_of(entry) == "I drink jasmine tea"
        await service.delete_memory(app_name=APP, user_id=ANN, memory_id=entry.id)
        assert await texts(service, "jasmine") == []
    async with Memory(path, embedder=None) as memory:
        service = MemoryService(memory)
        await service.add_session_to_memory(session)
        assert await texts(service, "jasmine") == []
        assert await texts(service, "cake") == ["I eat cake"]


@pytest.mark.parametrize("memory_id", ["nobody-knows-this", "", " ", None])
async def test_deleting_an_unknown_id_deletes_nothing(
    service: MemoryService, memory: Memory, memory_id: str | None
) -> None:
    await service.add_session_to_memory(session_with(said_event("I drink jasmine tea")))
    await service.delete_memory(app_name=APP, user_id=ANN, memory_id=memory_id)
    assert await rows(memory) == 1


async def test_deleting_another_users_memory_deletes_nothing(service: MemoryService, memory: Memory) -> None:
    await service.add_session_to_memory(session_with(said_event("I drink jasmine tea")))
    (entry,) = await found(service, "jasmine")
    await service.delete_memory(app_name=APP, user_id="bob", memory_id=entry.id)
    assert await rows(memory) == 1


async def test_deleting_a_session_or_a_user_says_how_much_and_lasts(service: MemoryService, memory: Memory) -> None:
    one = session_with(said_event("I drink tea"), said_event("I eat cake", at=1), session_id="s1")
    two = session_with(said_event("I walk a lot"), session_id="s2")
    for session in (one, two):
        await service.add_session_to_memory(session)
    assert await service.delete_session(app_name=APP, user_id=ANN, session_id="s1") == 2
    assert await service.delete_session(app_name=APP, user_id="bob", session_id="s2") == 0
    assert await service.clear_user(app_name=APP, user_id=ANN) == 1
    for session in (one, two):
        await service.add_session_to_memory(session)
    assert await rows(memory) == 0


async def test_deleting_a_session_needs_its_id(service: MemoryService, memory: Memory) -> None:
    await service.add_session_to_memory(session_with(said_event("I drink tea")))
    with pytest.raises(InvalidInputError, match="session_id"):
        await service.delete_session(app_name=APP, user_id=ANN, session_id="")
    assert await rows(memory) == 1


async def test_explicit_memories_keep_their_id_and_merge_their_metadata(service: MemoryService, memory: Memory) -> None:
    entry = entry_of("Ann is allergic to nuts", id="allergy", author="doctor", timestamp="2026-01-31T12:00:00+01:00")
    entry.custom_metadata = {"source": "entry", "memory_type": "important_fact", "topics": ["health"]}
    metadata = {"source": "call", "metadata": {"ward": 7}, "force_flush": True}
    await service.add_memory(app_name=APP, user_id=ANN, memories=[entry], custom_metadata=metadata)
    record = await memory.bind(app=APP, user=ANN).get("allergy")
    assert record is not None
    assert (record.text, record.author, record.kind) == ("Ann is allergic to nuts", "doctor", "important_fact")
    assert (record.tags, record.data) == (("health",), {"source": "entry", "ward": 7})
    assert record.occurred_at == datetime(2026, 1, 31, 11, tzinfo=UTC)
    assert (await found(service, "nuts"))[0].id == "allergy"


async def test_the_memory_id_of_the_metadata_wins_and_adding_it_again_replaces_the_text(service: MemoryService) -> None:
    for text in ("Ann drinks coffee", "Ann drinks tea"):
        await service.add_memory(
            app_name=APP, user_id=ANN, memories=[entry_of(text, id="x")], custom_metadata={"memory_id": "drink"}
        )
    assert [(entry.id, text_of(entry)) for entry in await found(service, "drinks")] == [("drink", "Ann drinks tea")]


async def test_what_is_remembered_explicitly_can_be_forgotten_and_remembered_again(service: MemoryService) -> None:
    for entry in (entry_of("Ann drinks tea", id="drink"), entry_of("Ann eats cake")):
        for _ in range(2):
            await service.add_memory(app_name=APP, user_id=ANN, memories=[entry])
            (known,) = await found(service, text_of(entry))
            await service.delete_memory(app_name=APP, user_id=ANN, memory_id=known.id)


@pytest.mark.parametrize("ttl", [{"ttl": 60}, {"ttl": "60s"}, {"ttl": timedelta(minutes=1)}])
async def test_a_memory_is_gone_when_its_time_is_over(tmp_path: Path, ttl: dict[str, object]) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    async with Memory(tmp_path / "m.db", embedder=None, clock=lambda: now) as memory:
        service = MemoryService(memory)
        await service.add_events_to_memory(
            app_name=APP, user_id=ANN, events=[said_event("I drink tea")], custom_metadata=ttl
        )
        await service.add_memory(app_name=APP, user_id=ANN, memories=[entry_of("tea at five")], custom_metadata=ttl)
        now += timedelta(seconds=59)
        assert len(await texts(service, "tea")) == 2
        now += timedelta(seconds=2)
        assert await texts(service, "tea") == []


async def test_a_memory_can_expire_at_a_moment(memory: Memory) -> None:
    service, metadata = MemoryService(memory), {"expire_time": "2999-12-31T00:00:00Z"}
    await service.add_memory(app_name=APP, user_id=ANN, memories=[entry_of("tea")], custom_metadata=metadata)
    (record,) = (await memory.bind(app=APP, user=ANN).list()).records
    assert record.expires_at == datetime(2999, 12, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        ({"ttl": "soon"}, "'soon'"),
        ({"ttl": True}, "True"),
        ({"expire_time": "tomorrow"}, "'tomorrow'"),
        ({"memory_id": 7}, "7"),
        ({"tags": "one"}, "'one'"),
        ({"thing": object()}, "JSON"),
    ],
)
async def test_unusable_metadata_is_refused_by_name(
    service: MemoryService, memory: Memory, metadata: dict[str, object], named: str
) -> None:
    with pytest.raises(InvalidInputError, match=named):
        await service.add_memory(app_name=APP, user_id=ANN, memories=[entry_of("tea")], custom_metadata=metadata)
    assert await rows(memory) == 0


_BLOB = types.Part(inline_data=types.Blob(data=b"x", mime_type="image/png"))


@pytest.mark.parametrize(
    ("memories", "error"),
    [
        ("tea", TypeError),
        (entry_of("tea"), TypeError),
        (["tea"], TypeError),
        ([], ValueError),
        ([entry_of(" ")], ValueError),
        ([entry_of("tea"), MemoryEntry(content=types.Content(parts=[types.Part(text="tea"), _BLOB]))], ValueError),
        ([entry_of("tea", id="same"), entry_of("cake", id="same")], ValueError),
        ([entry_of("tea", timestamp="yesterday")], ValueError),
    ],
    ids=["str", "one entry", "list of str", "empty", "blank text", "blob", "same id twice", "bad time"],
)
async def test_unusable_memories_are_refused_and_none_is_stored(
    service: MemoryService, memory: Memory, memories: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await service.add_memory(app_name=APP, user_id=ANN, memories=memories)
    assert await rows(memory) == 0


@pytest.mark.parametrize(
    "query",
    ["", " ", "?!", '"', "%", "NEAR(", "a AND (b", "'; DROP TABLE records; --", "tea " * 1_250, "\ud800", "\x00", "*"],
)
async def test_no_query_is_an_error(service: MemoryService, query: str) -> None:
    await service.add_session_to_memory(session_with(said_event("I drink jasmine tea")))
    await found(service, query)


async def test_what_matches_nothing_finds_nothing(service: MemoryService) -> None:
    await service.add_session_to_memory(session_with(said_event("I drink jasmine tea")))
    assert await texts(service, "quarterly revenue forecast") == []


async def test_at_most_ten_results_and_a_bounded_text_are_returned(service: MemoryService) -> None:
    events = [said_event(f"tea note {n} " + "tea leaves " * (500 if n > 4 else 1), at=n) for n in range(30)]
    await service.add_session_to_memory(session_with(*events))
    results = await texts(service, "tea")
    assert len(results) == 10
    assert sum(map(len, results)) <= 8_000
    assert any(result.endswith("…") for result in results)
    small = MemoryService(service.handle(APP, ANN), recall=RecallOptions(limit=2, max_chars=100))
    results = await texts(small, "tea")
    assert len(results) == 2
    assert sum(map(len, results)) <= 100


async def test_the_same_question_asked_every_day_does_not_bury_its_answer(service: MemoryService) -> None:
    questions = [said_event("What tea do I like?", at=n) for n in range(15)]
    await service.add_session_to_memory(session_with(said_event("The tea I like is jasmine"), *questions))
    assert (await texts(service, "what tea do I like?"))[0] == "The tea I like is jasmine"


async def test_the_app_of_a_handle_stands_in_for_what_adk_calls_the_app(memory: Memory) -> None:
    service = MemoryService(memory.bind(app="tea"))
    await service.add_session_to_memory(session_with(said_event("I drink jasmine tea"), app="folder_name"))
    assert await texts(service, "jasmine", app="PrettyName") == ["I drink jasmine tea"]
    assert (await memory.bind(app="tea", user=ANN).stats()).records == 1


async def test_a_handle_of_one_user_refuses_another(memory: Memory) -> None:
    service = MemoryService(memory.bind(app="shared", user=ANN))
    with pytest.raises(InvalidInputError, match="bob"):
        await service.add_session_to_memory(session_with(said_event("hi"), user="bob"))


async def test_a_service_closes_the_file_it_opened_and_leaves_a_given_memory_open(
    memory: Memory, tmp_path: Path
) -> None:
    service = MemoryService(memory)
    await service.close()
    await service.add_session_to_memory(session_with(said_event("still open")))
    own = MemoryService(Memory(tmp_path / "own.db", embedder=None), owns_memory=True)
    await own.add_session_to_memory(session_with(said_event("soon closed")))
    await own.close()
    with pytest.raises(ClosedError):
        await found(own, "closed")


async def test_records_say_who_spoke_and_where(service: MemoryService, memory: Memory) -> None:
    await service.add_session_to_memory(session_with(said_event("hi"), said_event("hello", author="helper", at=1)))
    page = await memory.bind(app=APP, user=ANN).list(where=Where(session="s1"), order="oldest")
    assert [(r.text, r.author, r.agent, r.session) for r in page.records] == [
        ("hi", "user", None, "s1"),
        ("hello", "helper", "helper", "s1"),
    ]


class Blocking(HashingEmbedder):
    """A model that computes for as long as the test wants, on whatever thread calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = threading.Event(), threading.Event()

    async def embed_query(self, text: str) -> Vector:
        self.begun.set()
        self.may_end.wait()
        return await super().embed_query(text)


async def test_a_model_that_computes_does_not_stop_the_callers_event_loop(tmp_path: Path) -> None:
    embedder = Blocking()
    async with Memory(tmp_path / "m.db", embedder=embedder) as memory:
        service = MemoryService(memory)
        await service.add_session_to_memory(session_with(said_event("Ann sails")))
        search = asyncio.create_task(texts(service, "sails"))
        while not embedder.begun.is_set():  # noqa: ASYNC110  (whether this loop goes on is what is tested)
            await asyncio.sleep(0)
        embedder.may_end.set()
        assert await search == ["Ann sails"]


async def test_authors_who_choose_the_same_event_id_keep_their_own_messages(service: MemoryService) -> None:
    for _ in range(2):
        for author in ("user", "helper"):
            event = said_event(f"{author} says tea", author=author, id="1")
            await service.add_session_to_memory(session_with(event))
    assert sorted(await texts(service, "tea")) == ["helper says tea", "user says tea"]


async def test_a_correction_is_not_undone_when_the_session_is_added_again(service: MemoryService) -> None:
    event, handle = said_event("Ann lives in Bergen"), service.handle(APP, ANN)
    await service.add_session_to_memory(session_with(event))
    (record,) = (await handle.list()).records
    await handle.update(record.id, Patch(text="Ann lives in Oslo"))
    await service.add_session_to_memory(session_with(event, said_event("I see", at=1, author="helper")))
    assert await texts(service, "Where does Ann live?") == ["Ann lives in Oslo"]


async def test_what_another_framework_keeps_with_its_messages_is_not_for_prompts(service: MemoryService) -> None:
    data: dict[str, Json] = {"langchain": {"type": "human", "data": {"content": "Ann sails"}}, "room": "harbour"}
    await service.handle(APP, ANN).add(Draft("Ann sails", kind="message", role="user", session="t", data=data))
    (entry,) = await found(service, "Who sails?")
    assert entry.custom_metadata == {"room": "harbour", "session_id": "t"}
