"""The lines of the table, in its order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Line:
    """A module of this folder with `measure(short=...)`."""

    what: str
    """What its figures are about, as the table says it."""
    limit: str | None = None
    """What keeps it from being faster, shown where a goal is missed; `None` if it has no goals."""
    needs: tuple[str, ...] = ()
    """Modules without which it is skipped."""
    needs_peers: bool = False
    """Whether it runs in the Python that has the peers, if there is one."""


LINES: Final[Mapping[str, Line]] = {
    "recall": Line(
        "`recall` beside `search`",
        "a block also reads the neighbours of its hits and chooses what fits",
    ),
    "search": Line(
        "search of 1,000 among 100,000",
        "the calls of Python between the threads and for the ten records",
        needs=("langgraph.store.memory",),
    ),
    "scan": Line("a scan of 100,000 vectors"),
    "turns": Line(
        "capture and recall in a turn, CPU",
        "one search, and one synced write of the question and one of the answer; LangGraph's middleware and ADK also "
        "read again what the prompt shows, since a thread knows ids of messages and no ids of memories",
    ),
    "insert": Line(
        "durable adds beside raw SQLite",
        "the analysis of the text in Python, which raw SQLite is spared; beyond it, the sync of the disk",
    ),
    "langgraph": Line(
        "durable adds beside LangGraph's store",
        "beside the same sync for both, the analysis of the text in Python, which `AsyncSqliteStore` is spared",
        needs=("langgraph.store.sqlite", "sqlite_vec"),
        needs_peers=True,
    ),
    "embed": Line(
        "embedding",
        "the model: every text has a run of its own, so that its vector does not depend on others",
    ),
    "start": Line(
        "start",
        "Python, numpy, onnxruntime and the model, which have to be loaded; the rows, which have to be read",
    ),
    "memory": Line(
        "memory", "the vectors (768 bytes of float16, 1,536 of float32); onnxruntime with the model, for the process"
    ),
    "stall": Line(
        "a busy event loop is late by",
        "the interpreter's lock, which a thread keeps for up to 5 ms, and the cores",
    ),
    "peers": Line("other stores, as installed by their users"),
}
