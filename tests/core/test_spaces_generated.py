"""Random grants and operations of three users and two teams: nobody sees, counts or changes what is not granted."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from memory_core import (
    BoundMemory,
    Memory,
    MemoryRecord,
    Patch,
    RecallOptions,
    RecordNotFoundError,
    ScopeError,
)

USERS, TEAMS = ("ann", "bob", "eve"), ("team:red", "team:blue")
STEPS = 60
HOSTILE = 10_000


@dataclass
class World:
    """The records of each owner, beside the memory under test."""

    memory: Memory
    records: dict[str, dict[str, str]] = field(default_factory=lambda: {owner: {} for owner in (*USERS, *TEAMS)})
    """Texts by owner and id."""

    def handle(self, owner: str) -> BoundMemory:
        return self.memory.bind(app="world", user=owner)

    def stored(self, record: MemoryRecord) -> None:
        self.records[record.user][record.id] = record.text


def granted(draw: random.Random) -> dict[str, str]:
    """Each team by what is granted: nothing, reading or writing."""
    grants = {team: draw.choice(("", "read", "write")) for team in TEAMS}
    return {team: access for team, access in grants.items() if access} or {draw.choice(TEAMS): "read"}


async def add(world: World, owner: str, text: str, both: BoundMemory, *, is_own: bool, may_write: bool) -> None:
    if may_write:
        world.stored(await (both.add(text) if is_own else both.add(text, space=owner)))
    else:
        with pytest.raises(ScopeError):
            await both.add(text, space=owner)


async def act(world: World, draw: random.Random, user: str, grants: dict[str, str], both: BoundMemory) -> None:
    """One random write, which succeeds if and only if it is granted."""
    owner = draw.choice((*USERS, *TEAMS))
    may_read = owner == user or owner in grants
    may_write = owner == user or grants.get(owner) == "write"
    what = draw.choice(("add", "update", "delete", "supersede", "remember"))
    text = f"{owner} keeps kettle {draw.random()}"
    if what == "add":
        await add(world, owner, text, both, is_own=owner == user, may_write=may_write)
    elif what == "remember":
        for record in await both.remember([("user", text)]):
            assert record.user == user
            world.stored(record)
    elif world.records[owner]:
        id = draw.choice(sorted(world.records[owner]))  # noqa: A001  (the record's own word)

        async def change() -> MemoryRecord | None:
            if what == "delete":
                await both.delete(id)
                return None
            return await (both.update(id, Patch(text=text)) if what == "update" else both.supersede(id, text))

        if not may_write:
            with pytest.raises(ScopeError if may_read else RecordNotFoundError):
                await change()
            return
        changed = await change()
        if what != "update":
            del world.records[owner][id]
        if changed is not None:
            world.stored(changed)


async def look(world: World, user: str, grants: dict[str, str], both: BoundMemory) -> None:
    """Every read sees exactly what is granted."""
    visible = {id: text for owner in (user, *grants) for id, text in world.records[owner].items()}  # noqa: A001
    assert {record.id: record.text for record in (await both.list(limit=1_000)).records} == visible
    for mode in ("hybrid", "lexical", "substring"):
        found = await both.search("keeps kettle", limit=1_000, floor=False, mode=mode)
        assert {hit.record.id for hit in found} == set(visible)
    shown = {
        record.text for record in (await both.recall("kettle", RecallOptions(max_chars=100_000, floor=False))).records
    }
    assert shown <= set(visible.values())
    for owner, records in world.records.items():
        for id in list(records)[:3]:  # noqa: A001
            record = await both.get(id)
            assert (record is not None) == (owner == user or owner in grants)


@pytest.fixture
def new_memory() -> Memory:
    return Memory(":memory:")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_nobody_reaches_more_than_is_granted(new_memory: Memory, seed: int) -> None:
    draw = random.Random(seed)
    async with new_memory as memory:
        world = World(memory)
        for _ in range(STEPS):
            user, grants = draw.choice(USERS), granted(draw)
            spaces = {team: world.handle(team) for team in grants}
            writable = [team for team, access in grants.items() if access == "write"]
            both = world.handle(user).sharing(spaces, writable=writable)
            await act(world, draw, user, grants, both)
            await look(world, user, grants, both)
        await both.erase()
        world.records[user].clear()
        await look(world, user, grants, both)
        for owner, records in world.records.items():
            assert {record.id for record in (await world.handle(owner).list(limit=1_000)).records} == set(records)


async def test_no_label_of_a_model_reaches_a_space(memory_of_two_teams: BoundMemory) -> None:
    draw = random.Random(9)
    for _ in range(HOSTILE):
        label = draw.choice(("team:", "red", "../", "private ", "\0", "team:red\n", "*", "", "TEAM:BLUE", "%"))
        label += "".join(map(chr, draw.choices(range(32, 0x3000), k=draw.randrange(6))))
        if label not in ("private", "team:red"):
            with pytest.raises(ScopeError):
                await memory_of_two_teams.add("x", space=label)
    assert len((await memory_of_two_teams.list()).records) == 0


@pytest.fixture
def memory_of_two_teams() -> BoundMemory:
    memory = Memory(":memory:", embedder=None)
    red, blue = (memory.bind(app="world", user=team) for team in TEAMS)
    return memory.bind(app="world", user="ann").sharing({"team:red": red, "blue": blue}, writable=["team:red"])
