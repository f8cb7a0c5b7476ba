"""A graph that stores facts about its users in the memory and finds them by meaning.

Run: python examples/langgraph_store.py
"""

# LangGraph leaves some of its generics open, which strict pyright reports at every use.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore

from memory_core import Memory
from memory_langchain import MemoryStore, namespace_label


class State(TypedDict):
    said: str
    recalled: list[str]


def remember(state: State, config: RunnableConfig, *, store: BaseStore) -> dict[str, list[str]]:
    """Recall the memory nearest to the message, then store the message."""
    space = ("people", namespace_label(config.get("configurable", {})["user_id"]))
    recalled = [item.value["text"] for item in store.search(space, query=state["said"], limit=1)]
    store.put(space, state["said"], {"text": state["said"]})
    return {"recalled": recalled}


def main() -> None:
    """Run three turns of two users."""
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "memory.db") as memory:
        store = MemoryStore(memory.bind(app="demo", user="everyone"), fields=["text"])
        graph = StateGraph(State).add_node(remember).add_edge(START, "remember").compile(store=store)
        for user, said in [
            ("ann@example.com", "I drink jasmine tea"),
            ("bob@example.com", "I drink coffee"),
            ("ann@example.com", "What do I drink?"),
        ]:
            state = graph.invoke({"said": said, "recalled": []}, {"configurable": {"user_id": user}})
            print(f"{user}: {said!r} recalls {state['recalled']}")


if __name__ == "__main__":
    main()
