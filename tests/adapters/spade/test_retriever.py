"""A memory behind spade_llm's `RetrievalAgent`, asked over XMPP by a model's `RetrievalTool`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from spade_llm.agent import LLMAgent, RetrievalAgent
from spade_llm.tools import RetrievalTool

from memory_core import Draft, InvalidInputError, Memory, UnsupportedError, Where
from memory_spade import MemoryLLMAgent, MemoryRetriever
from memory_spade.testing.peer import Peer
from memory_spade.testing.provider import Request, ScriptedProvider, ToolCall
from memory_spade.testing.xmpp import XmppServer
from tests.adapters.spade.saying import Jid, Start


def ask(request: Request) -> str | ToolCall:
    if request.results:
        return request.results[-1]
    author, _, query = request.said.partition(": ")
    filters = {} if author == "anybody" else {"filters": {"author": author, "ontology": "harbour"}}
    return ToolCall("retrieve_documents", {"query": query, "k": 2, **filters})


@pytest.mark.parametrize("agent_class", [LLMAgent, MemoryLLMAgent])
async def test_a_model_retrieves_what_a_memory_knows_by_another_agent(
    server: XmppServer, start: Start, jid: Jid, memory: Memory, agent_class: Any
) -> None:
    harbour = memory.bind(app="mas", user="harbour")
    await memory.bind(app="mas", user="bob").add("The harbour closes at nine")
    for author, text in (("ann", "The harbour closes at six"), ("cat", "The harbour opens at five")):
        await harbour.add(Draft(text, author=author, data={"ontology": "harbour", "more": {"deep": [1, None]}}))
    # spade_llm's tool hears only answers of exactly this address: most servers add the resource, pyjabber does not.
    address = jid("library") if type(server) is XmppServer else f"{jid('library')}/desk"
    library = RetrievalAgent(address, "pw", MemoryRetriever(harbour))
    bot = agent_class(jid("bot"), "pw", ScriptedProvider(ask), tools=[RetrievalTool(address)])
    if agent_class is LLMAgent:
        bot.tools[0].set_agent(bot)
    peer = Peer(jid("peer"))
    await start(library, bot, peer)
    answer = json.loads(str((await peer.ask(jid("bot"), "anybody: When does the harbour close?")).body))
    assert [each["content"] for each in answer["documents"]] == [
        "The harbour closes at six",
        "The harbour opens at five",
    ]
    answer = json.loads(str((await peer.ask(jid("bot"), "cat: harbour")).body))
    (document,) = answer["documents"]
    assert document["content"] == "The harbour opens at five"
    assert document["metadata"]["author"] == "cat"
    assert document["metadata"]["more"] == {"deep": [1, None]}


async def test_it_returns_no_more_than_it_is_asked_for_and_only_what_its_conditions_allow(memory: Memory) -> None:
    ann = memory.bind(user="ann")
    for number in range(5):
        await ann.add(Draft(f"crate {number}", author="ann" if number % 2 else "bob", session="s"))
    retriever = MemoryRetriever(ann, Where(author="ann"))
    assert {each.content for each in await retriever.retrieve("crate")} == {"crate 1", "crate 3"}
    assert len(await retriever.retrieve("crate", 1)) == 1
    assert await retriever.retrieve("crate", filters={"author": "bob"}) == []
    assert await retriever.retrieve(" ") == []
    assert len(await retriever.retrieve("crate " * 5_000)) == 2
    with pytest.raises(UnsupportedError, match="not by 'mmr'"):
        await retriever.retrieve("crate", search_type="mmr")
    with pytest.raises(InvalidInputError):
        await retriever.retrieve("crate", 0)
