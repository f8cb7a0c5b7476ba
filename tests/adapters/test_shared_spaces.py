"""Random grants through every framework: nobody finds, counts, changes or is told of what is not granted."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest
import pytest_asyncio
from frameworks import FRAMEWORKS, Framework, Grants, RefusedError, opened, own_container

from memory_core import BoundMemory, Draft, Memory, RecordNotFoundError, ScopeError
from memory_core.embedding.hashing import HashingEmbedder
from memory_spade.testing.xmpp import XmppServer

USERS, TEAMS = ("ann", "bob", "eve"), ("team:red", "team:blue")
ROUNDS = 4


@pytest_asyncio.fixture
async def owners(tmp_path: Path) -> AsyncIterator[dict[str, BoundMemory]]:
    with own_container():
        async with Memory(tmp_path / "memory.db", embedder=HashingEmbedder()) as memory:
            handles = {owner: memory.bind(app="demo", user=owner) for owner in (*USERS, *TEAMS)}
            for owner, handle in handles.items():
                await handle.add(Draft(f"The kettle of {owner} is green", kind="fact"))
            yield handles


async def texts(handle: BoundMemory) -> dict[str, str]:
    return {record.id: record.text for record in (await handle.list(limit=100)).records}


async def refusal(change: Awaitable[None]) -> str:
    """The answer of a framework to a change that is not granted; some delete what is not there without a word."""
    try:
        await change
    except (RefusedError, ScopeError, RecordNotFoundError) as error:
        return str(error)
    return ""


async def try_everything(
    framework: Framework, owners: dict[str, BoundMemory], user: str, rights: dict[str, str]
) -> None:
    """Find and change a memory of each owner; it works if and only if that is granted."""
    readable, writable = {user, *rights}, {user, *(team for team, right in rights.items() if right == "write")}
    visible = {id: text for owner in readable for id, text in (await texts(owners[owner])).items()}  # noqa: A001  (the record's own word)
    found = await framework.find("Which colour is the kettle?")
    assert {visible.get(id, id) for id in found} == set(visible.values())  # noqa: A001
    for owner, handle in owners.items():
        before = await texts(handle)
        id, changed = max(before), f"The kettle of {owner} is changed by {user}"  # noqa: A001
        if owner in writable:
            await framework.update(id, changed)
            assert await texts(handle) == {**before, id: changed}
        else:
            for change in (framework.update(id, changed), framework.delete(id)):
                told = await refusal(change)
                assert not any(text in told for text in before.values())
                assert ("for reading only" in told) == (owner in readable)
            assert await texts(handle) == before


@pytest.mark.process
@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_nobody_reaches_more_than_is_granted(
    owners: dict[str, BoundMemory], server: XmppServer, name: str
) -> None:
    draw = random.Random(name)
    for number in range(ROUNDS):
        user = draw.choice(USERS)
        rights = {team: right for team in TEAMS if (right := draw.choice(("", "read", "write")))}
        grants = Grants(
            {team.replace(":", " "): owners[team] for team in rights},
            [team.replace(":", " ") for team, right in rights.items() if right == "write"],
        )
        async with opened(name, owners[user], server, grants) as framework:
            await try_everything(framework, owners, user, rights)
            counts = {owner: len(await texts(handle)) for owner, handle in owners.items()}
            await framework.write(f"The kettle {number} of {user} is red")
            assert {owner: len(await texts(handle)) for owner, handle in owners.items()} == counts | {
                user: counts[user] + 1
            }
