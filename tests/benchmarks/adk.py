"""ADK's memory services and ours, side by side: search, ingestion and recall, all through ADK's own methods.

    python tests/benchmarks/adk.py [EVENTS] [LOCOMO.json]

EVENTS (100,000 by default) belong once to one user and once to 100. Vectors of events are given; a question is really
embedded, by the default model. LOCOMO.json has conversations in the format of the LoCoMo data set; recall is the share
of a question's evidence among the first ten results, with nothing but `search_memory`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from google.adk.events.event import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.memory import SqliteMemoryService as AdkSqliteMemoryService
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.sessions.session import Session
from google.genai import types
from numpy.typing import NDArray

from common import GivenVectors, drafts, percentiles, questions
from memory_adk import MemoryService
from memory_core import Memory
from memory_core.embedding.minilm import MiniLmEmbedder

APP = "bench"
TURNS = 40
"""Events of a session."""
FOUND = 10
"""Results that count for recall; ours and `InMemoryMemoryService` return no more."""
ROUNDS, ASKED = 3, 10


class RealQuestions(GivenVectors):
    """Given vectors, but a question takes as long as it takes."""

    def __init__(self) -> None:
        super().__init__()
        self._model = MiniLmEmbedder()

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        await self._model.embed_query(text)
        return self.vector(text)

    async def close(self) -> None:
        await self._model.close()


@dataclass(frozen=True)
class Question:
    text: str
    evidence: frozenset[str]


def services(folder: Path, ours: Memory) -> dict[str, BaseMemoryService]:
    """One of each."""
    return {
        "ours": MemoryService(ours),
        "InMemory": InMemoryMemoryService(),
        "Sqlite": AdkSqliteMemoryService(folder / "adk.db"),
    }


def event(text: str, author: str, at: float, **fields: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(author=author, content=content, timestamp=at, **fields)


def sessions(count: int, users: int) -> Iterator[Session]:
    """Conversations with `count` events in all, dealt to the users in turn."""
    texts = drafts(count, users)
    for number, start in enumerate(range(0, count, TURNS)):
        said = [
            event(draft.text, draft.author or "", 1.7e9 + start + at)
            for at, draft in enumerate(texts[start : start + TURNS])
        ]
        yield Session(id=f"s{number}", app_name=APP, user_id=f"user{number % users}", events=said)


async def search(count: int, users: int) -> None:
    """Ingest, then search the memories of one user, in turns."""
    with tempfile.TemporaryDirectory() as name:
        async with Memory(Path(name) / "ours.db", embedder=RealQuestions()) as memory:
            contenders = services(Path(name), memory)
            pace = {kind: await ingest(service, count, users) for kind, service in contenders.items()}
            seconds: dict[str, list[float]] = {kind: [] for kind in contenders}
            processor = dict.fromkeys(contenders, 0.0)
            await settled(memory, users)
            for service in contenders.values():
                await ask(service, ["warm up"])
            for number in range(ROUNDS):
                for kind, service in contenders.items():
                    before = time.process_time()
                    seconds[kind] += await ask(service, questions(ASKED, number))
                    processor[kind] += 1e3 * (time.process_time() - before) / (ROUNDS * ASKED)
    p50 = {kind: percentiles(taken)[0] for kind, taken in seconds.items()}
    for kind, median in p50.items():
        print(
            f"{count:7} events of {users:3} users, {kind:8}: search p50 {median:8.2f} ms "
            f"({median / p50['ours']:5.1f} x ours), processor time {processor[kind]:8.2f} ms "
            f"({processor[kind] / processor['ours']:5.1f} x ours), ingestion {pace[kind]:7.0f} events/s"
        )


async def ingest(service: BaseMemoryService, count: int, users: int) -> float:
    """Events a second, one session a call."""
    made = list(sessions(count, users))
    start = time.perf_counter()
    for session in made:
        await service.add_session_to_memory(session)
    return count / (time.perf_counter() - start)


async def ask(service: BaseMemoryService, asked: Sequence[str]) -> list[float]:
    """Seconds for each question."""
    seconds: list[float] = []
    for question in asked:
        start = time.perf_counter()
        await service.search_memory(app_name=APP, user_id="user0", query=question)
        seconds.append(time.perf_counter() - start)
    return seconds


async def recall(path: Path) -> None:
    """Recall of evidence among the first ten results, on average over all questions that have evidence."""
    conversations = json.loads(path.read_text())  # noqa: ASYNC240  (nothing else is under way)
    shares: dict[str, list[float]] = {}
    for conversation in conversations:
        said, asked = turns(conversation), evidence(conversation)
        with tempfile.TemporaryDirectory() as name:
            async with Memory(Path(name) / "ours.db") as memory:
                for kind, service in services(Path(name), memory).items():
                    for session in said:
                        await service.add_session_to_memory(session)
                    await settled(memory, 1)
                    shares.setdefault(kind, []).extend([await share(service, question) for question in asked])
    ours = sum(shares["ours"]) / len(shares["ours"])
    for kind, found in shares.items():
        mean = sum(found) / len(found)
        print(f"LoCoMo, {len(found)} questions, {kind:8}: R@{FOUND} {100 * mean:.1f} % (ours {ours / mean:.2f} x)")


def turns(conversation: dict[str, Any]) -> list[Session]:
    """A conversation's sessions; a photo counts by its caption, for everybody."""
    spoken = conversation["conversation"]
    made: list[Session] = []
    for name in sorted((key for key in spoken if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:])):
        when = datetime.strptime(spoken[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()
        events = [
            event(text_of(turn), turn["speaker"], when + at, id=turn["dia_id"]) for at, turn in enumerate(spoken[name])
        ]
        made.append(Session(id=name, app_name=APP, user_id="user0", events=events))
    return made


def text_of(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return str(turn["text"]) + (f" [shares {caption}]" if caption else "")


def evidence(conversation: dict[str, Any]) -> list[Question]:
    known = {
        turn["dia_id"]
        for session in conversation["conversation"].values()
        if isinstance(session, list)
        for turn in session
    }
    made: list[Question] = []
    for asked in conversation["qa"]:
        named = re.findall(r"D:?(\d+):(\d+)", " ".join(asked.get("evidence") or ()))
        found = frozenset(f"D{int(session)}:{int(turn)}" for session, turn in named) & known
        if found:
            made.append(Question(asked["question"], found))
    return made


async def settled(memory: Memory, users: int) -> None:
    """Return once every vector is there."""
    for number in range(users):
        handle = memory.bind(app=APP, user=f"user{number}")
        while (await handle.stats()).vectors_owed:  # noqa: ASYNC110  (nothing says when)
            await asyncio.sleep(0.1)


async def share(service: BaseMemoryService, question: Question) -> float:
    found = (await service.search_memory(app_name=APP, user_id="user0", query=question.text)).memories[:FOUND]
    ids = {entry.custom_metadata.get("event_id", entry.id) for entry in found}
    return len(ids & question.evidence) / len(question.evidence)


async def main(count: int, locomo: Path | None) -> None:
    await search(count // 10, 1)
    await search(count, 100)
    await search(count, 1)
    if locomo is not None:
        await recall(locomo)


if __name__ == "__main__":
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    paths = [Path(argument) for argument in sys.argv[1:] if not argument.isdigit()]
    asyncio.run(main(int(numbers[0]) if numbers else 100_000, paths[0] if paths else None))
