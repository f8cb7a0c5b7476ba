"""The spaces of a caller: the configuration of the server names them, and never an argument."""

from __future__ import annotations

import asyncio
import io
import json
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from calling import TOKENS, Caller, http_beside, http_server, in_process, over_http, token_file

from memory_core import BoundMemory, Draft, Memory, ScopeError
from memory_mcp import StaticTokens, memory_server
from memory_mcp.__main__ import main

OWN, TEAM, WIKI, OTHERS = "My kettle is blue", "Our kettle is red", "A kettle boils water", "Bob's kettle is green"
HOSTILE = 1_000


@pytest.fixture
async def team(memory: Memory) -> BoundMemory:
    for user, text in (("ann", OWN), ("team", TEAM), ("wiki", WIKI), ("bob", OTHERS)):
        await memory.bind(app="demo", user=user).add(Draft(text, kind="fact", collection="skynet_memories"))
    return memory.bind(app="demo", user="team")


@pytest.fixture
def both(memory: Memory, ann: BoundMemory, team: BoundMemory) -> BoundMemory:
    return ann.sharing({"team": team, "wiki": memory.bind(app="demo", user="wiki")}, writable=["team"])


async def seen(caller: Caller) -> dict[str, str | None]:
    """The memories that a caller can list, each with its label."""
    return {one["content"]: one.get("space") for one in (await caller.ok("memory_list", limit=50))["memories"]}


async def test_all_reads_show_what_is_shared_and_whose_it_is(both: BoundMemory) -> None:
    async with in_process(both) as caller:
        assert await seen(caller) == {OWN: None, TEAM: "team", WIKI: "wiki"}
        found = (await caller.ok("memory_search", query="kettle", ranking="relevance"))["results"]
        assert {one["content"]: one.get("space") for one in found} == {OWN: None, TEAM: "team", WIKI: "wiki"}
        assert "shared in wiki" in await caller.text("memory_search", query="kettle")
        block = (await caller.ok("memory_recall", query="Which colour is the kettle?"))["block"]
        assert f'[team] "{TEAM}"' in block
        ids = {one["content"]: one["id"] for one in found}
        assert len((await caller.ok("memory_history", id=ids[WIKI]))["versions"]) == 1
        (resource,) = (await caller.client.read_resource(f"memory://memories/{ids[TEAM]}")).contents
        assert '"space": "team"' in getattr(resource, "text", "")
        assert OTHERS not in block + str(await seen(caller))


async def test_a_model_may_store_in_a_writable_space_and_in_no_other(both: BoundMemory, team: BoundMemory) -> None:
    fact = {"type": "fact", "importance": 0.9}
    async with in_process(both) as caller:
        (tool,) = [tool for tool in (await caller.client.list_tools()).tools if tool.name == "memory_store"]
        assert tool.input_schema["properties"]["space"]["enum"] == ["private", "team"]
        shared = await caller.ok("memory_store", content="Tea at four", metadata=fact, space="team")
        assert (shared["space"], shared["collection"], shared["metadata"]["importance"]) == (
            "team",
            "skynet_memories",
            0.9,
        )
        again = await caller.ok("memory_store", content="Tea at five", metadata=fact, space="team", id=shared["id"])
        assert again["id"] == shared["id"]
        private = await caller.ok("memory_store", content="I like tea", metadata=fact, space="private")
        assert "space" not in private
        refused = await caller.refused("memory_store", content="x", metadata=fact, space="team", id=private["id"])
        assert "outside the space" in refused
        assert "may not be written to" in await caller.refused("memory_store", content="x", metadata=fact, space="wiki")
        wiki = next(one["id"] for one in (await caller.ok("memory_list"))["memories"] if one["content"] == WIKI)
        assert "for reading only" in await caller.refused("memory_update", id=wiki, content="mine")
        assert "for reading only" in await caller.refused("memory_delete", id=wiki)
        assert "for reading only" in await caller.refused("memory_supersede", id=wiki, content="mine")
        await caller.ok("memory_update", id=shared["id"], content="Tea at six")
        assert await seen(caller) == {OWN: None, TEAM: "team", WIKI: "wiki", "Tea at six": "team", "I like tea": None}
    assert {record.text for record in (await team.list()).records} == {TEAM, "Tea at six"}


