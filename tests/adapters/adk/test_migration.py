"""What ADK's own services remember can move in."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.adk.memory import InMemoryMemoryService
from google.adk.memory import SqliteMemoryService as AdkSqliteMemoryService
from google.genai import types

from memory_adk import MemoryService
from memory_adk.migration import import_in_memory, import_sqlite
from memory_core import InvalidInputError, Memory
from tests.adapters.adk.agents import ANN, APP, found, said_event, session_with, text_of, texts

SECRET = types.Part(text="what the model thought", thought=True)
BLOB = types.Part(inline_data=types.Blob(data=b"x" * 4_000, mime_type="image/png"))
SPOKEN = types.Content(role="model", parts=[SECRET, types.Part(text="Jasmine is a tea"), BLOB])


@pytest.mark.parametrize("kind", ["in memory", "sqlite"])
async def test_everybodys_memories_move_in_with_authors_and_times_and_stay_apart(
    service: MemoryService, memory: Memory, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "adk memory?.db"
    source = InMemoryMemoryService() if kind == "in memory" else AdkSqliteMemoryService(path)
    session = session_with(said_event("What is jasmine?"), said_event("", author="helper", at=60, content=SPOKEN))
    await source.add_session_to_memory(session)
    await source.add_session_to_memory(session_with(said_event("Bob sails"), user="bob", session_id="s2"))
    await source.add_events_to_memory(app_name=APP, user_id=ANN, events=[said_event("I ski", at=90)])
    for _ in range(2):
        moved = (
            import_in_memory(service, source)
            if isinstance(source, InMemoryMemoryService)
            else import_sqlite(service, path)
        )
        assert await moved == 4
    await service.add_session_to_memory(session)
    entry = next(entry for entry in await found(service, "tea") if "tea" in text_of(entry))
    assert (text_of(entry), entry.author, entry.timestamp) == (
        "Jasmine is a tea",
        "helper",
        "2023-11-14T22:14:20+00:00",
    )
    assert await texts(service, "sails", user="bob") == ["Bob sails"]
    records = (await memory.bind(app=APP, user=ANN).list()).records
    assert sorted((record.text, record.session) for record in records) == [
        ("I ski", None),
        ("Jasmine is a tea", "s1"),
        ("What is jasmine?", "s1"),
    ]


async def test_a_file_that_is_something_else_is_refused_and_not_touched(service: MemoryService, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="No such file"):
        await import_sqlite(service, tmp_path / "nothing.db")
    assert not (tmp_path / "nothing.db").exists()
    (tmp_path / "text.db").write_text("I am no database, and long enough to look like one" * 30)
    with pytest.raises(InvalidInputError, match="is not the file of a SqliteMemoryService"):
        await import_sqlite(service, tmp_path / "text.db")
