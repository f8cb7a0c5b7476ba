"""Whatever a memory depends on may hang, drip, fail, answer rubbish or cancel. It costs the call that meets it: its
caller is released, nobody else waits, nothing that was acknowledged is lost, and the next call works again."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from memory_core import ChatModel, EmbeddingError, Memory, MemoryCoreError, StoreUnavailableError, Where
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.lifecycle import Manager, maintain
from memory_core.retrieval import reranking
from memory_core.storage.shared import embedding_batches
from tests.adapters.closes import slow_store
from tests.adapters.faults import callers, models
from tests.adapters.faults.callers import Asking, Saying, World
from tests.adapters.faults.parties import (
    ANN,
    FAULTS,
    TOM,
    Fault,
    FaultyEmbedder,
    FaultyOwners,
    FaultyReranker,
    FaultyStore,
)

pytestmark = pytest.mark.uncovered

SAID: Final = "Ann keeps bees"
KNOWN: Final = ("The bees of Ann sleep in winter", "Her bees like clover")
TEA: Final = "Tom drinks jasmine tea in the garden"
ABOUT_TEA: Final = "What does Tom drink in the garden?"
NEXT: Final = "Ann keeps hens"
BRIEF: Final = 0.3
LONG: Final = 2.0
"""Longer than an embedder may take for one text, as in production: a write outlasts what another one waits for."""
PATIENT: Final = 100.0
"""The deadline of those who meet no fault."""

SAYING: Final[Sequence[type[Saying]]] = (
    callers.Core,
    callers.Xaibo,
    callers.XaiboTurn,
    callers.XaiboHistory,
    callers.AdkService,
    callers.AdkPlugin,
    callers.AdkBank,
    callers.History,
    callers.Chain,
    callers.Agent,
    callers.AgentBank,
    callers.Node,
    callers.Mcp,
    callers.Spade,
)
NAMED: Final[Sequence[type[Asking]]] = (
    callers.AdkService,
    callers.AdkPlugin,
    callers.AdkTool,
    callers.Chain,
    callers.Agent,
    callers.Node,
    callers.Tool,
    callers.Retriever,
    callers.Mcp,
    callers.McpPrompt,
    callers.Spade,
)
"""The callers to whom a function of the application gives a memory."""
ASKING: Final[Sequence[type[Asking]]] = (callers.Core, callers.Xaibo, callers.XaiboTurn, *NAMED)
WAITING: Final = (callers.Core, callers.Xaibo)
"""The callers that wait as long as the store does, until the one who calls them gives up."""
GOING_ON: Final = (
    callers.AdkPlugin,
    callers.AdkTool,
    callers.AdkBank,
    callers.Agent,
    callers.AgentBank,
    callers.Tool,
    callers.Spade,
    callers.XaiboTurn,
)
"""The callers that hear of no fault: it costs them their memory alone."""
REMEMBERING: Final = (callers.AdkPlugin, callers.Agent)
"""The callers whose next turn stores what an earlier one could not."""
TWICE: Final = (
    callers.Xaibo,
    callers.XaiboTurn,
    callers.XaiboHistory,
    callers.AdkPlugin,
    callers.AdkBank,
    callers.AgentBank,
)
"""The callers that have no key for what is said, or say it in another turn, so that a repetition is another memory."""
CALLS: Final[Mapping[type[Any], int]] = {
    callers.AdkPlugin: 2,
    callers.AdkTool: 3,
    callers.AdkBank: 3,
    callers.Agent: 2,
    callers.AgentBank: 3,
    callers.XaiboTurn: 3,
}
"""The number of times that a turn calls the memory, if it is not once."""


def faulty(party: str, kind: str) -> Fault:
    """A fault of a party."""
    is_store = party.startswith("store")
    return Fault(kind, StoreUnavailableError("out of reach") if is_store else ConnectionError("out of reach"))


def matrix(parties: Sequence[str], who: Sequence[type[Any]], faults: Sequence[str] = FAULTS) -> list[Any]:
    """A cell for each party, caller and fault; in the short form each caller meets each party with one fault."""
    return [
        pytest.param(
            party,
            caller,
            fault,
            id=f"{party}-{caller.__name__}-{fault}",
            marks=() if (place + number + turn) % len(faults) == 0 else pytest.mark.torture,
        )
        for turn, party in enumerate(parties)
        for place, caller in enumerate(who)
        for number, fault in enumerate(faults)
    ]


MODELS: Final = [
    pytest.param(make, who, kind, id=f"{make.__name__}-{who.__name__}-{kind}")
    for make, who in (
        (models.of_langchain, callers.Chain),
        (models.of_adk, callers.AdkPlugin),
        (models.of_spade, callers.Spade),
        (models.of_xaibo, callers.XaiboTurn),
        (models.of_a_function, callers.Mcp),
        (models.of_a_blocking_function, callers.Xaibo),
    )
    for kind in FAULTS
]


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_store, "WRITE_SECONDS", 0.0)
    monkeypatch.setattr(embedding_batches, "LONGEST_CALL_SECONDS", 0.1)
    monkeypatch.setattr(reranking, "DEADLINE_SECONDS", 0.1)
    monkeypatch.setattr("memory_core.conversation.limits.BACKGROUND_SECONDS", LONG)
    monkeypatch.setattr("memory_core.conversation.limits.RETRY_SECONDS", 0.0)
    monkeypatch.setattr("memory_core.conversation.limits.RECALL_SECONDS", BRIEF)


@asynccontextmanager
async def world_of(party: str, fault: Fault, file: Path) -> AsyncIterator[World]:
    """A memory in which one party has a fault."""
    reranker = FaultyReranker(fault) if party == "reranker" else None
    if party.startswith("store"):
        memory = Memory(FaultyStore(file, fault, party.removeprefix("store ")), reranker=reranker)
    else:
        embedder = FaultyEmbedder(fault) if party == "embedder" else HashingEmbedder()
        memory = Memory(file, embedder=embedder, reranker=reranker)
    async with asyncio.timeout(PATIENT), memory:
        yield World(memory, FaultyOwners(fault) if party == "owner function" else None)


async def released(said: asyncio.Task[Any], caller: object) -> None:
    """Return when a caller goes on, while the fault lasts; it may have heard of it."""
    if isinstance(caller, WAITING):
        await asyncio.wait({said}, timeout=BRIEF)
        was_cancelled = said.cancel()  # the one who calls gives up
        await asyncio.wait({said})
        assert was_cancelled or not said.cancelled()
    else:
        await asyncio.wait({said})
        assert not said.cancelled()
    if isinstance(caller, GOING_ON):
        said.result()


def insist_on_one_log_record(caplog: pytest.LogCaptureFixture, caller: object) -> None:
    """Nothing is logged twice, and an error once for each call of the memory; how a late one ends is news."""
    ours = [record for record in caplog.records if record.name.startswith("memory_")]
    most = CALLS.get(type(caller), 1)
    assert max(Counter(record.getMessage() for record in ours).values(), default=0) <= most
    errors = [record.getMessage() for record in ours if record.levelno >= logging.ERROR]
    assert sum(not message.startswith("a late call") for message in errors) <= most
    assert "bees" not in caplog.text


async def stored(world: World, user: str, text: str) -> list[str]:
    """The records of a user's memory that have a text; a bank stores it in a step, and an answer may quote it."""
    return [record.text for record in await world.handle(user).list() if text in record.text]


