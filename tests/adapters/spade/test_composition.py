"""The arguments that the constructor accepts and refuses, and the agent classes that it fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spade.agent import Agent
from spade.message import Message
from spade_llm.agent import ChatAgent, CoordinatorAgent, LLMAgent, RetrievalAgent, llm_agent
from spade_llm.providers.base_provider import BaseLLMProvider
from spade_llm.tools import LLMTool

from memory_core import Memory, ScopeError
from memory_core.adapting import EDITING_TOOLS
from memory_spade import MemoryLLMAgent, MemoryMixin
from memory_spade.memory import AgentInteractionMemory
from memory_spade.memory.flags import Places, read_flags
from memory_spade.memory.place import DEFAULT_DIRECTORY, ENVIRONMENT, Place
from memory_spade.testing.backend import ListBackend
from memory_spade.testing.provider import ScriptedProvider

pytestmark = pytest.mark.usefixtures("container")

FILE = "bot_localhost_base_memory.db"


def databases(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.db")}


async def file_of(place: object, tmp_path: Path) -> str:
    """The file that a place makes in a directory."""
    assert isinstance(place, Place)
    before = databases(tmp_path)
    await place.open()
    await place.close()
    (made,) = databases(tmp_path) - before
    return made


def read(**flags: Any) -> Places:
    given: dict[str, Any] = {
        "interaction_memory": False,
        "agent_base_memory": False,
        "memory_path": None,
        "memory": None,
        **flags,
    }
    return read_flags("bot@localhost", **given)


@pytest.mark.parametrize("form", [(True, "own"), (True, Path("own")), [True, "own"]])
async def test_a_directory_in_the_flag_wins_over_all_others(
    form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ENVIRONMENT, "environment")
    notes, base = read(agent_base_memory=form, interaction_memory=True, memory_path="both")
    assert await file_of(base, tmp_path) == str(Path("own", FILE))
    assert isinstance(notes, AgentInteractionMemory)
    notes.add_information("c", "noted")
    assert (tmp_path / "both" / "bot_localhost_interactions.json").exists()


@pytest.mark.parametrize("form", [True, (True, None)])
async def test_the_environment_names_the_directory_when_no_argument_does(
    form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ENVIRONMENT, "environment")
    assert await file_of(read(agent_base_memory=form)[1], tmp_path) == str(Path("environment", FILE))
    monkeypatch.delenv(ENVIRONMENT)
    assert await file_of(read(agent_base_memory=form)[1], tmp_path) == str(Path(DEFAULT_DIRECTORY, FILE))


@pytest.mark.parametrize("form", [False, (False, "somewhere"), [False, None]])
def test_a_kind_that_is_switched_off_lives_nowhere(form: Any) -> None:
    assert read(agent_base_memory=form, interaction_memory=form) == (None, None)


async def test_memory_switches_on_both_kinds_or_the_one_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notes, base = read(memory="m.db")
    assert await file_of(base, tmp_path) == "m.db"
    assert notes is base
    no_notes, only_base = read(memory="base.db", agent_base_memory=True)
    assert (no_notes, await file_of(only_base, tmp_path)) == (None, "base.db")
    only_notes, no_base = read(memory="notes.db", interaction_memory=True)
    assert (await file_of(only_notes, tmp_path), no_base) == ("notes.db", None)


@pytest.mark.parametrize("value", [1, "yes", None, (True,), ("yes", "path"), (True, 5), (True, ""), (True, b"bytes")])
@pytest.mark.parametrize("flag", ["interaction_memory", "agent_base_memory"])
def test_a_flag_of_no_known_form_is_named_in_the_error(flag: str, value: Any) -> None:
    with pytest.raises(TypeError, match=flag):
        read(**{flag: value})


@pytest.mark.parametrize(
    "other", [{"interaction_memory": (True, "p")}, {"agent_base_memory": (True, "p")}, {"memory_path": "p"}]
)
def test_memory_together_with_a_directory_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"take the path 'p' out of {next(iter(other))}="):
        read(memory="m.db", **other)


@pytest.mark.parametrize("value", [5, object(), "", b"m.db"])
def test_a_memory_of_no_known_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="memory"):
        read(memory=value)


@pytest.mark.parametrize(
    ("keyword", "meant"),
    [("interaction_memry", "interaction_memory"), ("agent_base_memmory", "agent_base_memory"), ("toolz", "tools")],
)
async def test_a_misspelt_keyword_is_an_error_that_names_the_right_one(
    keyword: str, meant: str, provider: BaseLLMProvider
) -> None:
    """Stock swallows it and runs without a memory."""
    misspelt: dict[str, Any] = {keyword: True}
    with pytest.raises(TypeError, match=f"MemoryLLMAgent got an unknown keyword '{keyword}'; did you mean '{meant}'"):
        MemoryLLMAgent("bot@localhost", "pw", provider, **misspelt)
    unknown: dict[str, Any] = {"temperature": 0.5}
    with pytest.raises(TypeError, match=r"got an unknown keyword 'temperature'$"):
        MemoryLLMAgent("bot@localhost", "pw", provider, **unknown)


async def test_a_keyword_only_an_application_class_knows_is_let_through(provider: BaseLLMProvider) -> None:
    class Base(LLMAgent):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.colour = kwargs.pop("colour")
            super().__init__(*args, **kwargs)

    class Coloured(MemoryMixin, Base): ...

    assert Coloured("bot@localhost", "pw", provider, colour="red").colour == "red"
    with pytest.raises(TypeError, match="did you mean 'memory_path'"):
        Coloured("bot@localhost", "pw", provider, colour="red", memory_pth="x")


async def test_a_memory_flag_by_position_is_refused(provider: BaseLLMProvider) -> None:
    with pytest.raises(TypeError, match="pass interaction_memory to MemoryLLMAgent by keyword"):
        MemoryLLMAgent("bot@localhost", "pw", provider, *[None] * 12, True)  # noqa: FBT003


@pytest.mark.parametrize("owner", ["everybody", 5])
async def test_a_wrong_owner_is_named_too(owner: Any, provider: BaseLLMProvider) -> None:
    with pytest.raises(TypeError, match=f"owner must be .*{owner!r}"):
        MemoryLLMAgent("bot@localhost", "pw", provider, owner=owner)


@pytest.mark.parametrize("flags", [{"interaction_memory": True}, {"agent_base_memory": ListBackend()}])
async def test_what_cannot_tell_owners_apart_is_refused_for_memories_of_peers(
    flags: dict[str, Any], provider: BaseLLMProvider
) -> None:
    """The documented file of notes and a backend of one's own belong to one agent; peers would share them."""
    with pytest.raises(TypeError, match=f"{next(iter(flags))} cannot separate peers; .* memory="):
        MemoryLLMAgent("bot@localhost", "pw", provider, owner="peer", **flags)


