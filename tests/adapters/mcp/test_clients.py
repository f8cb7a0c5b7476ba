"""Many clients at once, and clients that mean harm."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from calling import Caller, http_beside, http_server, in_process, over_http
from mcp.shared.exceptions import MCPError

from memory_core import BoundMemory, Memory
from memory_core.embedding.hashing import HashingEmbedder
from memory_mcp import StaticTokens

TOOLS = (
    *("memory_store", "memory_store_many", "memory_search", "memory_list", "memory_history"),
    *("memory_update", "memory_supersede", "memory_delete", "memory_recall", "memory_remember"),
)


async def work(caller: Caller, name: str, until: float) -> tuple[set[str], set[str]]:
    """Store, search, change and delete; the ids that must be there then, and those that must not."""
    kept, gone = set[str](), set[str]()
    for number in itertools.count():
        if time.monotonic() > until and number > 3:
            return kept, gone
        memory_id = await caller.store(f"{name} saw bird number {number}", user=name)
        kept.add(memory_id)
        assert await caller.found(f"bird {number}", filter={"user": name}, nResults=1)
        if number % 3 == 1:
            await caller.ok("memory_update", id=memory_id, content=f"{name} saw fish number {number}")
        if number % 3 == 2:
            await caller.ok("memory_delete", id=memory_id)
            kept.remove(memory_id)
            gone.add(memory_id)
    raise AssertionError


async def crowd(memory: Memory, clients: int, seconds: float) -> None:
    """Clients of two users on one server; nothing may be lost and nothing come back."""
    tokens = {user: f"token-of-{user}-for-the-tests" for user in ("ann", "bob")}
    users = ["ann", "bob"] * (clients // 2)
    until = time.monotonic() + seconds

    async def client(number: int, user: str, url: str) -> tuple[set[str], set[str]]:
        async with over_http(url, tokens[user]) as caller:
            return await work(caller, f"client{number}", until)

    async with http_beside(memory.bind(app="demo"), StaticTokens(tokens)) as url:
        outcomes = await asyncio.gather(*(client(number, user, url) for number, user in enumerate(users)))
    for user in tokens:
        wanted = [outcome for outcome, owner in zip(outcomes, users, strict=True) if owner == user]
        kept = set[str]().union(*(one for one, _ in wanted))
        handle, stored, cursor = memory.bind(app="demo", user=user), set[str](), None
        while True:
            page = await handle.list(limit=10_000, cursor=cursor)
            stored |= {record.id for record in page.records}
            if (cursor := page.cursor) is None:
                break
        assert stored == kept


@pytest.mark.slow
async def test_twelve_clients_at_once_lose_nothing(memory: Memory) -> None:
    await crowd(memory, clients=12, seconds=0)


@pytest.mark.torture
async def test_fifty_clients_for_a_minute_lose_nothing(memory: Memory) -> None:
    await crowd(memory, clients=50, seconds=60)


HOSTILE: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 10**400, 1e308, "", " ", "\0", "\u202e", "💥" * 100, "x" * 30_000, "*", "%", "_"),
    *("' OR 1=1 --", '" NEAR("', "NOT AND OR", "(((((", "../../etc/passwd", "{{7*7}}", "${jndi:ldap://x}", "bob"),
    *([], [[]], ["x"] * 1_000, {}, {"$ne": None}, {"user": "bob"}, {"app": "demo", "user": "bob"}, {"type": {}}),
    *({"__class__": "Scope"}, {"content": "x"}, {"a": {"b": {"c": [None] * 50}}}, "memory://memories/bobs-secret"),
    *("bobs-secret", {"id": "bobs-secret"}, "skynet_memories", 1.5, "nan", "Infinity", "2026-01-01", "null", "[]"),
)
ARGUMENTS = (
    *("content", "metadata", "collection", "id", "memories", "query", "nResults", "filter", "ranking", "order"),
    *(
        "messages",
        "maxChars",
        "session",
        "limit",
        "cursor",
        "user",
        "app",
        "owner",
        "_scope",
        "self",
        "context",
        "__proto__",
    ),
)
FIELDS = ("type", "user", "importance", "confidence", "emotion", "tags", "minImportance", "since", "until", "app")


def hostile_calls(count: int, seed: int = 16) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls of the tools with arguments that no honest client sends, mixed with some that one might."""
    dice = random.Random(seed)
    honest: dict[str, Any] = {
        "content": "Ann rows",
        "metadata": {"type": "fact"},
        "query": "secret",
        "memories": [{"content": "Ann rows", "metadata": {"type": "fact"}}],
        "filter": {"user": "bob"},
        "id": "bobs-secret",
        "messages": [{"role": "user", "content": "secret"}],
    }

    def value(name: str) -> Any:
        if name in honest and dice.random() < 0.4:
            return honest[name]
        if name in {"metadata", "filter"} and dice.random() < 0.6:
            return {field: dice.choice(HOSTILE) for field in dice.sample(FIELDS, dice.randint(1, 4))}
        return dice.choice(HOSTILE)

    for _ in range(count):
        yield dice.choice(TOOLS), {name: value(name) for name in dice.sample(ARGUMENTS, dice.randint(0, 6))}


