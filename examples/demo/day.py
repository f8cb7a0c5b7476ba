"""A day with one memory: breakfast with SPADE, noon with Google ADK, two o'clock with LangChain, four with MCP, six
with Xaibo if it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from demo import cast, transcript
from memory_core import Memory
from memory_spade.testing.xmpp import xmpp_server

FACTS: Final = (
    "I prefer a window seat on trains",
    "My daughter Mia is allergic to peanuts",
    "The spare key is with Mrs Okafor on the second floor",
    "My passport expires on 3 June 2027",
)
ASKED_NEXT_MORNING: Final = ("Who has the spare key?", "When does the passport run out?")


async def stored_and_asked(path: Path) -> None:
    """A SPADE agent receives facts over XMPP; an ADK runner and a LangChain chain are asked about them."""
    async with Memory(path) as memory, xmpp_server() as server:
        ann = memory.bind(app="demo", user="ann")
        transcript.scene("Breakfast, SPADE", "Ann's phone tells her LLMAgent things, over XMPP")
        for said, answered in zip(FACTS, await cast.tell_spade(ann, server, FACTS), strict=True):
            transcript.line("Ann", said, color="magenta")
            transcript.line("secretary", answered, color="green")
        transcript.stored((await ann.list(order="oldest")).records)

        transcript.scene("Noon, Google ADK", "another agent, another session: the Runner's model calls load_memory")
        question = "What should we not cook for Mia?"
        hits = await ann.search(question, limit=1, explain=True)
        transcript.line("Ann", question, color="magenta")
        transcript.line("agent", await cast.ask_adk(ann, question, FACTS), color="blue")
        transcript.why("Why that one?", hits)

        transcript.scene(
            "Two o'clock, LangChain", "a chain with the same handle: its prompt contains the recalled memories"
        )
        question = "Where should I sit on the train?"
        hits = await ann.search(question, limit=1, explain=True)
        transcript.line("Ann", question, color="magenta")
        transcript.line("chain", await cast.ask_langchain(ann, question, FACTS), color="yellow")
        transcript.why("Why that one?", hits)


def asked_at_four(path: Path) -> None:
    """A desktop assistant asks an MCP server what the others stored."""
    transcript.scene(
        "Four o'clock, MCP", "a desktop assistant starts memory-mcp on the same file and calls memory_search"
    )
    run("demo.assistant", str(path), "Where did I leave my spare key?")


def asked_at_six(path: Path) -> None:
    """A Xaibo agent also queries the memory."""
    if find_spec("xaibo") is None:
        return
    transcript.scene("Six o'clock, Xaibo", "an agent defined in YAML opens the file; its model calls search_memory")
    run("demo.secretary", str(path), "When do I need a new passport?")


def next_morning(path: Path) -> None:
    """All processes of yesterday have ended; a new process with only the file finds everything."""
    transcript.scene("Next morning, plain Python", "all processes have ended; a new one opens the file")
    run("demo.reader", str(path), *ASKED_NEXT_MORNING)


def run(*module: str) -> None:
    """Run a module of the examples in a separate process, which prints to the same terminal."""
    command = [sys.executable, "-m", *module]
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})  # noqa: S603  (our own)