async def test_a_peer_that_an_owner_function_does_not_know_has_no_memory(memory: Memory) -> None:
    class Plain(MemoryMixin, Agent): ...

    agent = Plain("plain@localhost", "pw", memory=memory, owner={"ann@localhost": "ann"}.__getitem__)
    assert (await agent.memory_of(Message(sender="Ann@localhost/desk"))).scope.user == "ann"
    with pytest.raises(ScopeError, match="the owner function has no user for 'bob@localhost'"):
        await agent.memory_of(Message(sender="bob@localhost"))


async def test_the_port_is_honoured_where_stock_forgets_it(provider: BaseLLMProvider) -> None:
    assert MemoryLLMAgent("bot@localhost", "pw", provider, port=5333).xmpp_port == 5333


@pytest.mark.parametrize("agent_class", [LLMAgent, CoordinatorAgent, ChatAgent, RetrievalAgent])
def test_the_mixin_after_the_agent_class_is_refused_when_the_class_is_made(agent_class: type[Agent]) -> None:
    with pytest.raises(TypeError, match=rf"write class Wrong\(MemoryMixin, {agent_class.__name__}\)"):
        type("Wrong", (agent_class, MemoryMixin), {})
    with pytest.raises(TypeError):
        type("Wrong", (Agent, MemoryMixin), {})


def test_the_mixin_without_an_agent_class_is_refused_when_an_agent_is_made() -> None:
    class Team(MemoryMixin): ...  # a mixin of the application, which may be made

    made: Any = Team
    with pytest.raises(TypeError, match=r"write class Team\(MemoryMixin, Agent\)"):
        made("team@localhost", "pw")


