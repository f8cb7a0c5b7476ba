"""A memory to look at, and a server of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from memory_core import Draft, Link, Memory, Role

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TURNS: tuple[tuple[Role, str, str], ...] = (
    ("user", "Ann", "We are moving the boat to the east pier on Monday"),
    ("assistant", "Harbour helper", "Which berth will it have?"),
    ("user", "Ann", "It has berth 14, beside the crane"),
    ("assistant", "Harbour helper", "I have noted berth 14 on the east pier"),
)


@dataclass(frozen=True)
class Running:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    link: str

    @property
    def address(self) -> str:
        parts = urlsplit(self.link)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def key(self) -> str:
        return self.link.rpartition("key=")[2]


@contextmanager
def running(file: Path, *options: str) -> Iterator[Running]:
    """`memory-core serve` on a file, until the end of the block."""
    command = [
        sys.executable,
        "-m",
        "memory_core",
        "serve",
        "--file",
        str(file),
        "--user",
        "ann",
        "--port",
        "0",
        *options,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=file.parent) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert "http://" in said, said + process.stderr.read()
            yield Running(process, said.split()[-1])
        finally:
            process.terminate()


async def filled(path: Path) -> dict[str, str]:
    """A memory file with a conversation, facts, a correction and another person; returns ids by name."""
    async with Memory(path) as memory:
        ann = memory.bind(user="ann")
        await ann.add_many(
            [
                Draft(
                    text,
                    role=role,
                    author=author,
                    kind="message",
                    session="monday",
                    occurred_at=START + timedelta(minutes=n),
                )
                for n, (role, author, text) in enumerate(TURNS)
            ]
        )
        key = await ann.add(
            Draft(
                "The spare key is with Mrs Okafor",
                kind="fact",
                tags=["house"],
                data={"floor": 2},
                collection="home/keys",
            )
        )
        source = (await ann.search("berth 14 beside the crane", limit=1))[0].record
        berth = await ann.add(Draft("The boat has berth 14", kind="fact", links=[Link("derived_from", source.id)]))
        wrong = await ann.add(Draft("Ann is allergic to penicilin", kind="fact", importance=0.9))
        home = await ann.add(Draft("Ann lives in Oslo", kind="fact"))
        await memory.bind(user="tom").add(Draft("Tom keeps bees", kind="fact"))
        return {"key": key.id, "berth": berth.id, "wrong": wrong.id, "home": home.id, "turn": source.id}
