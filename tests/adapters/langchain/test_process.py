"""The effect of the package on the process in which it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

import memory_langchain
from memory_core import Memory
from memory_langchain import MemoryChatMessageHistory, MemoryRetriever, memory_tools, with_memory
from memory_langchain.testing import ScriptedChatModel

MONDAY: RunnableConfig = {"configurable": {"session_id": "monday"}}

TALK = """
import sys
from memory_core import Memory, run_sync
from memory_langchain import MemoryChatMessageHistory, MemoryRetriever, memory_tools, with_memory
from memory_langchain.testing import ScriptedChatModel

ann = Memory(sys.argv[1], embedder=None).bind(app="demo", user="ann")
chain = with_memory(ScriptedChatModel(script=lambda prompt: "green"), ann)
chain = chain.with_config(configurable={"session_id": "monday"})
chain.invoke("Which tea?")
"".join(chunk.text for chunk in chain.stream("Which tea?"))
assert MemoryRetriever(memory=ann).invoke("tea")
for tool in memory_tools(ann):
    tool.args
"""


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def loaded(code: str) -> set[str]:
    done = python(f"{code}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})")
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.process
def test_importing_the_package_loads_no_framework() -> None:
    assert not {"langchain_core", "langchain", "langgraph", "pydantic", "numpy"} & loaded("import memory_langchain")


@pytest.mark.process
def test_chains_retrievers_and_tools_load_langchains_core_only() -> None:
    names = "MemoryChatMessageHistory, MemoryRetriever, memory_tools, with_memory"
    modules = loaded(f"from memory_langchain import {names}")
    assert "langchain_core" in modules
    assert not {"langchain", "langchain_classic", "langgraph", "numpy", "onnxruntime", "qdrant_client"} & modules


@pytest.mark.parametrize("name", memory_langchain.__all__)
def test_every_name_is_there_and_says_what_it_is(name: str) -> None:
    assert getattr(memory_langchain, name).__doc__
    assert name in dir(memory_langchain)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = memory_langchain.nothing


@pytest.mark.process
def test_a_missing_framework_is_named_with_the_way_to_install_it() -> None:
    code = """
import sys
sys.modules.update(dict.fromkeys(["langchain_core", "langchain", "langchain_classic", "langgraph"]))
for name in ("with_memory", "BankMiddleware", "ConversationMemory", "MemoryStore"):
    try:
        exec(f"from memory_langchain import {name}")
    except ImportError as error:
        print(error)
"""
    done = python(code)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "`with_memory` needs langchain-core: pip install 'memory-core[langchain]'",
        "`BankMiddleware` needs langchain: pip install 'memory-core[langgraph]'",
        "`ConversationMemory` needs langchain-classic: pip install 'memory-core[classic]'",
        "`MemoryStore` needs langgraph: pip install 'memory-core[langgraph]'",
    ]


def test_everything_can_be_imported_with_all_extras() -> None:
    names: dict[str, object] = {}
    exec("from memory_langchain import *", names)
    assert names.keys() - {"__builtins__"} == set(memory_langchain._HOME) == set(memory_langchain.__all__)
    assert not hasattr(memory_langchain, "nothing")


@pytest.mark.process
@pytest.mark.parametrize(
    ("missing", "lost", "extra"),
    [  # `langgraph` without its store is any folder of that name
        (["langchain_classic"], ["ConversationMemory"], "classic"),
        (["langchain"], ["BankMiddleware", "MemoryMiddleware"], "langgraph"),
        (["langgraph.checkpoint.base"], ["recall_node", "remember_node"], "langgraph"),
        (["langgraph.store.base"], ["MemoryStore", "AsyncMemoryStore", "namespace_label"], "langgraph"),
    ],
)
def test_what_needs_no_other_extra_works_and_what_does_names_it(
    missing: list[str], lost: list[str], extra: str
) -> None:
    code = f"""
import sys
sys.modules.update(dict.fromkeys({missing}))
from memory_langchain import MemoryChatMessageHistory, MemoryRetriever, MemoryVectorStore, memory_tools, with_memory
import memory_langchain
for name in {lost}:
    try:
        getattr(memory_langchain, name)
    except ImportError as error:
        assert "pip install 'memory-core[{extra}]'" in str(error)
    else:
        raise AssertionError(name)
"""
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.process
def test_a_script_that_closes_nothing_ends_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    done = python(TALK, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    with Memory(path, embedder=None) as memory:
        messages = MemoryChatMessageHistory(memory.bind(app="demo", user="ann"), "monday").messages
    assert [message.text for message in messages] == ["Which tea?", "green"] * 2


@pytest.mark.process
def test_a_loop_that_ends_in_the_middle_of_a_stream_leaves_no_task_behind(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from memory_core import Memory
from memory_langchain import with_memory
from memory_langchain.testing import ScriptedChatModel

ann = Memory(sys.argv[1], embedder=None).bind(app="demo", user="ann")
chain = with_memory(ScriptedChatModel(script=lambda prompt: "one two three"), ann)

async def main():
    async for _ in chain.astream("go", {"configurable": {"session_id": "monday"}}):
        break

asyncio.run(main())
"""
    path = tmp_path / "memory.db"
    done = python(code, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    with Memory(path, embedder=None) as memory:
        messages = MemoryChatMessageHistory(memory.bind(app="demo", user="ann"), "monday").messages
    assert [message.text for message in messages] == ["go"]


@pytest.mark.process
def test_a_forked_child_is_told_to_open_the_memory_itself(tmp_path: Path) -> None:
    code = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forking with threads, which is the point
from memory_core import ClosedError, Memory
from memory_langchain import MemoryChatMessageHistory

def history():
    return MemoryChatMessageHistory(Memory(sys.argv[1], embedder=None).bind(app="demo", user="ann"), "monday")

parent = history()
parent.add_user_message("parent")
child = os.fork()
if child == 0:
    try:
        parent.add_user_message("never")
    except ClosedError:
        history().add_user_message("child")
        os._exit(0)
    os._exit(1)
_, status = os.waitpid(child, 0)
parent.add_user_message("parent again")
print(status, *(message.text for message in history().messages), sep=",")
"""
    done = python(code, str(tmp_path / "memory.db"))
    assert done.stdout == "0,parent,child,parent again\n", done.stderr


async def test_no_async_path_blocks_its_event_loop(tmp_path: Path) -> None:
    blockbuster: Any = pytest.importorskip("blockbuster")
    memory = Memory(tmp_path / "memory.db", embedder=None)
    ann = memory.bind(app="demo", user="ann")
    chain = with_memory(ScriptedChatModel(script=lambda prompt: "green"), ann)
    history = MemoryChatMessageHistory(ann, "monday")
    store, search, *_ = memory_tools(ann)
    with blockbuster.blockbuster_ctx():
        await chain.ainvoke("Which tea?", MONDAY)
        assert [chunk.text async for chunk in chain.astream("Which tea?", MONDAY)]
        await history.aadd_messages([HumanMessage("hello", id="1")])
        assert len(await history.aget_messages()) == 5
        assert await MemoryRetriever(memory=ann).ainvoke("tea")
        await store.ainvoke({"content": "Ann likes tea", "category": "fact"})
        assert "Ann likes tea" in await search.ainvoke({"query": "tea"})
        await history.aclear()
        await memory.close()