async def test_it_fits_every_agent_class(memory: Memory, provider: BaseLLMProvider) -> None:
    constructions: list[tuple[type[Agent], dict[str, Any]]] = [
        (LLMAgent, {"provider": provider}),
        (CoordinatorAgent, {"provider": provider, "subagent_ids": ["sub@localhost"]}),
        (ChatAgent, {"target_agent_jid": "bot@localhost"}),
        (RetrievalAgent, {"retriever": None}),
        (Agent, {}),
    ]
    for agent_class, arguments in constructions:
        mixed: Any = type("Mixed", (MemoryMixin, agent_class), {})
        agent = mixed(f"{agent_class.__name__}@localhost", "pw", memory=memory, **arguments)
        await agent.memory.add("it remembers")
        assert (await agent.memory.search("remembers"))[0].record.user == f"{agent_class.__name__.lower()}@localhost"


async def test_spade_llms_own_memory_is_never_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: Memory, provider: BaseLLMProvider
) -> None:
    monkeypatch.chdir(tmp_path / "..")
    before = sorted(Path.cwd().rglob("*"))
    agent = MemoryLLMAgent(
        "bot@localhost", "pw", provider, memory=memory, interaction_memory=True, agent_base_memory=True
    )
    assert agent.llm_behaviour.interaction_memory is None
    assert sorted(Path.cwd().rglob("*")) == before


def tool(name: str) -> LLMTool:
    return LLMTool(name, "a tool", {"type": "object", "properties": {}}, lambda: "done")


@pytest.mark.parametrize("own", [[], [tool("first")]])
async def test_tool_names_stay_unique_however_tools_are_added(
    own: list[LLMTool], memory: Memory, provider: BaseLLMProvider
) -> None:
    agent = MemoryLLMAgent("bot@localhost", "pw", provider, tools=own, memory=memory, memory_editing=True)
    late = tool("late")
    agent.add_tool(late)
    agent.add_tool(late)
    agent.register_tool(tool("late"))
    names = [known.name for known in agent.get_tools()]
    assert names == [*(["first"] if own else []), *MEMORY_TOOLS, "late"]
    assert [known.name for known in agent.llm_behaviour.get_tools()] == names


MEMORY_TOOLS = [
    "remember_interaction_info",
    "store_memory",
    "search_memories",
    "list_memories",
    *(tool.name for tool in EDITING_TOOLS),
]


async def test_tools_of_mcp_servers_are_offered_once(
    memory: Memory, provider: BaseLLMProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(servers: object) -> list[LLMTool]:
        return [tool("from_mcp"), tool("search_memories")]

    monkeypatch.setattr(llm_agent, "get_all_mcp_tools", found)  # spade_llm's client does not work with mcp 2
    agent = MemoryLLMAgent("bot@localhost", "pw", provider, memory=memory, mcp_servers=[object()])
    setup: Any = agent.setup
    await setup()
    assert [known.name for known in agent.llm_behaviour.get_tools()] == [*MEMORY_TOOLS[:4], "from_mcp"]


async def test_a_coordinators_tools_are_offered_once(memory: Memory, provider: BaseLLMProvider) -> None:
    class Team(MemoryMixin, CoordinatorAgent): ...

    agent = Team("boss@localhost", "pw", ["sub@localhost"], provider=provider, memory=memory)
    setup: Any = agent.setup
    await setup()
    names = [known.name for known in agent.llm_behaviour.get_tools()]
    assert len(names) == len(set(names))
    assert {"send_to_agent", "remember_interaction_info", "search_memories"} <= set(names)


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ({"interaction_memory": True}, MEMORY_TOOLS[:1]),
        ({"agent_base_memory": True}, MEMORY_TOOLS[1:4]),
        ({}, MEMORY_TOOLS[:4]),
    ],
)
async def test_each_flag_brings_its_own_tools(
    flags: dict[str, Any], names: list[str], memory: Memory, provider: BaseLLMProvider
) -> None:
    agent = MemoryLLMAgent("bot@localhost", "pw", provider, memory=memory, **flags)
    assert [known.name for known in agent.tools] == names


