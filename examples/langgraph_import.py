"""Import from LangGraph's `InMemoryStore` (or `SqliteStore`) and from files of messages.

python examples/langgraph_import.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage, messages_from_dict, messages_to_dict
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from memory_core import Memory
from memory_langchain import MemoryChatMessageHistory, MemoryRetriever, MemoryStore

BATCH = 100


def copy_items(old: BaseStore, new: BaseStore) -> int:
    """Copy every item of one store to another one; idempotent."""
    count = 0
    while items := old.search((), limit=BATCH, offset=count):
        for item in items:
            new.put(item.namespace, item.key, item.value)
        count += len(items)
    return count


def copy_history(path: Path, history: MemoryChatMessageHistory) -> int:
    """Add the messages of a file in the format of `FileChatMessageHistory`; idempotent."""
    messages = messages_from_dict(json.loads(path.read_text()))
    for number, message in enumerate(messages):
        message.id = message.id or f"{path.stem}-{number}"
    history.add_messages(messages)
    return len(messages)


def main() -> None:
    """Create old data, import it, and find it in the new store."""
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "memory.db") as memory:
        old = InMemoryStore()
        old.put(("users", "ann"), "drink", {"text": "Ann drinks jasmine tea"})
        file = Path(folder) / "monday.json"
        file.write_text(json.dumps(messages_to_dict([HumanMessage("I live in Oslo"), AIMessage("Noted.")])))

        store = MemoryStore(memory.bind(app="demo", user="everyone"), fields=["text"])
        print(f"{copy_items(old, store)} item: {store.search(('users',), query='tea')[0].value}")
        ann = memory.bind(app="demo", user="ann")
        print(f"{copy_history(file, MemoryChatMessageHistory(ann, 'monday'))} messages")
        print(f"recalled: {MemoryRetriever(memory=ann, k=1).invoke('Where does she live?')[0].page_content!r}")


if __name__ == "__main__":
    main()
