"""Migrate from ADK's own memory services; repeating it creates no duplicates.

python examples/adk_migration.py
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from google.adk.events.event import Event
from google.adk.memory import InMemoryMemoryService, SqliteMemoryService
from google.adk.sessions.session import Session

from memory_adk import MemoryService
from memory_adk.migration import import_in_memory, import_sqlite
from memory_adk.testing import user_says


def session(name: str, *said: str) -> Session:
    """A session in which Ann said something."""
    events = [Event(author="user", content=user_says(text)) for text in said]
    return Session(id=name, app_name="demo", user_id="ann", events=events)


async def main() -> None:
    """Fill the old services, migrate twice, and query the new one."""
    with tempfile.TemporaryDirectory() as folder:
        in_memory, sqlite = InMemoryMemoryService(), SqliteMemoryService(Path(folder) / "adk.db")
        await in_memory.add_session_to_memory(session("monday", "I go sailing in June", "My sister lives in Bergen"))
        await sqlite.add_session_to_memory(session("tuesday", "I take my tea without milk"))

        service = MemoryService(Path(folder) / "memory.db")
        for _ in range(2):
            moved = await import_in_memory(service, in_memory) + await import_sqlite(service, Path(folder) / "adk.db")
            stored = (await service.handle("demo", "ann").stats()).records
            print(f"{moved} events moved in; stored: {stored}")

        for query in ("When do I sail?", "Where does my sister live?"):
            for name, asked in (("ADK", in_memory), ("ADK", sqlite), ("here", service)):
                found = (await asked.search_memory(app_name="demo", user_id="ann", query=query)).memories
                texts = [part.text for entry in found[:1] for part in entry.content.parts or []]
                print(f"{query:<26} {name:>4}: {texts}")
        await service.close()


if __name__ == "__main__":
    asyncio.run(main())
