"""A conversation does what its adapter says, in order, whatever fails; nothing is inferred."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core import BoundMemory, Draft, InvalidInputError, Link, Memory, MemoryRecord, Patch, Scope, Where
from memory_core.conversation.conversation import Conversation, Conversations, Visible
from memory_core.errors import StoreUnavailableError
from memory_core.records.kinds import MESSAGE_KIND
from memory_core.storage.sqlite.store import SqliteStore
from memory_core.values.ids import new_id
from memory_core.values.shortening import is_shortened

TEA = "I like jasmine tea best"


class Unsteady(SqliteStore):
    """A store whose writes fail when they are told to."""

    fails: bool = False
    batches: Sequence[int] = ()
    """The numbers of records of the writes that did not fail."""

    async def add(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        *,
        embed_later: bool,
        versions: Mapping[str, int] | None = None,
    ) -> list[MemoryRecord | None]:
        self._insist()
        self.batches = (*self.batches, len(records))
        return await super().add(scope, records, embed_later=embed_later, versions=versions)

    async def update(
        self,
        scope: Scope,
        id: str,  # noqa: A002  (the record's own word)
        patch: Patch,
        *,
        expected_version: int | None = None,
    ) -> MemoryRecord:
        self._insist()
        return await super().update(scope, id, patch, expected_version=expected_version)

    def _insist(self) -> None:
        if self.fails:
            raise StoreUnavailableError("out of reach")


@dataclass
class Talk:
    memory: Memory
    store: Unsteady
    conversations: Conversations

    def of(self, user: str = "ann", session: str = "monday") -> Conversation:
        return self.conversations.of(self.memory.bind(user=user), session)

    def handle(self, user: str = "ann") -> BoundMemory:
        return self.memory.bind(user=user)

    async def texts(self, user: str = "ann", *, left: bool | None = False) -> list[str]:
        page = await self.handle(user).list(where=Where(left=left, kinds=[MESSAGE_KIND]), order="oldest", limit=1_000)
        return [record.text for record in page.records]


@pytest_asyncio.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    store = Unsteady(tmp_path / "m.db", embedder=None, clock=lambda: datetime.now(UTC))
    async with Memory(store) as memory:
        yield Talk(memory, store, Conversations("test", "a test", seconds=5.0))


def said(
    conversation: Conversation, text: str, *, name: str | None = None, role: Literal["user", "assistant"] = "user"
) -> Draft:
    """A message under its text as its id, unless it is named or has none."""
    key = None if name == "" else conversation.key(name or text)
    return Draft(text, role=role, kind=MESSAGE_KIND, author=role, source_key=key)


async def test_saying_a_known_message_again_changes_nothing(talk: Talk) -> None:
    conversation = talk.of()
    await conversation.remember([said(conversation, TEA, name="1")])
    await conversation.settled()
    (record,) = (await talk.handle().list()).records
    corrected = await talk.handle().update(record.id, Patch(text="I like mint tea best"))
    await conversation.remember([said(conversation, TEA, name="1"), said(conversation, "And cake", name="2")])
    await conversation.settled()
    assert await talk.texts() == ["I like mint tea best", "And cake"]
    assert await talk.handle().get(record.id) == corrected


async def test_a_message_that_is_left_is_in_no_read_until_it_is_resumed(talk: Talk) -> None:
    conversation = talk.of()
    await conversation.remember([said(conversation, TEA), said(conversation, "The cat is called Tom")])
    await conversation.settled()
    turn = next(hit.record for hit in await talk.handle().search("jasmine tea"))
    fact = await talk.handle().add(Draft("Jasmine tea is best", kind="fact", links=[Link("derived_from", turn.id)]))
    await conversation.leave([conversation.key(TEA), conversation.key("nobody said this")])
    await conversation.settled()
    assert await talk.texts() == ["The cat is called Tom"]
    assert not await talk.handle().search("jasmine tea")
    assert not await talk.of(session="tuesday").recall("Which tea do I like?")
    assert {one.left for one in await conversation.known([conversation.key(TEA)])} == {True}
    await conversation.resume([conversation.key(TEA)])
    await conversation.settled()
    assert {hit.record.id for hit in await talk.handle().search("jasmine tea", apart=True)} == {turn.id, fact.id}
    assert TEA in await talk.of(session="tuesday").recall("Which tea do I like?")


async def test_what_one_teller_shows_while_the_store_does_not_answer_is_stored_together(talk: Talk) -> None:
    conversation, talk.store.fails = talk.of(), True
    for text in ("one", "two", "three", "three"):
        await conversation.remember([said(conversation, text)], are_shown=True)
    await talk.conversations.writes.settle()
    talk.store.fails = False
    await conversation.remember([said(conversation, "four")], are_shown=True)
    await conversation.settled()
    assert await talk.texts() == ["one", "two", "three", "four"]
    assert len(talk.store.batches) == 1


async def test_what_is_left_between_two_tellings_is_left_before_the_second(talk: Talk) -> None:
    conversation, talk.store.fails = talk.of(), True
    await conversation.remember([said(conversation, "one"), said(conversation, "two")], are_shown=True)
    await conversation.leave([conversation.key("one"), conversation.key("two")])
    await conversation.remember([said(conversation, "one")], are_shown=True)
    talk.store.fails = False
    await conversation.remember([said(conversation, "three")], are_shown=True)
    await conversation.settled()
    assert await talk.texts() == ["one", "three"]
    assert len(talk.store.batches) == 2


async def test_messages_of_no_conversation_are_kept_each_once(talk: Talk) -> None:
    conversation = talk.of(session="")
    for _ in range(2):
        await conversation.remember([said(talk.of(), TEA)], are_shown=True)
    await conversation.settled()
    (record,) = (await talk.handle().list()).records
    assert (record.text, record.session) == (TEA, None)


async def test_an_edit_is_a_new_revision_and_an_equal_one_is_none(talk: Talk) -> None:
    conversation = talk.of()
    await conversation.remember([said(conversation, TEA)])
    await conversation.edit(conversation.key(TEA), "I like mint tea best")
    await conversation.edit(conversation.key(TEA), "I like mint tea best")
    await conversation.edit(conversation.key("nobody said this"), "Something")
    await conversation.settled()
    (record,) = (await talk.handle().list()).records
    assert (record.text, record.rev) == ("I like mint tea best", 2)


async def test_what_is_deleted_may_be_said_again(talk: Talk) -> None:
    conversation = talk.of()
    await conversation.remember([said(conversation, TEA)])
    await conversation.delete([conversation.key(TEA)])
    await conversation.settled()
    assert await talk.texts(left=None) == []
    await conversation.remember([said(conversation, TEA)])
    await conversation.settled()
    assert await talk.texts() == [TEA]


async def test_a_conversation_reaches_only_its_owner_and_its_session(talk: Talk) -> None:
    ann, bob, other = talk.of("ann"), talk.of("bob"), talk.of("ann", "tuesday")
    for conversation in (ann, bob, other):
        await conversation.remember([said(conversation, TEA, name="1")])
        await conversation.settled()
    await bob.leave([ann.key("1"), bob.key("1"), other.key("1")])
    await bob.delete([ann.key("1"), other.key("1")])
    await bob.settled()
    assert await talk.texts("ann") == [TEA, TEA]
    assert await talk.texts("bob") == []


@pytest.mark.parametrize("names", ["", "other ids"])
@pytest.mark.parametrize("first", [0, 3])
async def test_a_client_that_resends_only_the_persons_messages_stores_none_twice(
    talk: Talk, first: int, names: str
) -> None:
    conversation, asked = talk.of(), ["Hello", "I like tea", "yes", "And cake", "yes", "And jam"]
    turns = [(text, f"Answer {number}") for number, text in enumerate(asked)]
    for text, answer in turns:
        await conversation.remember([said(conversation, text, name=new_id())])
        await conversation.remember([said(conversation, answer, role="assistant")])
    resent = [*asked[first:], "And bread"]
    drafts = [said(conversation, text, name=names and f"{names} {number}") for number, text in enumerate(resent)]
    await conversation.remember(drafts, ids_may_differ=True)
    await conversation.settled()
    assert await talk.texts() == [*(text for turn in turns for text in turn), "And bread"]


async def test_what_the_prompt_shows_is_not_recalled(talk: Talk) -> None:
    conversation = talk.of()
    shown = said(conversation, TEA)
    await conversation.remember([shown])
    await talk.of(session="tuesday").remember([said(conversation, "Jasmine tea is from China", name="2")])
    await talk.of(session="tuesday").settled()
    question = "What about jasmine tea?"
    assert TEA in await conversation.recall(question)
    for visible in (Visible([shown.source_key or ""]), Visible(texts=[TEA])):
        block = await conversation.recall(question, visible)
        assert TEA not in block
        assert "from China" in block


async def test_what_a_store_could_not_take_is_there_when_this_person_speaks_again(talk: Talk) -> None:
    conversation = talk.of()
    talk.store.fails = True
    await conversation.remember([said(conversation, TEA)])
    with pytest.raises(StoreUnavailableError, match="out of reach"):
        await conversation.settled()
    talk.store.fails = False
    assert TEA in await talk.of(session="tuesday").recall("Which tea do I like?")


async def test_a_memory_that_fails_costs_a_turn_its_block_and_one_line_in_the_log(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await talk.handle().add(TEA)

    async def broken(*_: object) -> None:
        raise StoreUnavailableError("out of reach")

    monkeypatch.setattr(talk.store, "search", broken)
    with caplog.at_level(logging.WARNING):
        assert await talk.of().recall("Which tea do I like?") == ""
        assert await talk.of().recall("Which tea do I like?") == ""
    assert len(caplog.records) == 1


async def test_a_message_that_is_too_large_is_stored_shortened(talk: Talk) -> None:
    conversation = talk.of()
    picture = {"picture": "x" * 10_000_000, "role": "user"}
    await conversation.remember([Draft("w" * 2_000_000, data=picture, source_key=conversation.key("1"))])
    await conversation.settled()
    (record,) = (await talk.handle().list()).records
    assert is_shortened(record.text)
    assert is_shortened(record.data["picture"])
    assert record.data["role"] == "user"


async def test_what_cannot_be_stored_is_an_error_at_once(talk: Talk) -> None:
    conversation = talk.of()
    good, bad = said(conversation, TEA), Draft("", source_key=conversation.key("2"), importance=7.0)
    with pytest.raises(InvalidInputError, match="importance"):
        await conversation.remember([good, bad])
    await conversation.settled()
    assert await talk.texts() == []


Verb = Literal["say", "edit", "leave", "resume", "delete"]
VERBS: tuple[Verb, ...] = ("say", "edit", "leave", "resume", "delete")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 3), st.booleans()), max_size=12))
def test_what_was_told_is_true_in_the_end_however_often_the_store_fails(doings: list[tuple[Verb, int, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shown, expected = asyncio.run(_told(Path(folder), doings))
    assert shown == expected


async def _told(folder: Path, doings: Sequence[tuple[Verb, int, bool]]) -> tuple[dict[str, bool], dict[str, bool]]:
    """Each text and whether it was left: as stored, and as told."""
    store = Unsteady(folder / "m.db", embedder=None, clock=lambda: datetime.now(UTC))
    async with Memory(store) as memory:
        talk = Talk(memory, store, Conversations("test", "a test", seconds=5.0))
        conversation, told = talk.of(), dict[str, tuple[str, bool]]()
        for number, (verb, name, fails) in enumerate(doings):
            key, text = conversation.key(str(name)), f"text {number}"
            store.fails = fails
            await _do(conversation, told, verb, key, text)
        store.fails = False
        await conversation.remember([said(conversation, "the end")])
        await conversation.settled()
        page = await talk.handle().list(where=Where(left=None), limit=100)
        stored = {record.text: record.left for record in page.records if record.text != "the end"}
    return stored, dict(told.values())


async def _do(conversation: Conversation, told: dict[str, tuple[str, bool]], verb: Verb, key: str, text: str) -> None:
    match verb:
        case "say":
            await conversation.remember([Draft(text, kind=MESSAGE_KIND, source_key=key)])
            told.setdefault(key, (text, False))
        case "edit":
            await conversation.edit(key, text)
            if key in told:
                told[key] = text, told[key][1]
        case "leave":
            await conversation.leave([key])
            if key in told:
                told[key] = told[key][0], True
        case "resume":
            await conversation.resume([key])
            if key in told:
                told[key] = told[key][0], False
        case "delete":
            await conversation.delete([key])
            told.pop(key, None)
