"""The application that the test runs under `langgraph dev`: a graph with a store, an agent with a memory, and a node
that blocks."""

from __future__ import annotations

import os
import time
from typing import TypedDict

from langchain.agents import create_agent
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore

from memory_core import BoundMemory, Memory
from memory_langchain import MemoryMiddleware, MemoryStore
from memory_langchain.testing import ScriptedChatModel


class State(TypedDict, total=False):
    text: str
    found: list[str]


def handle() -> BoundMemory:
    return Memory(os.environ["MEMORY_FILE"], embedder=None).bind(app="dev", user="everyone")


def make_store() -> MemoryStore:
    """With isolated loops the server calls this once for each of its threads."""
    return MemoryStore(handle(), fields=["text"], mode="lexical")


store = make_store()


async def keep(state: State, *, store: BaseStore) -> State:
    await store.aput(("users", "ann"), state["text"], {"text": state["text"]})
    return {"found": [item.key for item in await store.asearch(("users", "ann"), query=state["text"])]}


def look(state: State, *, store: BaseStore) -> State:
    """Not async, so the server runs it in a thread."""
    return {"found": [*state["found"], *(item.value["text"] for item in store.search(("users",)))]}


async def block(state: State) -> State:
    time.sleep(0.01)  # noqa: ASYNC251  (what the server is meant to notice)
    return {"found": []}


graph = StateGraph(State).add_node(keep).add_node(look).add_edge(START, "keep").add_edge("keep", "look").compile()
blocking = StateGraph(State).add_node(block).add_edge(START, "block").compile()
agent = create_agent(
    ScriptedChatModel(script=lambda prompt: "green"),
    middleware=[MemoryMiddleware(Memory(os.environ["MEMORY_FILE"], embedder=None).bind(app="dev"))],
)
personal = create_agent(
    ScriptedChatModel(script=lambda prompt: "green"),
    middleware=[MemoryMiddleware(Memory(os.environ["MEMORY_FILE"], embedder=None).bind(app="dev", user="me"))],
)
