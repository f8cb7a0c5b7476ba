"""Private and shared memories in chains, agents, tools and retrievers."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from memory_core import BoundMemory, Draft, InvalidInputError, Memory, RecallOptions, ScopeError, run_sync
from memory_langchain import MemoryMiddleware, MemoryRetriever, memory_tools, recall_node, with_memory
from memory_langchain.testing import ScriptedChatModel

ALL = RecallOptions(floor=False)
OWN, TEAM, OTHERS = "My kettle is blue", "The team's kettle is red", "Bob's kettle is green"
HOSTILE = 1_000


@dataclass
class Context:
    user_id: str
    project: str | None = None


@pytest.fixture
def team(memory: Memory) -> BoundMemory:
    handle = memory.bind(app="demo", user="team:red")
    run_sync(handle.add, Draft(TEAM, kind="fact"))
    run_sync(memory.bind(app="demo", user="bob").add, Draft(OTHERS, kind="fact"))
    return handle


@pytest.fixture
def both(ann: BoundMemory, team: BoundMemory) -> BoundMemory:
    run_sync(ann.add, Draft(OWN, kind="fact"))
    return ann.sharing({"team": team})


def called(config: dict[str, Any]) -> RunnableConfig:
    return {"configurable": {"session_id": "monday", "thread_id": "monday", **config}}


def quiet() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda _: "noted")


async def test_an_agent_shows_labels_and_stores_where_its_model_says(memory: Memory, team: BoundMemory) -> None:
    def shares(user: str, context: object) -> BoundMemory:
        assert isinstance(context, Context)
        teams = {"ann": ["team"]}.get(user, [])
        return memory.bind(app="demo", user=user).sharing({"team": team, "wiki": wiki}, writable=teams)

    wiki = memory.bind(app="demo", user="wiki")
    asks = {"name": "store_memory", "args": {"content": "Tea at four", "category": "fact", "space": "team"}, "id": "1"}

    def script(prompt: list[Any]) -> Any:
        return AIMessage("", tool_calls=[asks]) if isinstance(prompt[-1], HumanMessage) else "done"

    model = ScriptedChatModel(script=script)
    agent: Any = create_agent(model, middleware=[MemoryMiddleware(shares, recall=ALL)], context_schema=Context)
    answers = {}
    for user in ("ann", "eve"):
        asked = {"messages": [HumanMessage("Tell the team when tea is")]}
        state = await agent.ainvoke(asked, called({}), context=Context(user))
        answers[user] = next(message for message in state["messages"] if message.type == "tool")
        agent.invoke(asked, {"configurable": {"thread_id": "again"}}, context=Context(user))
    assert answers["ann"].status == "success"
    assert answers["eve"].status == "error"
    assert "'space' must be one of private" in str(answers["eve"].content)
    assert {record.text for record in run_sync(team.list).records} == {TEAM, "Tea at four"}
    offered = [json.dumps(tools) for tools in model.tools]
    assert all(('"enum": ["private", "team"]' in tools) == (place < 4) for place, tools in enumerate(offered))
    assert "shared in wiki" not in str(model.prompts)
    assert any("[team]" in line and TEAM in line for line in model.prompts[0][0].text.splitlines())


def test_tools_show_labels_and_a_model_cannot_name_what_was_not_granted(both: BoundMemory, team: BoundMemory) -> None:
    store, search, update, forget, _ = memory_tools(both)
    assert "space" not in store.args  # nothing is writable
    found = search.invoke({"query": "kettle"}, called({}))
    assert "shared in team" in found
    assert OTHERS not in found
    shared = run_sync(team.list).records[0]
    for refused in (
        update.invoke({"memory_id": shared.id, "content": "mine"}, called({})),
        forget.invoke({"memory_id": shared.id}, called({})),
        store.invoke({"content": "x", "category": "fact", "space": "team"}, called({})),
    ):
        assert "failed" in refused
    assert [record.text for record in run_sync(team.list).records] == [TEAM]


def hostile_labels(many: int) -> list[str]:
    draw = random.Random(21)
    bases = ("team:red", "team ", "wiki", "../team", "team\0", "*", "bob", "te\u200bam", "{", "private:team", "")
    return [draw.choice(bases) + "".join(map(chr, draw.choices(range(33, 0x3000), k=3))) for _ in range(many)]


def refuses_all(both: BoundMemory, team: BoundMemory, labels: list[str]) -> None:
    (store, *_) = memory_tools(both)
    before = len(run_sync(both.list, limit=10_000).records)
    for label in labels:
        asked = {"content": "x", "category": "fact", "space": label, "user_id": "bob", "config": {"user_id": "bob"}}
        assert "failed" in store.invoke(asked, called({}))
    assert (len(run_sync(both.list, limit=10_000).records), run_sync(team.stats).records) == (before, 1)


def test_no_label_of_a_model_reaches_a_space(ann: BoundMemory, team: BoundMemory) -> None:
    refuses_all(ann.sharing({"team": team}, writable=["team"]), team, hostile_labels(HOSTILE))


@pytest.mark.torture
def test_none_of_ten_thousand_labels_reaches_a_space(ann: BoundMemory, team: BoundMemory) -> None:
    refuses_all(ann.sharing({"team": team}, writable=["team"]), team, hostile_labels(10 * HOSTILE))


async def test_documents_name_their_space_and_a_withdrawn_grant_is_gone_at_once(
    memory: Memory, both: BoundMemory, team: BoundMemory
) -> None:
    granted = {"team": team, "empty": memory.bind(app="demo", user="empty")}

    def shares(user: str, _: object) -> BoundMemory:
        return memory.bind(app="demo", user=user).sharing(granted)

    retriever = MemoryRetriever(memory=shares, recall=ALL)
    found = await retriever.ainvoke("kettle", called({"user_id": "ann"}))
    assert {document.page_content: document.metadata["space"] for document in found} == {OWN: "private", TEAM: "team"}
    assert MemoryRetriever(memory=both, recall=ALL).invoke("kettle") == found
    node = recall_node(shares, recall=ALL)
    asked, user = {"messages": [HumanMessage("kettle?")]}, called({"user_id": "ann"})
    assert TEAM in (await node.ainvoke(asked, user))["memories"]
    del granted["team"]
    found = await retriever.ainvoke("kettle", called({"user_id": "ann"}))
    assert [document.page_content for document in found] == [OWN]
    assert TEAM not in (await node.ainvoke(asked, user))["memories"]
    assert "space" not in MemoryRetriever(memory=both.own, recall=ALL).invoke("kettle")[0].metadata


def test_a_shared_memory_belongs_to_the_user_whom_a_call_names(memory: Memory, both: BoundMemory) -> None:
    with pytest.raises(ScopeError, match="ann"):
        MemoryRetriever(memory=both).invoke("kettle", called({"user_id": "bob"}))
    with pytest.raises(ScopeError, match="ann"):
        MemoryRetriever(memory=lambda _, __: both).invoke("kettle", called({"user_id": "bob"}))
    with pytest.raises(ScopeError, match="no user is named"):
        MemoryRetriever(memory=lambda _, __: both).invoke("kettle")
    with pytest.raises(ScopeError, match="bob"):
        with_memory(quiet(), both).invoke("kettle", called({"user_id": "bob"}))


def test_what_is_no_memory_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="not 'memory'"):
        memory_tools("memory")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="made None"):
        recall_node(lambda _, __: None).invoke({"messages": []}, called({"user_id": "ann"}))  # type: ignore[arg-type, return-value]
