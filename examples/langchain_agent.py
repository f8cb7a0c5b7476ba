"""A LangChain agent that stores facts with a tool and recalls them in another thread.

python examples/langchain_agent.py

The model is scripted, so this runs without a key. Replace it with a chat model, such as `ChatOpenAI(model="gpt-5.5")`.
"""

# LangChain's types leave parameters of `create_agent` open.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from memory_core import Memory
from memory_langchain import MemoryMiddleware
from memory_langchain.testing import ScriptedChatModel


@dataclass
class Context:
    """The requesting user, set by the application and never by the model."""

    user_id: str


def play(prompt: list[BaseMessage]) -> AIMessage | str:
    """Store preferences, and answer questions with what the prompt recalls."""
    last = prompt[-1]
    if last.type == "tool":
        return "I will remember that."
    if "prefer" in last.text:
        arguments = {"content": "Ann prefers the window seat", "category": "preference"}
        return AIMessage("", tool_calls=[{"name": "store_memory", "args": arguments, "id": "1"}])
    return "The window seat." if "window seat" in prompt[0].text else "I do not know."


def main() -> None:
    """State a fact, then ask about it in another thread, as two different users."""
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "memory.db") as memory:
        model = ScriptedChatModel(script=play)
        agent = create_agent(model, middleware=[MemoryMiddleware(memory)], context_schema=Context)
        for user, thread, text in (
            ("ann", "monday", "I prefer to sit at the window."),
            ("ann", "tuesday", "Which seat shall I book?"),
            ("bob", "tuesday", "Which seat shall I book?"),
        ):
            config: RunnableConfig = {"configurable": {"thread_id": thread}}
            state = agent.invoke({"messages": [HumanMessage(text)]}, config, context=Context(user))
            print(f"{thread:>8}  {user}:   {text}")
            print(f"{'':8}  agent: {state['messages'][-1].text}")


if __name__ == "__main__":
    main()
