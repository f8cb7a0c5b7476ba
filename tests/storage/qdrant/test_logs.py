"""No line of a logger shows what goes to a server or comes from it."""

from __future__ import annotations

from memory_core.embedding.hashing import HashingEmbedder
from memory_core.storage.qdrant.settings import Server
from tests.storage.qdrant.conftest import Open
from tests.test_logs import Lines, debugged, everything, lines, shows_nothing

__all__ = ["lines"]


def test_no_line_shows_what_passes_through_a_server(connect: Open, server: Server, lines: Lines) -> None:
    memory = connect(server, embedder=HashingEmbedder())
    debugged(lambda: everything(memory))
    shows_nothing(lines)
    assert lines.of("memory_core.open_store")
