"""A change that a person makes in one framework is seen through every other one, its tools, the API and an export.

Each case changes a conversation where it takes place. What that framework then shows is what every reader finds, and
what it shows no longer no reader finds.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
from fastapi.testclient import TestClient
from frameworks import FRAMEWORKS, opened, own_container

from memory_core import BoundMemory, Memory, MemoryRecord, Patch, Scope, Where
from memory_core.app.serve.application import application
from memory_core.transfer.jsonl import export_jsonl, import_jsonl
from memory_langchain import MemoryChatMessageHistory
from memory_spade.testing.xmpp import XmppServer
from tests.adapters.chats.every import CHATS
from tests.app.serve.test_api import HOST, as_user, served

pytestmark = [pytest.mark.process, pytest.mark.slow]

SAID: Final = ("Mia is allergic to peanuts", "The spare key is with Mrs Okafor")
NEW: Final = "The passport expires in June 2027"
QUESTIONS: Final = {
    SAID[0]: "What is Mia allergic to?",
    SAID[1]: "Where is the spare key?",
    NEW: "When does the passport expire?",
}
STORED: Final = Where(states=("active", "compacted", "archived"), left=None)

CHANGES: Final = [
    ("langgraph", "edit"),
    ("langgraph", "regenerate"),
    ("langgraph", "go_back"),
    ("langgraph", "remove"),
    ("adk", "go_back"),
    ("hook", "go_back"),
    ("chain", "edit"),
    ("chain", "remove"),
    ("mcp", "remove"),
    ("spade", "edit"),
    ("spade", "remove"),
]
"""The changes of a person, with their places, of the frameworks whose record or call says it."""


class Reader(Protocol):
    async def __call__(self, query: str) -> set[str]:
        """The texts of this memory that a way to read it finds for a query."""
        ...


def by_ids(handle: BoundMemory, find: Callable[[str], Any]) -> Reader:
    """A reader that returns ids; the text is that of the record, in whatever state."""

    async def read(query: str) -> set[str]:
        found = [await handle.get(name) for name in await find(query)]
        return {record.text if is_shown(record) else f"gone: {record.text}" for record in found if record is not None}

    return read


def is_shown(record: MemoryRecord) -> bool:
    return record.state == "active" and not record.left


class Served:
    """The API of `memory-core serve`."""

    def __init__(self, memory: Memory) -> None:
        self.client = TestClient(application(served(memory)), base_url=HOST, headers=as_user("ann"))

    async def search(self, query: str) -> set[str]:
        answer = await asyncio.to_thread(self.client.post, "/v1/search", json={"query": query})
        return {hit["record"]["text"] for hit in answer.json()["hits"]}

    async def listed(self, query: str) -> set[str]:
        answer = await asyncio.to_thread(self.client.get, "/v1/records", params={"limit": 100})
        return {record["text"] for record in answer.json()["records"]}

    async def correct(self, record: MemoryRecord, text: str) -> None:
        place = f"/v1/records/{record.id}/supersede"
        answer = await asyncio.to_thread(self.client.post, place, json={"text": text})
        assert answer.is_success, answer.text


async def exported(memory: Memory, folder: Path) -> Reader:
    """Search in a memory into which an export has been read."""
    lines: list[bytes] = []
    await export_jsonl(memory, lines.append, owner=Scope("default", "ann"), vectors=False)
    path = folder / f"{uuid.uuid4()}.db"

    async def search(query: str) -> set[str]:
        async with Memory(path, embedder=None) as copy:
            if not (await copy.bind(user="ann").list(where=STORED)).records:
                await import_jsonl(copy, b"".join(lines).splitlines(keepends=True))
            return {hit.record.text for hit in await copy.bind(user="ann").search(query)}

    return search


@asynccontextmanager
async def readers(memory: Memory, server: XmppServer, folder: Path, session: str) -> AsyncIterator[dict[str, Reader]]:
    """Every way to read what a person has in a memory."""
    ann, api = memory.bind(user="ann"), Served(memory)

    async def search(query: str) -> set[str]:
        return {hit.record.text for hit in await ann.search(query)}

    async def recall(query: str) -> set[str]:
        block = (await ann.recall(QUESTIONS[query])).text
        return {text for text in (*SAID, NEW) if f'"{text}"' in block}

    async def history(query: str) -> set[str]:
        return {message.text for message in await MemoryChatMessageHistory(ann, session).aget_messages()}

    async with AsyncExitStack() as stack:
        found: dict[str, Reader] = {"search": search, "recall": recall, "a LangChain history": history}
        for name in FRAMEWORKS:
            framework = await stack.enter_async_context(opened(name, ann, server))
            found[name] = by_ids(ann, framework.find)
        found |= {"the API": api.search, "the list of the API": api.listed}
        found["an export"] = await exported(memory, folder)
        yield found


async def check(memory: Memory, server: XmppServer, folder: Path, shown: set[str], session: str) -> None:
    """Every reader finds what is shown, and nothing of what is stored and not shown."""
    async with readers(memory, server, folder, session) as every:
        for name, read in every.items():
            for text in (*SAID, NEW):
                found = await read(text)
                assert (text in found) == (text in shown), (name, text, found)
                assert not {one for one in found if one.startswith("gone: ")}, (name, found)
                assert found & {*SAID, NEW} <= shown, (name, found)


@pytest.mark.parametrize(("framework", "what"), CHANGES)
async def test_what_a_person_changes_in_one_framework_every_reader_sees(
    framework: str, what: str, server: XmppServer, tmp_path: Path
) -> None:
    with own_container():
        async with Memory(tmp_path / "memory.db", embedder=None) as memory:
            ann = memory.bind(user="ann")
            chat = CHATS[framework]([ann])
            for text in SAID:
                await chat.do("say", 0, text, process=0)
            session = (await ann.list()).records[0].session or ""
            await check(memory, server, tmp_path, set(SAID), session)
            await chat.do(what, 2 if framework == "mcp" else 1, NEW, process=0)
            shown = set(await chat.shown()) & {*SAID, NEW}
            assert shown != set(SAID) or what == "regenerate"
            await check(memory, server, tmp_path, shown, session)


async def test_a_branch_that_a_person_comes_back_to_every_reader_sees_again(server: XmppServer, tmp_path: Path) -> None:
    with own_container():
        async with Memory(tmp_path / "memory.db", embedder=None) as memory:
            chat = CHATS["langgraph"]([memory.bind(user="ann")])
            await chat.do("say", 0, SAID[0], process=0)
            await chat.do("say", 0, SAID[1], process=0)
            await chat.do("go_back", 0, "hello", process=0)
            await check(memory, server, tmp_path, set(await chat.shown()) & set(SAID), "monday")
            await chat.do("resume", 1, "hello again", process=0)
            assert set(SAID) <= set(await chat.shown())
            await check(memory, server, tmp_path, set(SAID), "monday")


@pytest.mark.parametrize("how", ["by the API", "by `supersede`", "by `update`"])
async def test_what_a_person_corrects_every_reader_sees(how: str, server: XmppServer, tmp_path: Path) -> None:
    with own_container():
        async with Memory(tmp_path / "memory.db", embedder=None) as memory:
            ann = memory.bind(user="ann")
            chat = CHATS["langgraph"]([ann])
            for text in SAID:
                await chat.do("say", 0, text, process=0)
            (wrong,) = [record for record in (await ann.list()).records if record.text == SAID[1]]
            if how == "by the API":
                await Served(memory).correct(wrong, NEW)
            elif how == "by `supersede`":
                await ann.supersede(wrong.id, NEW)
            else:
                await ann.update(wrong.id, Patch(text=NEW))
            await check(memory, server, tmp_path, {SAID[0], NEW}, "monday")