async def test_without_a_writable_space_there_is_no_such_argument(memory: Memory, ann: BoundMemory) -> None:
    for served in (ann, ann.sharing({"wiki": memory.bind(app="demo", user="wiki")})):
        async with in_process(served) as caller:
            refused = await caller.refused("memory_store", content="x", metadata={"type": "fact"}, space="wiki")
            assert "space 'wiki'" in refused


async def tries_all(both: BoundMemory, many: int) -> None:
    draw = random.Random(23)
    before = len((await both.list()).records)
    bases = ("wiki", "bob", "Team", "team ", "private/team", "te\u200bam", "*", "../team", "demo:team", "")
    async with in_process(both) as caller:
        for _ in range(many):
            label = draw.choice(bases) + "".join(map(chr, draw.choices(range(33, 0x3000), k=2)))
            await caller.refused("memory_store", content="x", metadata={"type": "fact"}, space=label)
    assert len((await both.list()).records) == before


@pytest.mark.slow
async def test_no_hostile_label_reaches_a_space(both: BoundMemory) -> None:
    await tries_all(both, HOSTILE)


@pytest.mark.torture
async def test_none_of_ten_thousand_labels_reaches_a_space(both: BoundMemory) -> None:
    await tries_all(both, 10 * HOSTILE)


async def test_each_token_has_its_own_grants_and_a_withdrawn_one_is_gone_at_once(
    memory: Memory, team: BoundMemory
) -> None:
    members = {"ann"}

    def shares(user: str) -> BoundMemory:
        own = memory.bind(app="demo", user=user)
        return own.sharing({"team": team}, writable=["team"]) if user in members else own

    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(http_beside(shares, StaticTokens(TOKENS)))
        ann, bob = [await stack.enter_async_context(over_http(url, TOKENS[user])) for user in ("ann", "bob")]
        assert await seen(ann) == {OWN: None, TEAM: "team"}
        assert await seen(bob) == {OTHERS: None}
        tea = {"content": "Tea at four", "metadata": {"type": "fact"}, "space": "team"}
        await ann.ok("memory_store", **tea)
        assert "nothing is shared" in await bob.refused("memory_store", **tea)
        members.clear()
        assert await seen(ann) == {OWN: None}
        assert "nothing is shared" in await ann.refused("memory_store", **tea)
        members.add("bob")
        assert await seen(bob) == {OTHERS: None, TEAM: "team", "Tea at four": "team"}


@pytest.mark.process
async def test_the_command_line_shares_for_reading_or_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "memory.db"
    async with Memory(file) as memory:
        for user, text in (("bob", OTHERS), ("team", TEAM), ("wiki", WIKI)):
            await memory.bind(app="demo", user=user).add(Draft(text, kind="fact", collection="skynet_memories"))
    shares, fact = ("--share", "team=team:write", "--share", "wiki=wiki"), {"type": "fact"}
    tokens = ("--tokens", str(token_file(tmp_path)))
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(http_server(file, *tokens, *shares, "--user", "bob"))
        ann, bob = [await stack.enter_async_context(over_http(url, TOKENS[user])) for user in ("ann", "bob")]
        assert "belongs to user 'bob'" in await ann.refused("memory_list")
        await bob.ok("memory_store", content="Tea at four", metadata=fact, space="team")
        assert await seen(bob) == {OTHERS: None, TEAM: "team", WIKI: "wiki", "Tea at four": "team"}
        assert "may not be" in await bob.refused("memory_store", content="x", metadata=fact, space="wiki")
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"prompt": "When is tea?"})))
    hook = ["hook", "--file", str(file), "--app", "demo", "--user", "ann"]
    await asyncio.to_thread(main, [*hook, "--share", "team=team"])
    assert '[team] "Tea at four"' in capsys.readouterr().out
    for wrong in ("team", "=team", "team=:write"):
        with pytest.raises(SystemExit):
            main([*hook, "--share", wrong])


def test_a_function_needs_tokens_and_gives_each_user_their_own_memory(memory: Memory, both: BoundMemory) -> None:
    with pytest.raises(ScopeError, match="no owner"):
        memory_server(lambda user: memory.bind(user=user))
