"""A graph of one's own that recalls before it answers and remembers afterwards, with checkpoints in the same folder.

Run: python examples/langgraph_nodes.py
"""

# LangGraph leaves some of its generics open, which strict pyright reports at every use.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from memory_core import Memory
from memory_langchain import recall_node, remember_node


class State(MessagesState):
    """The messages of a thread, and the memories for its last question, which no checkpoint keeps."""

    memories: Annotated[str, UntrackedValue(str)]


def answer(state: State) -> dict[str, list[BaseMessage]]:
    """Stand in for a model: repeat the line of the memories that names a drink."""
    prompt = [SystemMessage(state["memories"]), *state["messages"]]
    known = [line for line in str(prompt[0].content).splitlines() if "tea" in line]
    return {"messages": [AIMessage(f"You said {known[0].partition(': ')[2]}" if known else "Noted.")]}


def main() -> None:
    """Run one turn in each of two threads."""
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "memory.db") as memory:
        # In a service: SqliteSaver.from_conn_string(f"{folder}/checkpoints.db"), of langgraph-checkpoint-sqlite.
        saver = InMemorySaver()
        graph = (
            StateGraph(State)
            .add_node("recall", recall_node(memory))
            .add_node(answer)
            .add_node("remember", remember_node(memory))
            .add_edge(START, "recall")
            .add_edge("recall", "answer")
            .add_edge("answer", "remember")
            .compile(checkpointer=saver)
        )
        for thread, said in [("monday", "My favourite tea is jasmine"), ("tuesday", "Which tea is my favourite?")]:
            config: RunnableConfig = {"configurable": {"thread_id": thread, "user_id": "ann"}}
            state = graph.invoke({"messages": [HumanMessage(said)], "memories": ""}, config)
            print(f"{thread:8} ann: {said}\n         graph: {state['messages'][-1].content}")


if __name__ == "__main__":
    main()
