"""A LangChain chain that remembers across conversations, and a retriever that shows what it knows.

python examples/langchain_chat.py

The model is scripted, so this runs without a key: it answers from what its prompt says about tea. Replace it with a
chat model, such as `ChatOpenAI(model="gpt-5.5")`.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig

from memory_core import Memory
from memory_langchain import MemoryRetriever, with_memory
from memory_langchain.testing import ScriptedChatModel

PROMPT = ChatPromptTemplate(
    [("system", "Be brief.\n{memories}"), ("placeholder", "{history}"), ("human", "{question}")]
)


def what_i_know(prompt: list[BaseMessage]) -> str:
    """Answer with what the prompt says about tea."""
    known = re.search(r"My favourite tea is ([^.]*)", "\n".join(message.text for message in prompt))
    return f"Your favourite tea is {known[1]}." if known else "I do not know."


def main() -> None:
    """State a fact, then ask about it in another conversation."""
    model = ScriptedChatModel(script=what_i_know)
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "memory.db") as memory:
        chain = with_memory(
            PROMPT | model | StrOutputParser(),
            memory,
            input_key="question",
            history_key="history",
            memories_key="memories",
        )
        for session, question in (
            ("monday", "My favourite tea is jasmine, from the shop on Mill Road."),
            ("tuesday", "Which tea do I like best?"),
        ):
            config: RunnableConfig = {"configurable": {"user_id": "ann", "session_id": session}}
            print(f"{session:>8}  ann:   {question}")
            print(f"{'':8}  model: ", end="")
            for piece in chain.stream({"question": question}, config):
                print(piece, end="", flush=True)
            print()

        print("\nWhat the memory finds for 'Where does she buy tea?':")
        for document in MemoryRetriever(memory=memory.bind(user="ann")).invoke("Where does she buy tea?"):
            print(f"{document.metadata['score']:8.2f}  {document.metadata['author']}: {document.page_content}")


if __name__ == "__main__":
    main()
