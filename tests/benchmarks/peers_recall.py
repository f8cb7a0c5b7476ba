"""The finds of other memories on the corpora of `tests/corpora`; `breadth.py` has ours and plain retrievers.

    python tests/benchmarks/peers_recall.py [CORPUS ...]

Each is used as its own documentation shows, with the default embedder's vectors where it takes vectors, and asked for
25. Google ADK's in-memory service gives ten at most. The stores that search by vectors alone (LangGraph's, Qdrant,
Chroma, mem0 with `infer=False`) rank by the cosine of the bare text: LangGraph's stands for them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from google.adk.events.event import Event
from google.adk.memory import InMemoryMemoryService, SqliteMemoryService
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.sessions.session import Session
from google.genai import types
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from spade_llm.memory.backends.base import MemoryEntry
from spade_llm.memory.backends.sqlite import SQLiteMemoryBackend

from memory_core import MiniLmEmbedder, run_sync

sys.path.insert(0, str(Path(__file__).parents[2]))  # a script finds only what is in its own folder

from tests.corpora.loading import CORPORA, Owner, owners

KS: Final = (1, 5, 10, 25)
Ask = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a question and a limit to the texts that are found, best first."""


class _MiniLm(Embeddings):
    def __init__(self) -> None:
        self._embedder = MiniLmEmbedder()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(number) for number in row] for row in run_sync(self._embedder.embed_documents, texts)]

    def embed_query(self, text: str) -> list[float]:
        return [float(number) for number in run_sync(self._embedder.embed_query, text)]


async def adk(owner: Owner, service: BaseMemoryService) -> Ask:
    sessions: defaultdict[str, list[Event]] = defaultdict(list)
    for number, draft in enumerate(owner.records):
        content = types.Content(
            role="model" if draft.role == "assistant" else "user", parts=[types.Part(text=draft.text)]
        )
        event = Event(author=draft.author or "user", content=content, id=str(number), invocation_id=str(number))
        sessions[draft.session or f"record {number}"].append(event)
    for name, events in sessions.items():
        session = Session(id=name, app_name="bench", user_id=owner.name, events=events)
        await service.add_session_to_memory(session)

    async def ask(question: str, limit: int) -> list[str]:
        answer = await service.search_memory(app_name="bench", user_id=owner.name, query=question)
        found = ["".join(part.text or "" for part in memory.content.parts or ()) for memory in answer.memories]
        return found[:limit]

    return ask


async def adk_in_memory(owner: Owner, folder: Path) -> Ask:
    return await adk(owner, InMemoryMemoryService())


async def adk_sqlite(owner: Owner, folder: Path) -> Ask:
    return await adk(owner, SqliteMemoryService(folder / "adk.db"))


async def langgraph(owner: Owner, folder: Path) -> Ask:
    store = InMemoryStore(index={"dims": 384, "embed": _MiniLm(), "fields": ["text"]})
    for number, draft in enumerate(owner.records):
        await store.aput(("bench",), str(number), {"text": draft.text})

    async def ask(question: str, limit: int) -> list[str]:
        return [str(item.value["text"]) for item in await store.asearch(("bench",), query=question, limit=limit)]

    return ask


async def spade_llm(owner: Owner, folder: Path) -> Ask:
    backend: Any = SQLiteMemoryBackend(str(folder / "spade.db"))
    await backend.initialize()
    for number, draft in enumerate(owner.records):
        entry = MemoryEntry(id=str(number), agent_id=owner.name, category="fact", content=draft.text)
        await backend.store_memory(entry)

    async def ask(question: str, limit: int) -> list[str]:
        return [entry.content for entry in await backend.search_memories(owner.name, question, limit=limit)]

    return ask


PEERS: Final[dict[str, Callable[[Owner, Path], Awaitable[Ask]]]] = {
    "ADK InMemoryMemoryService": adk_in_memory,
    "ADK SqliteMemoryService": adk_sqlite,
    "LangGraph InMemoryStore": langgraph,
    "spade_llm base memory": spade_llm,
}


async def recalls(owner: Owner, ask: Ask) -> list[tuple[float, ...]]:
    """Recall at `KS` of each question."""
    keys = {draft.text: str(draft.source_key) for draft in reversed(owner.records)}
    found: list[tuple[float, ...]] = []
    for question in owner.questions:
        ranked = [keys.get(text, "") for text in await ask(question.text, max(KS))]
        found.append(tuple(len(question.evidence & set(ranked[:k])) / len(question.evidence) for k in KS))
    return found


async def main(corpora: Sequence[str]) -> None:
    for corpus in corpora:
        for peer, remember in PEERS.items():
            found: list[tuple[float, ...]] = []
            for owner in owners(corpus):
                with tempfile.TemporaryDirectory() as folder:
                    found += await recalls(owner, await remember(owner, Path(folder)))
            shares = " / ".join(f"{100 * fmean(column):.0f}" for column in zip(*found, strict=True))
            print(f"{corpus:16} {peer:26} {shares}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or CORPORA))