async def attack(memory: Memory, caplog: pytest.LogCaptureFixture, count: int) -> None:
    """Every call is answered with a sentence; nothing of Bob is read or changed."""
    bob = memory.bind(app="demo", user="bob")
    async with in_process(bob) as call:
        await call.ok("memory_store", id="bobs-secret", content="Bob's code is 4711", metadata={"type": "fact"})
    before = await bob.list()
    async with in_process(memory.bind(app="demo", user="ann")) as call:
        for tool, arguments in hostile_calls(count):
            try:
                result = await call.client.call_tool(tool, arguments)
            except (MCPError, ValueError) as refusal:  # the client itself may refuse to send it
                said = str(refusal)
            else:
                said = result.model_dump_json()
                assert not (result.is_error and result.structured_content), (tool, arguments)
            assert "4711" not in said, (tool, arguments)
            assert "Traceback" not in said, (tool, arguments)
            assert not said.endswith(f"Error executing tool {tool}"), (tool, arguments)
        assert await call.ok("memory_list", collection="*")
    assert await bob.list() == before
    assert not [record for record in caplog.records if record.exc_info], "something crashed"


async def test_hostile_arguments_are_answered_with_sentences(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    await attack(memory, caplog, 500)


@pytest.mark.torture
async def test_ten_thousand_hostile_arguments_are_answered_with_sentences(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    await attack(memory, caplog, 10_000)


async def test_hostile_resources_and_prompts_are_refused(memory: Memory, ann: BoundMemory) -> None:
    bob = memory.bind(app="demo", user="bob")
    await bob.add("Bob's code is 4711")
    secret = (await bob.list()).records[0].id
    async with in_process(ann) as call:
        for end in (secret, f"../{secret}", f"%2e%2e%2f{secret}", f"{secret}?user=bob", "", "%00", "a" * 5_000, "💥"):
            for folder in ("memories", "collections"):
                with pytest.raises((MCPError, ValueError)):
                    await call.client.read_resource(f"memory://{folder}/{end}")
        for topic in HOSTILE:
            try:
                primed = str(await call.client.get_prompt("what_is_known", {"topic": topic}))
            except (MCPError, ValueError):
                continue
            assert "4711" not in primed


LONGEST: dict[str, Any] = {
    "query": ("What did Ann say about the spare key of the mill on the river? " * 40)[:2_000],
    "nResults": 50,
    "ranking": "relevance",
    "filter": {
        "type": "fact",
        "user": "u" * 200,
        "emotion": "concern",
        "minImportance": 0.1,
        "minConfidence": 0.1,
        "tags": [f"{n}".rjust(200, "t") for n in range(32)],
        "since": "2000-01-01T00:00:00Z",
        "until": "2100-01-01T00:00:00Z",
    },
}


@pytest.mark.process
@pytest.mark.torture
async def test_a_search_beside_a_client_with_the_longest_queries_takes_less_than_50_ms(tmp_path: Path) -> None:
    """The 99th percentile, with the default embedder; for a machine that does nothing else."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(http_server(tmp_path / "default.db", "--user", "ann"))
        quick, slow = [await stack.enter_async_context(over_http(url)) for _ in range(2)]
        for start in range(0, 1_000, 100):
            batch = [{"content": f"Ann saw bird {n}", "metadata": {"type": "fact"}} for n in range(start, start + 100)]
            await quick.ok("memory_store_many", memories=batch)

        async def keep_asking() -> None:
            while True:
                await slow.ok("memory_search", **LONGEST)

        asking = asyncio.create_task(keep_asking())
        seconds: list[float] = []
        for number in range(500):
            begun = time.perf_counter()
            await quick.found(f"Which bird is number {number}?")
            seconds.append(time.perf_counter() - begun)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert sorted(seconds)[int(len(seconds) * 0.99)] < 0.050


async def test_the_longest_allowed_search_is_answered_and_a_longer_one_refused(ann: BoundMemory) -> None:
    async with in_process(ann) as call:
        assert await call.found(**LONGEST) == []
        longer = {**LONGEST, "query": LONGEST["query"] + "?"}
        assert "at most 2000 characters" in await call.refused("memory_search", **longer)


async def test_two_memories_of_one_file_serve_clients_side_by_side(tmp_path: Path) -> None:
    db = tmp_path / "shared.db"
    async with Memory(db, embedder=HashingEmbedder()) as one, Memory(db, embedder=HashingEmbedder()) as two:
        handles = [memory.bind(app="demo", user="ann") for memory in (one, two)]
        async with in_process(handles[0]) as here, in_process(handles[1]) as there:
            said = [(caller, f"fact {n} of {place}") for n in range(50) for place, caller in enumerate((here, there))]
            await asyncio.gather(*(caller.store(text) for caller, text in said))
            assert (await here.ok("memory_list", limit=50))["count"] == 50
            assert (await handles[1].stats()).records == 100
            await asyncio.gather(*(caller.store("the same fact") for caller in (here, there)))
            assert (await handles[1].stats()).records == 101
