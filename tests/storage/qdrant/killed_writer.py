"""A process that writes until it is killed, and says before and after each operation what it does."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field
from typing import Any

from memory_core import BoundMemory, Draft, Memory, Patch, StorageError, run_sync
from memory_core.storage.qdrant.settings import Server
from memory_core.storage.qdrant.store import QdrantStore
from tests.storage.embedders import WordEmbedder

Truth = dict[str, dict[str, str]]
"""The text of each active record, by owner and id."""
OWNERS = ("ann", "bob")


def opened(url: str, collection: str, **settings: Any) -> Memory:
    """A memory on a server; also of the test that checks it."""
    server = Server(url=url, timeout_seconds=10)
    return Memory(QdrantStore(server, embedder=WordEmbedder(), collection=collection, **settings))


@dataclass
class Writer:
    """Does one operation after the other, and notes each in a file."""

    memory: Memory
    log: int
    dice: random.Random
    truth: Truth
    number: int
    refused: int = field(default=0)

    def work(self) -> None:
        while True:
            owner = self.dice.choice(OWNERS)
            held = self.truth.setdefault(owner, {})
            kinds = ["add", "add", "batch", *(["update", "delete", "supersede", "supersede"] if held else [])]
            kind = "erase" if self.dice.random() < 0.08 else self.dice.choice(kinds)
            change = self.plan(kind, owner, held)
            self.note({"begin": kind, "owner": owner, "change": change})
            try:
                self.do(kind, self.memory.bind(user=owner), change)
            except StorageError as error:  # a node of the server was killed: nobody knows
                self.note({"failed": str(error)})
                return
            for given, text in change.items():
                held.pop(given, None)
                if text is not None:
                    held[given] = text
            self.note({"done": kind, "owner": owner, "change": change})

    def plan(self, kind: str, owner: str, held: dict[str, str]) -> dict[str, str | None]:
        """The changes of the operation: the new text by id, `None` for a record that is gone."""
        if kind == "erase":
            return dict.fromkeys(held)
        if kind in ("add", "batch"):
            return {self.new_id(): f"text {self.dice.random()}" for _ in range(1 if kind == "add" else 5)}
        chosen = self.dice.choice(sorted(held))
        if kind == "update":
            return {chosen: f"changed {self.dice.random()}"}
        return {chosen: None, **({self.new_id(): f"successor of {owner}"} if kind == "supersede" else {})}

    def new_id(self) -> str:
        self.number += 1
        return f"id{self.number}"

    def do(self, kind: str, handle: BoundMemory, change: dict[str, str | None]) -> None:
        drafts = [self.draft(given, text) for given, text in change.items() if text is not None]
        if kind == "erase":
            run_sync(handle.erase)
        elif kind in ("add", "batch"):
            run_sync(handle.add_many, drafts)
        elif kind == "update":
            ((given, text),) = change.items()
            run_sync(handle.update, given, Patch(text=text or ""))
        elif kind == "delete":
            run_sync(handle.delete, next(iter(change)))
        else:
            run_sync(handle.supersede, next(iter(change)), drafts[0])

    @staticmethod
    def draft(given: str, text: str) -> Draft:
        number = int(given[2:])
        source = f"source {given}" if number % 2 else None
        return Draft(text, id=given, source_key=source, session=f"s{number % 3}", role="user")

    def note(self, line: dict[str, Any]) -> None:
        os.write(self.log, json.dumps(line).encode() + b"\n")


def run(url: str, collection: str, log: str, seed: int, truth: Truth) -> None:
    """Write until killed."""
    number = seed * 1_000_000
    with opened(url, collection) as memory:
        descriptor = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        Writer(memory, descriptor, random.Random(seed), truth, number).work()
