"""The same 200 facts and questions through the tools of several MCP memory servers.

    python tests/benchmarks/mcp_servers.py [NAME=COMMAND ...]

`COMMAND` starts a server that its user has installed; without any, only memory-core's own is measured. The names are
those of `SERVERS`. The six people of the corpus `facts` have a memory each, with 33 or 34 facts, stored one by one.
Then the server is killed (SIGKILL) and started again, and asked one question about each fact, and what nobody has said.
The questions use other words than the facts. A row is one way to ask:

- `found`: of the 200 facts, those in the answer to their question,
- `tokens` of an answer, at four characters each, and of the list of tools, which a client sends with every request,
- `silent`: of 60 questions that no fact answers, those whose answer has no fact,
- `store`: seconds for the 200 facts; `ask`: milliseconds of a question (median),
- `lost`: facts that are not found after the kill with the text of the fact itself as the question.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, TextContent

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.corpora.loading import Owner, owners

FACTS: Final = (34, 34, 33, 33, 33, 33)
"""Of each person."""
RESULTS: Final = 5
CHARS_IN_A_TOKEN: Final = 4
NO_QUESTION_WORDS: Final = frozenset(
    """what when where which whose whom does have with that this there from they their would could should about been
    will into than your were much many""".split()  # noqa: SIM905  (easier to read)
)
Call = tuple[str, Mapping[str, Any]]
"""A tool and its arguments."""


@dataclass(frozen=True)
class Server:
    """One server, with its command and its calls as its documentation shows them."""

    data: Callable[[Path], Mapping[str, str]]
    """Environment variables that put its data into a folder."""
    store: Callable[[Sequence[str]], list[Call]]
    ways: Mapping[str, Callable[[str], list[Call]]]
    """The ways in which a model may ask; the first one is used with the text of a fact, too."""
    arguments: Callable[[Path], Sequence[str]] = field(default=lambda _: ())


def _words(question: str) -> list[str]:
    """The words that a model would look for in a server that compares letters: the three longest words."""
    words = {word.strip(".,?!'\"").removesuffix("'s") for word in question.lower().split()} - NO_QUESTION_WORDS
    return sorted((word for word in words if len(word) > 3), key=lambda word: (-len(word), word))[:3]


def _entities(facts: Sequence[str]) -> list[Call]:
    """A node for each fact, so that what does not match is not returned with what does."""
    return [
        ("create_entities", {"entities": [{"name": f"fact {n}", "entityType": "fact", "observations": [text]}]})
        for n, text in enumerate(facts, 1)
    ]


_NOTES: Final = {"projectName": "person", "fileName": "facts.md"}
SERVERS: Final[Mapping[str, Server]] = {
    "memory-mcp": Server(
        lambda folder: {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        lambda facts: [("memory_store", {"content": text}) for text in facts],
        {
            "memory_search": lambda question: [("memory_search", {"query": question, "nResults": RESULTS})],
            "memory_recall": lambda question: [("memory_recall", {"query": question, "maxChars": 1_000})],
        },
        lambda folder: ("--file", str(folder / "memory.db"), "--user", "person"),
    ),
    "server-memory": Server(  # npm: @modelcontextprotocol/server-memory
        lambda folder: {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
        _entities,
        {
            "search_nodes, the question": lambda question: [("search_nodes", {"query": question})],
            "search_nodes, its words": lambda question: [
                ("search_nodes", {"query": word}) for word in _words(question)
            ],
            "read_graph": lambda _: [("read_graph", {})],
        },
    ),
    "memory-libsql": Server(  # npm: mcp-memory-libsql
        lambda folder: {"LIBSQL_URL": f"file:{folder / 'memory.db'}"},
        _entities,
        {
            "search_nodes, the question": lambda question: [
                ("search_nodes", {"query": question[:512], "limit": RESULTS})
            ],
            "search_nodes, its words": lambda question: [
                ("search_nodes", {"query": word, "limit": RESULTS}) for word in _words(question)
            ],
        },
    ),
    "memory-bank": Server(  # npm: @allpepper/memory-bank-mcp
        lambda folder: {"MEMORY_BANK_ROOT": str(folder)},
        lambda facts: [
            ("memory_bank_update" if n > 1 else "memory_bank_write", {**_NOTES, "content": "\n".join(facts[:n])})
            for n in range(1, len(facts) + 1)
        ],
        {"memory_bank_read": lambda _: [("memory_bank_read", _NOTES)]},
    ),
    "memory-service": Server(  # PyPI: mcp-memory-service-lite
        lambda folder: {"MCP_MEMORY_SQLITE_PATH": str(folder / "m.db"), "MCP_MEMORY_BACKUPS_PATH": str(folder / "b")},
        lambda facts: [("memory_store", {"content": text}) for text in facts],
        {
            "memory_search": lambda question: [("memory_search", {"query": question, "limit": RESULTS})],
            "memory_search, hybrid": lambda question: [
                ("memory_search", {"query": question, "limit": RESULTS, "mode": "hybrid"})
            ],
        },
    ),
}


@dataclass
class Measured:
    """The figures of the questions of one way."""

    found: list[bool] = field(default_factory=list[bool])
    tokens: list[float] = field(default_factory=list[float])
    silent: list[bool] = field(default_factory=list[bool])
    seconds: list[float] = field(default_factory=list[float])


@dataclass
class Totals:
    """The figures that hold for every way to ask a server."""

    tools: float = 0.0
    stored: float = 0.0
    refused: int = 0
    lost: int = 0


@asynccontextmanager
async def running(name: str, command: Sequence[str], folder: Path) -> AsyncGenerator[Client]:
    """A client of a server, which leaves its process id in the folder."""
    server = SERVERS[name]
    started = StdioServerParameters(
        command="/bin/sh",
        args=["-c", 'echo $$ >"$0"; exec "$@"', str(folder / "pid"), *command, *server.arguments(folder)],
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **server.data(folder)},
        cwd=folder,
    )
    with (folder / "said").open("a") as said:
        async with Client(stdio_client(started, errlog=said), mode="legacy", read_timeout_seconds=120) as client:
            yield client


async def answer(client: Client, calls: Sequence[Call]) -> str:
    """The text that a model reads after some calls."""
    texts: list[str] = []
    for tool, arguments in calls:
        result = await client.call_tool(tool, dict(arguments))
        texts.append(_text(result))
    return "\n".join(texts)


def _text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def has(text: str, fact: str) -> bool:
    """True if an answer has a fact, as it is or as a string of JSON."""
    return any(form in text for form in (fact, json.dumps(fact)[1:-1], json.dumps(fact, ensure_ascii=False)[1:-1]))


async def store(name: str, command: Sequence[str], folder: Path, facts: Sequence[str], totals: Totals) -> None:
    """Store the facts, and kill the server when it has acknowledged the last one."""
    with suppress(ExceptionGroup, BrokenPipeError):  # of the client, whose server is gone
        async with running(name, command, folder) as client:
            tools = (await client.list_tools()).tools
            listed = [[tool.name, tool.description, tool.input_schema] for tool in tools]  # what a model is given
            totals.tools = len(json.dumps(listed, ensure_ascii=False)) / CHARS_IN_A_TOKEN
            begun = time.perf_counter()
            for tool, arguments in SERVERS[name].store(facts):
                totals.refused += bool((await client.call_tool(tool, dict(arguments))).is_error)
            totals.stored += time.perf_counter() - begun
            os.kill(int((folder / "pid").read_text()), signal.SIGKILL)


async def ask(client: Client, owner: Owner, facts: Mapping[str, str], way: Callable[[str], list[Call]]) -> Measured:
    """Ask a question about each fact, and what nobody has said."""
    measured = Measured()
    open_facts = dict(facts)
    for question in owner.questions:
        (key,) = question.evidence
        if (fact := open_facts.pop(key, None)) is None:
            continue
        begun = time.perf_counter()
        text = await answer(client, way(question.text))
        measured.seconds.append(time.perf_counter() - begun)
        measured.found.append(has(text, fact))
        measured.tokens.append(len(text) / CHARS_IN_A_TOKEN)
    for question in owner.unanswerable:
        text = await answer(client, way(question.text))
        measured.silent.append(not any(has(text, fact) for fact in facts.values()))
    return measured


async def measure(name: str, command: Sequence[str]) -> None:
    """Measure one server and print its rows."""
    totals, rows = Totals(), {way: Measured() for way in SERVERS[name].ways}
    for owner, count in zip(owners("facts"), FACTS, strict=True):
        asked = {key: None for question in owner.questions for key in question.evidence}
        texts = {str(record.source_key): record.text for record in owner.records}
        facts = {key: texts[key] for key in list(asked)[:count]}
        with tempfile.TemporaryDirectory() as room:
            folder = Path(room)
            await store(name, command, folder, list(facts.values()), totals)
            async with running(name, command, folder) as client:
                for label, way in SERVERS[name].ways.items():
                    some = await ask(client, owner, facts, way)
                    for each in ("found", "tokens", "silent", "seconds"):
                        getattr(rows[label], each).extend(getattr(some, each))
                first = next(iter(SERVERS[name].ways.values()))
                for fact in facts.values():
                    totals.lost += not has(await answer(client, first(fact)), fact)
    for label, row in rows.items():
        print(
            f"| {name}: {label} | {sum(row.found)} of {len(row.found)} | {fmean(row.tokens):,.0f} | "
            f"{totals.tools:,.0f} | {sum(row.silent)} of {len(row.silent)} | {totals.stored:.1f} | "
            f"{1_000 * median(row.seconds):.0f} | {totals.lost} |",
            flush=True,
        )
    if totals.refused:
        print(f"{name} refused {totals.refused} facts", flush=True)


async def main(given: Sequence[str]) -> None:
    """Measure this project's server and those that are given."""
    ours = f"{shlex.quote(sys.executable)} -m memory_mcp"
    commands = dict(pair.split("=", 1) for pair in [f"memory-mcp={ours}", *given])
    print("| server and tool | found | tokens | tools | silent | store, s | ask, ms | lost |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, command in commands.items():
        await measure(name, shlex.split(command))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
