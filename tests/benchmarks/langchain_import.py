"""How long each class of the adapter takes to import, beside the classes of LangChain it is made of.

    python tests/benchmarks/langchain_import.py [REPETITIONS]

Each import runs in a process of its own, from compiled files as after an installation, and the fastest repetition
counts. Run it where only `memory-core[langchain]` is installed for what a chain needs: LangChain imports tracers and
the like when it finds them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

CASES = {
    "the interpreter": "pass",
    "memory_core": "import memory_core",
    "LangChain's history": "from langchain_core.chat_history import BaseChatMessageHistory",
    "MemoryChatMessageHistory": "from memory_langchain import MemoryChatMessageHistory",
    "LangChain's own base classes": (
        "from langchain_core.chat_history import BaseChatMessageHistory; "
        "from langchain_core.runnables import Runnable; "
        "from langchain_core.retrievers import BaseRetriever; "
        "from langchain_core.tools import StructuredTool"
    ),
    "history, runnable, retriever, tools": (
        "from memory_langchain import MemoryChatMessageHistory, MemoryRetriever, memory_tools, with_memory"
    ),
    "LangGraph's BaseStore": "from langgraph.store.base import BaseStore",
    "MemoryStore": "from memory_langchain import MemoryStore",
    "LangChain's AgentMiddleware": "from langchain.agents.middleware import AgentMiddleware",
    "MemoryMiddleware": "from memory_langchain import MemoryMiddleware",
}
MEMORY = "; import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"


def main(repetitions: int) -> None:
    with tempfile.TemporaryDirectory() as compiled:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        measure(repetitions, {**environment, "PYTHONPYCACHEPREFIX": compiled})


def measure(repetitions: int, environment: dict[str, str]) -> None:
    """Print the time and the memory of each case; the first repetition compiles."""
    for name, code in CASES.items():
        fastest, resident = 1e9, 0
        for _ in range(repetitions):
            start = time.perf_counter()
            command = [sys.executable, "-c", code + MEMORY]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            fastest = min(fastest, time.perf_counter() - start)
            if done.returncode:
                print(f"{name:36} not installed")
                break
            resident = int(done.stdout) // 1024
        else:
            print(f"{name:36} {1e3 * fastest:5.0f} ms, {resident:3} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
