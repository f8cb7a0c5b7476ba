"""The lines of the table, in its order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Line:
    """A module of this folder with `measure(short=...)`."""

    what: str
    """The subject of its figures, as the table says it."""
    limit: str | None = None
    """The limit that keeps it from its goal, shown where it is missed first; `None` if it has no goals."""
    needs: tuple[str, ...] = ()
    """Modules without which it is skipped."""
    needs_peers: bool = False
    """True if it runs in the Python that has the peers, where there is one."""


LINES: Final[Mapping[str, Line]] = {
    "recall": Line(
        "`recall` beside `search`",
        "a block also reads the neighbors of its hits and chooses what fits",
    ),
    "search": Line(
        "search of 1,000 among 100,000",
        "Python calls between threads, and reading the ten records",
        needs=("langgraph.store.memory",),
    ),
    "scan": Line("a scan of 10,000 and 100,000 vectors"),
    "turns": Line(
        "capture and recall in a turn, CPU",
        "a search and two synced writes; LangGraph's middleware and ADK also look up what the prompt shows",
    ),
    "agent": Line(
        "an agent's turn with a memory, CPU",
        "a search, two synced writes, and one or two checkpoints that are loaded",
        needs=("langchain",),
    ),
    "insert": Line(
        "durable adds beside raw SQLite",
        "the text is analysed in Python, for raw SQLite it is not",
    ),
    "langgraph": Line(
        "durable adds beside LangGraph's store",
        "the text is analysed in Python, for `AsyncSqliteStore` it is not",
        needs=("langgraph.store.sqlite", "sqlite_vec"),
        needs_peers=True,
    ),
    "embed": Line(
        "embedding",
        "the model runs once for each text, so that a vector does not depend on other texts",
    ),
    "two_models": Line(
        "the default embedder beside MiniLM alone",
        "a second model reads each text, and its vocabulary is looked up in Python",
    ),
    "start": Line(
        "start",
        "loading Python, numpy, onnxruntime and the model; reading the rows",
    ),
    "memory": Line("memory", "the vectors, as float16 and as float32; for the process, onnxruntime and the model"),
    "stall": Line(
        "a busy event loop is late by",
        "a thread keeps the interpreter's lock for up to 5 ms",
    ),
    "peers": Line("other stores, as installed by their users"),
}
