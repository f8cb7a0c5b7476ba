"""ADK's memory services and ours, side by side: search, ingestion and recall, all through ADK's own methods.

    python tests/benchmarks/adk.py [EVENTS] [LOCOMO.json] [--users 100 1] [--durable] [--files FOLDER]

EVENTS (100,000 by default) belong once to 100 users and once to one. They and the questions are English words as often
as Zipf's law has them. Vectors of events are given; a question is really embedded, by the default model. LOCOMO.json
has conversations in the format of the LoCoMo data set; recall is the share of a question's evidence among the first ten
results, with nothing but `search_memory`.

`--files` keeps what was filled, so that another run only searches. `--durable` leaves out `InMemoryMemoryService`,
which keeps nothing and takes most of the time.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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

import memory_core
from common import GivenVectors
from memory_adk import MemoryService
from memory_core import Memory
from memory_core.embedding.minilm import MiniLmEmbedder

APP = "bench"
TURNS = 40
"""Events of a session."""
FOUND = 10
"""Results that count for recall; ours and `InMemoryMemoryService` return no more."""
ROUNDS, ASKED, ROUND_SECONDS = 3, 15, 6.0
FILLED = "filled"
"""A file beside those that hold all events."""
CALLS = 50
"""Sessions that one contender stores before it is the next one's turn."""

_VOCABULARY = Path(memory_core.__file__).parent / "embedding" / "minilm" / "vocab.txt"
_WORDS = re.findall(r"^[a-z]{2,}$", _VOCABULARY.read_text(), re.MULTILINE)[:20_000]
"""The words of the model's vocabulary, which has them by frequency."""
_WEIGHTS = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(_WORDS))))


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


@dataclass
class Contender:
    """A service, and the seconds it took."""

    service: BaseMemoryService
    ingesting: float = 0.0
    settling: float = 0.0
    asked: list[float] = field(default_factory=list)

    async def ask(self, questions: Sequence[str]) -> None:
        """Ask at least one question, and no more once the round has taken long."""
        began = time.perf_counter()
        for question in questions:
            start = time.perf_counter()
            await self.service.search_memory(app_name=APP, user_id="user0", query=question)
            self.asked.append(time.perf_counter() - start)
            if time.perf_counter() - began > ROUND_SECONDS:
                return


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
    dice = random.Random(users)
    for number, start in enumerate(range(0, count, TURNS)):
        said = [
            event(sentence(dice, 33), f"person{at % 3}", 1.7e9 + start + at) for at in range(min(TURNS, count - start))
        ]
        yield Session(id=f"s{number}", app_name=APP, user_id=f"user{number % users}", events=said)


def sentence(dice: random.Random, length: int) -> str:
    """English words as often as Zipf's law has them."""
    return " ".join(dice.choices(_WORDS, cum_weights=_WEIGHTS, k=length))


@contextmanager
def files(kept: Path | None, name: str) -> Iterator[Path]:
    """A folder for the services' files: one that is kept, empty unless it was filled to the end, or one for now."""
    if kept is None:
        with tempfile.TemporaryDirectory() as now:
            yield Path(now)
        return
    folder = kept / name
    if not (folder / FILLED).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    yield folder


async def search(count: int, users: int, *, durable: bool, kept: Path | None) -> None:
    """Ingest, then search the memories of one user; the contenders take turns in both."""
    with files(kept, f"{count}-{users}") as folder:
        async with Memory(folder / "ours.db", embedder=RealQuestions()) as memory:
            contenders = {kind: Contender(service) for kind, service in services(folder, memory).items()}
            if durable:
                del contenders["InMemory"]
            known = (folder / FILLED).exists()
            empty = [each for kind, each in contenders.items() if kind == "InMemory" or not known]
            if empty:
                await ingest(memory, empty, count, users)
            (folder / FILLED).touch()
            print(f"{count} events of {users} users: searching", flush=True)
            dice = random.Random(7)
            for contender in contenders.values():
                await contender.ask(["warm up"])
                contender.asked.clear()
            for _ in range(ROUNDS):
                asked = [sentence(dice, 8) for _ in range(ASKED)]
                for contender in contenders.values():
                    await contender.ask(asked)
    ours = contenders["ours"]
    for kind, each in contenders.items():
        p50 = 1e3 * statistics.median(each.asked)
        print(
            f"{count:7} events of {users:3} users, {kind:8}: search p50 {p50:8.2f} ms "
            f"({p50 / 1e3 / statistics.median(ours.asked):6.1f} x ours, {len(each.asked)} questions)",
            flush=True,
        )
    if not known:
        for kind, each in contenders.items():
            rate, share = count / each.ingesting, ours.ingesting / each.ingesting
            print(f"{kind:>42}: ingestion {rate:6.0f} events/s ({share:4.1f} x ours)")
        print(f"{'ours':>42}, until every vector is there: {count / ours.settling:6.0f} events/s", flush=True)


async def ingest(memory: Memory, contenders: Sequence[Contender], count: int, users: int) -> None:
    """One session a call, some calls of each contender in turn; ours gets the time its vectors take, too."""
    made = list(sessions(count, users))
    for start in range(0, len(made), CALLS):
        for contender in contenders:
            began = time.perf_counter()
            for session in made[start : start + CALLS]:
                await contender.service.add_session_to_memory(session)
            contender.ingesting += time.perf_counter() - began
            if contender is contenders[0]:
                await settled(memory)
                contender.settling += time.perf_counter() - began


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
                    await settled(memory)
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


async def settled(memory: Memory) -> None:
    """Return once every vector is there."""
    while any(  # noqa: ASYNC110  (nothing says when)
        stats.vectors_pending for stats in (await memory.operator().stats()).values()
    ):
        await asyncio.sleep(0.02)


async def share(service: BaseMemoryService, question: Question) -> float:
    found = (await service.search_memory(app_name=APP, user_id="user0", query=question.text)).memories[:FOUND]
    ids = {entry.custom_metadata.get("event_id", entry.id) for entry in found}
    return len(ids & question.evidence) / len(question.evidence)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("events", type=int, nargs="?", default=100_000)
    parser.add_argument("locomo", type=Path, nargs="?")
    parser.add_argument("--users", type=int, nargs="*", default=[100, 1], help="one run for each number of users")
    parser.add_argument("--durable", action="store_true", help="leave out `InMemoryMemoryService`")
    parser.add_argument("--files", type=Path, help="a folder to keep filled files in; what it has is only searched")
    given = parser.parse_args()
    for users in given.users:
        await search(given.events, users, durable=given.durable, kept=given.files)
    if given.locomo is not None:
        await recall(given.locomo)


if __name__ == "__main__":
    asyncio.run(main())
