"""Our memory service agrees with ADK's own ones, wherever they agree with each other."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from google.adk.memory import InMemoryMemoryService, SqliteMemoryService
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.sessions.session import Session

from memory_adk import MemoryService
from memory_core import Memory
from tests.adapters.adk.agents import ANN, APP, said_event, session_with, text_of

pytestmark = pytest.mark.uncovered


@pytest.fixture(params=["ours", "InMemory", "Sqlite"])
async def each(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseMemoryService]:
    if request.param == "ours":
        async with Memory(tmp_path / "m.db", embedder=None) as memory:
            yield MemoryService(memory)
    elif request.param == "InMemory":
        yield InMemoryMemoryService()
    else:
        service = SqliteMemoryService(tmp_path / "adk.db")
        yield service
        await service.close()


async def found(service: BaseMemoryService, query: str, *, app: str = APP, user: str = ANN) -> list[str]:
    answer = await service.search_memory(app_name=app, user_id=user, query=query)
    return [text_of(entry) for entry in answer.memories]


async def test_a_word_in_any_case_finds_what_was_said(each: BaseMemoryService) -> None:
    await each.add_session_to_memory(session_with(said_event("The Ferry leaves from Pier Nine.")))
    await each.add_session_to_memory(session_with(said_event("Dinner is at eight."), session_id="s2"))
    for query in ("ferry", "FERRY", "When does the ferry leave?", "pier-nine", '"ferry"'):
        assert await found(each, query) == ["The Ferry leaves from Pier Nine."]


async def test_a_part_of_a_word_and_an_unknown_word_find_nothing(each: BaseMemoryService) -> None:
    await each.add_session_to_memory(session_with(said_event("The ferry leaves from pier nine.")))
    for query in ("erry", "submarine", "", "   ", "!?"):
        assert await found(each, query) == []


async def test_more_matching_words_rank_higher(each: BaseMemoryService) -> None:
    lines = ["The ferry is late.", "The red ferry to the island is late.", "Nothing else."]
    sessions = [session_with(said_event(line, at=n), session_id=f"s{n}") for n, line in enumerate(lines)]
    for session in sessions:
        await each.add_session_to_memory(session)
    assert await found(each, "red ferry island") == [lines[1], lines[0]]


async def test_apps_and_users_are_kept_apart(each: BaseMemoryService) -> None:
    await each.add_session_to_memory(session_with(said_event("the code word is tamarind"), app="a/b", user="c"))
    assert await found(each, "tamarind", app="a/b", user="c") == ["the code word is tamarind"]
    for app, user in [("a", "b/c"), ("a/b", "d"), ("x", "c")]:
        assert await found(each, "tamarind", app=app, user=user) == []


async def test_adding_again_does_not_double_and_deltas_add(each: BaseMemoryService) -> None:
    session = session_with(said_event("ferry one", at=0), said_event("ferry two", at=1))
    await each.add_session_to_memory(session)
    await each.add_session_to_memory(session)
    await each.add_events_to_memory(app_name=APP, user_id=ANN, session_id="s1", events=session.events)
    more = said_event("ferry three", at=2)
    await each.add_events_to_memory(app_name=APP, user_id=ANN, session_id="s1", events=[more])
    assert sorted(await found(each, "ferry")) == ["ferry one", "ferry three", "ferry two"]


async def test_one_event_under_two_sessions_is_found(each: BaseMemoryService) -> None:
    event = said_event("the ferry is late", id="e1")
    for session_id in ("s1", "s2"):
        await each.add_session_to_memory(session_with(event, session_id=session_id))
    texts = await found(each, "ferry")
    assert set(texts) == {"the ferry is late"}
    assert len(texts) == (1 if isinstance(each, MemoryService) else 2)  # ours says nothing twice


async def test_events_may_come_without_a_session(each: BaseMemoryService) -> None:
    await each.add_events_to_memory(app_name=APP, user_id=ANN, events=[said_event("the ferry is late")])
    assert await found(each, "ferry") == ["the ferry is late"]


async def test_events_without_content_and_empty_sessions_are_fine(each: BaseMemoryService) -> None:
    await each.add_session_to_memory(session_with())
    await each.add_session_to_memory(session_with(said_event("", content=None)))
    await each.add_events_to_memory(app_name=APP, user_id=ANN, events=[])
    assert await found(each, "ferry") == []


async def test_an_entry_has_author_and_time(each: BaseMemoryService) -> None:
    await each.add_session_to_memory(session_with(said_event("the ferry is late", author="helper")))
    (entry,) = (await each.search_memory(app_name=APP, user_id=ANN, query="ferry")).memories
    assert entry.author == "helper"
    assert entry.timestamp
    assert entry.id


async def test_what_is_returned_is_a_copy(each: BaseMemoryService) -> None:
    event = said_event("the ferry is late")
    session: Session = session_with(event)
    await each.add_session_to_memory(session)
    for _ in range(2):
        (entry,) = (await each.search_memory(app_name=APP, user_id=ANN, query="ferry")).memories
        assert text_of(entry) == "the ferry is late"
        assert entry.content.parts
        entry.content.parts[0].text = "changed"


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


@pytest.mark.parametrize(
    ("text", "query", "matches"),
    [
        ("明日は京都へ行きます", "京都", True),
        ("明日は京都へ行きます", "大阪", False),
        ("明日は新幹線で京都へ行きます", "新幹線", True),
        ("妹はカメラを買いました", "カメラ", True),
        (_decomposed("妹はバイオリンを弾く"), "バイオリン", True),
        ("我每天早上喝绿茶", "绿茶", True),
        ("我每天早上喝绿茶", "咖啡", False),
        ("他住在Berlin的老城", "Berlin", True),
        ("他住在Berlin的老城", "berlin", True),
        ("他住在Berlin的老城", "erlin", False),
        ("彼女はDockerとKubernetesを使う", "kubernetes", True),
        ("彼女はDockerとKubernetesを使う", "使う", True),
        ("彼女はDockerとKubernetesを使う", "Podman", False),
        ("제 고양이 이름은 나비예요", "나비예요", True),
        (_decomposed("제 고양이 이름은 나비예요"), "나비예요", True),
        ("Мою собаку зовут Барон", "Барон", True),
        ("Мою собаку зовут Барон", "барон", True),
        ("έχω μια γάτα και έναν σκύλο", "γάτα", True),
        ("اسم قطتي ياسمين", "ياسمين", True),
        ("मेरी बिल्ली का नाम चमेली है", "चमेली", True),
        (_decomposed("Treffen im Café Müller"), "Müller", True),
        ("Treffen im Café Müller", _decomposed("Café"), True),
    ],
)
async def test_words_of_other_scripts_are_found(tmp_path: Path, text: str, query: str, *, matches: bool) -> None:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        service = MemoryService(memory)
        await service.add_session_to_memory(session_with(said_event(text)))
        assert len(await found(service, query)) == matches
