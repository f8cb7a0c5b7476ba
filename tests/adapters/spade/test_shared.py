"""Agents that share spaces: each reads its own memories and what is granted to it, labelled, and nothing else."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from spade.agent import Agent

from memory_core import BoundMemory, Draft, Memory, Patch, RecordNotFoundError, ScopeError
from memory_spade import MemoryBehaviour, MemoryLLMAgent, MemoryMixin
from memory_spade.testing.backend import ListBackend
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from memory_spade.testing.xmpp import XmppServer
from tests.adapters.spade.saying import ON_ONE_SERVER, Conversation, Jid, Start, message, say, until

pytestmark = pytest.mark.usefixtures("container")

AGENTS, TEAMS = ("ann", "bob", "eve"), ("red", "blue")


class Plain(MemoryMixin, Agent): ...


@pytest.fixture
def board(memory: Memory) -> BoundMemory:
    return memory.bind(app="mas", user="team:board")


def example() -> ModuleType:
    path = Path(__file__).parents[3] / "examples" / "spade_blackboard.py"
    spec = importlib.util.spec_from_file_location("spade_blackboard", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@ON_ONE_SERVER
async def test_in_a_contract_net_agents_use_what_others_learnt_and_do_not_see_what_is_private(
    server: XmppServer, container: None, capsys: pytest.CaptureFixture[str]
) -> None:
    await example().two_contracts(server)
    lines = capsys.readouterr().out.splitlines()
    first, second, own, managers = (
        lines[start + 1 : end] for start, end in zip([0, 5, 10, 13], [5, 10, 13, 15], strict=True)
    )
    assert all("(crane: large)" in line for line in first[:3])
    assert [line for line in second if "crane: small, as berta@localhost says on the board" in line] == [
        second[0],
        second[2],
    ]
    assert "  [private] anton@localhost: My lowest price is 35 euros" in own
    lesson = "  [board] berta@localhost: Pier four carries five tons only: come with the small crane"
    assert lesson in own
    assert managers == [lesson]
    assert not [line for line in lines if "lowest price is 30" in line or "lowest price is 40" in line]


def granted(draw: random.Random) -> dict[str, str]:
    return {team: access for team in TEAMS if (access := draw.choice(("", "read", "write")))}


@pytest.mark.parametrize("seed", range(2))
async def test_with_random_grants_nobody_reaches_more_than_is_granted(memory: Memory, seed: int) -> None:
    draw = random.Random(seed)
    teams = {team: memory.bind(app="mas", user=f"team:{team}") for team in TEAMS}
    agents = {name: Plain(f"{name}@localhost", "pw", memory=memory) for name in AGENTS}
    stored: dict[str, dict[str, str]] = {owner: {} for owner in (*AGENTS, *TEAMS)}
    for number in range(30):
        name, grants = draw.choice(AGENTS), granted(draw)
        agent = agents[name]
        spaces = {team: teams[team] for team in grants}
        agent.use(memory.bind().sharing(spaces, writable=[team for team in grants if grants[team] == "write"]))
        record = await agent.memory.add(f"kettle {number}")
        stored[name][record.id] = record.text
        for team in TEAMS:
            if grants.get(team) == "write":
                record = await agent.memory.add(f"kettle {number}", space=team)
                stored[team][record.id] = record.text
            else:
                with pytest.raises(ScopeError):
                    await agent.memory.add("kettle", space=team)
        for owner, records in stored.items():
            for id in list(records)[-1:]:  # noqa: A001  (the record's own word)
                memories: Any = agent.home.base(None)
                is_own = owner == name
                if is_own or grants.get(owner) == "write":
                    await memories.update(id, Patch(confidence=0.5))
                else:
                    with pytest.raises(ScopeError if owner in grants else RecordNotFoundError):
                        await memories.delete(id)
        visible = {id for owner in (name, *grants) for id in stored[owner]}  # noqa: A001
        memories = agent.home.base(None)
        assert {each.id for each in (await memories.list(limit=1_000)).records} == visible
        assert {hit.record.id for hit in await memories.search("kettle", limit=1_000, floor=False)} == visible
        assert {each.id for each in (await agent.memory.own.list(limit=1_000)).records} == set(stored[name])


def show_or_list(request: Request) -> str | ToolCall:
    """LIST and SEARCH show what the tools say, STORE stores on the board; anything else shows the prompt."""
    if request.results:
        return request.results[-1]
    verb, _, rest = request.said.partition(" ")
    if verb == "STORE":
        space, _, content = rest.partition(": ")
        return ToolCall("store_memory", {"content": content, "category": "fact", "space": space})
    if verb == "SEARCH":
        return ToolCall("search_memories", {"query": rest})
    return ToolCall("list_memories") if verb == "LIST" else request.system or "nothing"


async def test_prompt_and_tools_show_where_a_memory_is_from_until_the_grant_is_withdrawn(
    memory: Memory, board: BoundMemory
) -> None:
    await board.add(Draft("The door code is 4711", author="bob@localhost"))
    await memory.bind(app="mas", user="team:other").add("The door code is 9999")
    sharing = memory.bind().sharing({"board": board})
    agent = MemoryLLMAgent("ann@localhost", "pw", ScriptedProvider(show_or_list), memory=sharing)
    await agent.memory.add("The door code of my house is 1234")
    talk = Conversation(agent)

    shown = await talk.say("What is the door code?")
    assert '[board] "bob@localhost": "The door code is 4711"' in shown
    for said in ("SEARCH door code", "LIST"):
        answer = await talk.say(said)
        assert "4711" in answer
        assert "1234" in answer
        assert "9999" not in answer
    agent.use(memory.bind())
    for said in ("What is the door code?", "SEARCH door code", "LIST"):
        answer = await talk.say(said)
        assert "1234" in answer
        assert "4711" not in answer
    assert (await board.list()).records[0].access_count == 0  # reads of others' memories are not counted by the reader


async def test_the_model_chooses_among_the_writable_spaces_and_no_label_of_its_own_reaches_one(
    memory: Memory, board: BoundMemory
) -> None:
    rules = memory.bind(app="mas", user="team:rules")
    provider = ScriptedProvider(show_or_list)
    agent = MemoryLLMAgent("ann@localhost", "pw", provider, memory=memory)
    talk = Conversation(agent)

    async def offered(said: str) -> tuple[str, Any]:
        answer = await talk.say(said)
        properties = provider.requests[-1].tools["store_memory"]["properties"]
        return answer, properties.get("space", {}).get("enum")

    spaces = {"board": board, "rules": rules}
    assert (await offered("STORE board: no space is granted"))[1] is None
    agent.use(memory.bind().sharing(spaces))
    assert (await offered("STORE board: reading is granted"))[1] is None
    agent.use(memory.bind().sharing(spaces, writable=["board"]))
    assert await offered("hello") == ("nothing", ["private", "board"])
    assert "Stored fact in board with ID" in (await offered("STORE board: The crane is green"))[0]
    assert "in board" not in (await offered("STORE private: My crane is red"))[0]
    for label in ("rules", "team:rules", "team:board", "*", "../board", "board\0", "board rules", "Private board"):
        assert "'space' must be one of private, board" in (await offered(f"STORE {label}: hostile"))[0]
    agent.use(memory.bind())
    assert (await offered("STORE board: withdrawn"))[1] is None
    assert [(r.text, r.author, r.agent) for r in (await board.list()).records] == [
        ("The crane is green", "ann@localhost", "ann@localhost")
    ]
    assert not (await rules.list()).records
    own = {record.text for record in (await agent.memory.list(limit=100)).records}
    assert own == {"My crane is red"}


async def test_a_grant_that_is_withdrawn_during_an_answer_is_gone_from_its_next_prompt(
    memory: Memory, board: BoundMemory
) -> None:
    await board.add("The door code is 4711")

    def script(request: Request) -> str | ToolCall:
        if not request.results:
            agent.use(memory.bind())
            return ToolCall("list_memories")
        return request.results[-1]

    provider = ScriptedProvider(script)
    agent = MemoryLLMAgent("ann@localhost", "pw", provider, memory=memory.bind().sharing({"board": board}))
    assert "4711" not in await Conversation(agent).say("What is the door code?")
    before, after = (request.system for request in provider.requests)
    assert "4711" in before
    assert "4711" not in after


async def test_a_grant_is_stored_nowhere(tmp_path: Path) -> None:
    """So that another process, here another `Memory` of the file, has only what its own code grants."""
    async with Memory(tmp_path / "m.db", embedder=None) as one, Memory(tmp_path / "m.db", embedder=None) as other:
        board = one.bind(app="mas", user="team:board")
        ann = Plain("ann@localhost", "pw", memory=one.bind().sharing({"board": board}, writable=["board"]))
        await ann.memory.add("The door code is 4711", space="board")
        elsewhere = Plain("ann@localhost", "pw", memory=other)
        assert not (await elsewhere.memory.list()).records
        with pytest.raises(ScopeError, match="of another Memory"):
            other.bind().sharing({"board": board})
        for wrong in (one.bind().sharing({"board": board}), other.bind(app="mas"), other.bind(user="ann@localhost")):
            with pytest.raises(ScopeError, match="only by another handle of the same scope"):
                elsewhere.use(wrong)


@ON_ONE_SERVER
async def test_a_message_stays_private(start: Start, jid: Jid, memory: Memory, board: BoundMemory) -> None:
    scribe = Plain(jid("scribe"), "pw", memory=memory.bind().sharing({"board": board}, writable=["board"]))
    listening = MemoryBehaviour()
    scribe.add_behaviour(listening)
    ann = Agent(jid("ann"), "pw")
    await start(scribe, ann)
    await say(ann, message(jid("scribe"), "Between you and me: the crane is broken", performative="inform"))
    await until(scribe.memory.own, 1)
    assert not (await board.list()).records
    await board.add("The crane is green")
    block = str(await listening.recall(message(jid("scribe"), "What is with the crane?")))
    assert "[board]" in block
    assert "broken" in block
    assert len((await scribe.memory.list()).records) == 2


async def test_memories_of_peers_are_read_beside_the_spaces(memory: Memory, board: BoundMemory) -> None:
    await board.add("The crane is green")
    agent = Plain("bot@localhost", "pw", memory=memory.bind().sharing({"board": board}), owner="peer")
    ann = message("bot@localhost", "x")
    ann.sender = "ann@localhost/phone"
    await (await agent.memory_of(ann)).add("My crane is red")
    assert len((await (await agent.memory_of(ann)).list()).records) == 2
    ann.sender = "bob@localhost"
    assert [r.text for r in (await (await agent.memory_of(ann)).list()).records] == ["The crane is green"]


async def test_the_documented_memories_are_the_agents_own(memory: Memory, board: BoundMemory) -> None:
    agent = Plain("ann@localhost", "pw", memory=memory.bind().sharing({"board": board}, writable=["board"]))
    await board.add("The crane is green")
    await agent.agent_base_memory.store_memory("My crane is red", "fact")
    assert [entry.content for entry in await agent.agent_base_memory.get_recent_memories()] == ["My crane is red"]
    assert (await board.stats()).records == 1


async def test_a_space_of_the_agents_own_is_refused_when_the_agent_is_made(memory: Memory, board: BoundMemory) -> None:
    mine = memory.bind().sharing({"me": memory.bind(user="ann@localhost")})
    with pytest.raises(ScopeError, match="has the owner of another space"):
        Plain("ann@localhost", "pw", memory=mine)
    agent = Plain("ann@localhost", "pw", memory=memory)
    with pytest.raises(ScopeError, match="has the owner of another space"):
        agent.use(mine)
    for place in ({}, {"memory": ":memory:"}, {"agent_base_memory": ListBackend()}):
        given: dict[str, Any] = place
        with pytest.raises(ScopeError, match="only by another handle"):
            Plain("ann@localhost", "pw", **given).use(memory.bind())
