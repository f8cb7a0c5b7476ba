"""Adapters that were made before a fork work in every child."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FORKING = """
import asyncio, logging, multiprocessing, sys
from google.adk.memory.memory_entry import MemoryEntry
from langchain_core.messages import HumanMessage
from memory_adk import MemoryService
from memory_adk.testing import user_says
from memory_core import Memory, run_sync
from memory_langchain import MemoryChatMessageHistory, MemoryRetriever, MemoryStore
from memory_spade.memory import AgentBaseMemory
from memory_xaibo import CoreMemory

logging.disable(logging.WARNING)
memory = Memory(sys.argv[1] + "/memory.db", embedder=None)
ann = memory.bind(app="demo", user="ann")
service, store = MemoryService(ann), MemoryStore(ann, mode="lexical")
history, retriever = MemoryChatMessageHistory(ann, "monday"), MemoryRetriever(memory=ann)
agent = AgentBaseMemory("agent@example.com", sys.argv[1])
module = CoreMemory({"ranking": "relevance"}, memory=ann)

async def work_async(number):
    entry = MemoryEntry(content=user_says(f"adk {number} tea"), id=f"adk{number}", author="user")
    await service.add_memory(app_name="demo", user_id="ann", memories=[entry])
    assert (await service.search_memory(app_name="demo", user_id="ann", query="tea")).memories
    await module.store_memory(f"xaibo {number} tea")
    assert await module.search_memory("tea")
    await agent.store_memory(f"agent {number} likes tea", "fact")
    await agent.cleanup()

def work(number):
    asyncio.run(work_async(number))
    store.put(("notes",), f"key {number}", {"text": f"store {number}"})
    history.add_messages([HumanMessage(f"history {number}", id=f"h{number}")])
    assert retriever.invoke("tea")

forking = multiprocessing.get_context("fork")
children = [forking.Process(target=work, args=(number,)) for number in range(3)]
for child in children:
    child.start()
for child in children:
    child.join()
assert [child.exitcode for child in children] == [0, 0, 0]
work(3)
print(len(history.messages), len(store.search(("notes",))), run_sync(ann.stats).records)
print((asyncio.run(agent.get_memory_stats()))["total_memories"])
"""


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_adapters_made_before_a_fork_work_in_every_child(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKING, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "4 4 16\n4\n"