async def test_an_agent_without_flags_has_neither_tools_nor_memory(provider: BaseLLMProvider) -> None:
    agent = MemoryLLMAgent("bot@localhost", "pw", provider)
    assert agent.tools == []
    with pytest.raises(ScopeError, match="create it with agent_base_memory=True"):
        _ = agent.memory


async def test_a_tool_outside_of_a_conversation_answers_with_an_error(
    memory: Memory, provider: BaseLLMProvider
) -> None:
    agent = MemoryLLMAgent("bot@localhost", "pw", provider, memory=memory)
    for known in agent.tools:
        assert "no conversation is running" in await known.execute(information="x", content="x", category="fact")
    assert (await agent.memory.stats()).records == 0


async def test_the_agents_provider_stays_the_users_own(memory: Memory) -> None:
    own = ScriptedProvider(lambda request: "yes")
    agent = MemoryLLMAgent("bot@localhost", "pw", own, memory=memory)
    assert agent.provider is own
    wrapped: Any = agent.llm_behaviour.provider
    assert wrapped.requests == []


async def test_one_identity_whatever_the_case_and_resource_of_the_jid(
    memory: Memory, provider: BaseLLMProvider
) -> None:
    first = MemoryLLMAgent("Bot@Localhost/home", "pw", provider, memory=memory)
    second = MemoryLLMAgent("bot@localhost/work", "pw", provider, memory=memory)
    await first.memory.add("one and the same")
    assert (await second.memory.stats()).records == 1


DOCUMENTED_CATEGORY = ["fact", "pattern", "preference", "capability"]
DOCUMENTED_SCHEMAS = [
    {
        "name": "remember_interaction_info",
        "description": "Store important information for future reference in this conversation",
        "parameters": {
            "type": "object",
            "properties": {
                "information": {
                    "type": "string",
                    "description": "Important information to remember for this conversation",
                }
            },
            "required": ["information"],
        },
    },
    {
        "name": "store_memory",
        "description": "Store information in long-term memory with category classification",
        "parameters": {
            "type": "object",
            "properties": {
                "content": {"type": "string", "description": "Information content to store"},
                "category": {
                    "type": "string",
                    "enum": DOCUMENTED_CATEGORY,
                    "description": "Memory category for organization",
                },
                "context": {"type": "string", "description": "Additional context information (optional)"},
            },
            "required": ["content", "category"],
        },
    },
    {
        "name": "search_memories",
        "description": "Search through stored memories for relevant information",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Search query string"},
                "limit": {"type": "integer", "description": "Maximum number of results to return (default: 10)"},
                "category": {
                    "type": "string",
                    "enum": DOCUMENTED_CATEGORY,
                    "description": "Filter by memory category (optional)",
                },
            },
            "required": ["query"],
        },
    },
    {
        "name": "list_memories",
        "description": "List memories by category or view recent memories",
        "parameters": {
            "type": "object",
            "properties": {
                "category": {
                    "type": "string",
                    "enum": DOCUMENTED_CATEGORY,
                    "description": "Memory category to list (optional, lists recent if not specified)",
                },
                "limit": {"type": "integer", "description": "Maximum number of results to return (default: 10)"},
            },
            "required": [],
        },
    },
]


async def test_the_tool_schemas_are_the_documents(memory: Memory, provider: BaseLLMProvider) -> None:
    agent = MemoryLLMAgent("bot@localhost", "pw", provider, memory=memory)
    assert [known.to_dict() for known in agent.tools] == DOCUMENTED_SCHEMAS


async def test_an_agent_without_a_model_says_so_when_it_is_given_a_tool(memory: Memory) -> None:
    class Plain(MemoryMixin, Agent): ...

    with pytest.raises(TypeError, match="Plain has no model that could use the tool 'late'"):
        Plain("plain@localhost", "pw", memory=memory).add_tool(tool("late"))


async def test_a_tool_that_asks_people_is_bound_to_its_agent(memory: Memory, provider: BaseLLMProvider) -> None:
    class Asking(LLMTool):
        def set_agent(self, agent: Agent) -> None:
            self.agent = agent

    agent = MemoryLLMAgent("bot@localhost", "pw", provider, memory=memory)
    asking = Asking("ask", "asks", {"type": "object", "properties": {}}, lambda: "done")
    agent.add_tool(asking)
    assert asking.agent is agent