async def until(works: Callable[[], Awaitable[object]]) -> None:
    """Return when something works again, which it does by itself."""
    while True:
        with suppress(MemoryCoreError):
            if await works():
                return
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("party", "who", "kind"), matrix(("store before a write", "store after a write", "embedder"), SAYING)
)
async def test_what_is_said(
    party: str, who: type[Saying], kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fault = faulty(party, kind)
    async with world_of(party, fault, tmp_path / "memory.db") as world:
        ann, tom = who(world, ANN, BRIEF), who(world, TOM, PATIENT)
        said = asyncio.create_task(ann.say(SAID))
        assert await asyncio.to_thread(fault.is_met.wait, 300)
        await tom.say(TEA)
        await until(lambda: stored(world, TOM, TEA))
        fault.are_others_served.set()
        await released(said, ann)
        insist_on_one_log_record(caplog, ann)
        fault.mend()

        async def is_said() -> list[str]:
            await ann.say(NEXT if isinstance(ann, REMEMBERING) and kind != "rubbish" else SAID)
            return await stored(world, ANN, SAID)

        await until(is_said)
        assert (await stored(world, ANN, SAID)).count(SAID) == 1 or isinstance(ann, TWICE)


@pytest.mark.parametrize(("party", "who", "kind"), matrix(("store in a search", "embedder", "reranker"), ASKING))
async def test_what_is_asked(
    party: str, who: type[Asking], kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await asked(party, who, faulty(party, kind), tmp_path / "memory.db", caplog)


@pytest.mark.parametrize(("party", "who", "kind"), matrix(("owner function",), NAMED))
async def test_who_asks(
    party: str, who: type[Asking], kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await asked(party, who, faulty(party, kind), tmp_path / "memory.db", caplog)


async def asked(party: str, who: type[Asking], fault: Fault, file: Path, caplog: pytest.LogCaptureFixture) -> None:
    kind, fault.kind = fault.kind, None
    async with world_of(party, fault, file) as world:
        await world.handle(ANN).add_many(KNOWN)
        await world.handle(TOM).add(TEA)
        ann, tom = who(world, ANN, BRIEF), who(world, TOM, PATIENT)

        async def is_answered() -> bool:
            return KNOWN[0] in await ann.ask("Where do bees sleep in winter?")

        await until(is_answered)
        caplog.clear()
        fault.kind = kind
        asking = asyncio.create_task(ann.ask("Where do bees sleep?"))
        assert await asyncio.to_thread(fault.is_met.wait, 300)
        assert TEA in await tom.ask(ABOUT_TEA)
        fault.are_others_served.set()
        await released(asking, ann)
        insist_on_one_log_record(caplog, ann)
        fault.mend()
        await until(is_answered)


async def test_a_question_that_the_embedder_does_not_answer_is_an_error_that_says_so(tmp_path: Path) -> None:
    async with world_of("embedder", faulty("embedder", "hang"), tmp_path / "memory.db") as world:
        await world.handle(ANN).add(TEA)
        with pytest.raises(EmbeddingError, match="did not answer within 1 s"):
            await world.handle(ANN).search("bees")


@pytest.mark.parametrize(("make", "who", "kind"), MODELS)
async def test_what_manages_a_memory(
    make: Callable[[Fault], ChatModel],
    who: type[Any],
    kind: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fault = faulty("model", kind)
    async with world_of("model", fault, tmp_path / "memory.db") as world:
        handle, tom = world.handle(ANN), who(world, TOM, PATIENT)
        await handle.remember([("user", "I keep bees")])
        manager = Manager(make(fault), timeout=BRIEF, attempts=1)
        maintaining = asyncio.create_task(maintain(handle, model=manager))
        assert await asyncio.to_thread(fault.is_met.wait, 300)
        await tom.say(TEA)
        await until(lambda: stored(world, TOM, TEA))
        assert TEA in await tom.ask(ABOUT_TEA)
        await handle.add(NEXT)  # nor do those whose memory it is
        fault.are_others_served.set()
        await asyncio.wait({maintaining})
        assert not maintaining.cancelled()
        insist_on_one_log_record(caplog, tom)
        fault.mend()
        await maintain(handle, model=replace(manager, timeout=PATIENT))
        assert [record.text for record in await handle.list(where=Where(kinds=["fact"]))].count(SAID) == 1
