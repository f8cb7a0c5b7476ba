"""Processes that do everything a memory can write, and are killed: `operating_process.py FILE KILLS SEED`.

This process forks a worker for each of several owners, kills it at a random moment and forks the next one, which first
compares what it finds with what the log of its owner says: every acknowledged operation is there, and the one that was
under way is there as a whole or not at all. Ends with 0 once so many were killed and all is as it should be.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np  # before the forks, for all of them

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory_core import BoundMemory, Draft, FingerprintError, Memory, Patch, Where, run_sync
from memory_core.models import STATES
from memory_core.operator import Operator
from memory_core.storage.sqlite import store as _store  # noqa: F401  (the same)
from tests.open_store import store_of
from tests.storage.embedders import WordEmbedder

OWNERS = ("ann", "bob", "cleo")
EMBEDDERS = (("words", 64), ("others", 32))
LONGEST_LIFE_SECONDS = 0.2
MOST_RECORDS = 60

State = dict[str, tuple[str, str, str]]
"""Text, session and state of each record by its id."""


class Operation(NamedTuple):
    """One write: what is drawn for it, what it does to the memory, and what it does to the records."""

    draw: Callable[[random.Random, State, int], Any]
    perform: Callable[[BoundMemory, Any], object]
    apply: Callable[[State, Any], None]


def draft(id: str, session: str, text: str, **more: Any) -> Draft:  # noqa: A002
    return Draft(text, id=id, session=session, author="Ann", **more)


def drawn_record(rng: random.Random, known: State, number: int) -> list[str]:
    return [f"r{number}", f"s{rng.randrange(3)}", f"note {number} " + "word " * rng.randrange(80)]


def drawn_records(rng: random.Random, known: State, number: int) -> list[list[str]]:
    return [drawn_record(rng, known, 1_000_000 * part + number) for part in range(1, rng.randrange(2, 8))]


def drawn_id(rng: random.Random, known: State, number: int) -> str | None:
    active = sorted(key for key, (_, _, state) in known.items() if state == "active")
    return rng.choice(active) if active else None


def drawn_change(rng: random.Random, known: State, number: int) -> list[str] | None:
    chosen = drawn_id(rng, known, number)
    return None if chosen is None else [chosen, f"r{number}", f"changed {number} " + "word " * rng.randrange(80)]


def drawn_successor(rng: random.Random, known: State, number: int) -> list[str] | None:
    """Never of an item: that may be put again, and then has a successor already."""
    return drawn_change(rng, {key: record for key, record in known.items() if key.startswith("r")}, number)


def drawn_items(rng: random.Random, known: State, number: int) -> list[Any]:
    keys = rng.sample([f"k{n}" for n in range(12)], rng.randrange(2, 7))
    cut = rng.randrange(len(keys))
    return [[[key, f"s{rng.randrange(3)}", f"item {number} of {key}"] for key in keys[cut:]], keys[:cut]]


def drawn_session(rng: random.Random, known: State, number: int) -> str:
    return f"s{rng.randrange(3)}"


def nothing(rng: random.Random, known: State, number: int) -> bool:
    return True


def add(ann: BoundMemory, record: list[str]) -> object:
    return run_sync(ann.add, draft(*record), embed="later" if len(record[2]) % 2 else "now")


def put(ann: BoundMemory, items: Any) -> object:
    entries, remove = items
    return run_sync(ann.put_many, [draft(*entry, source_key=entry[0]) for entry in entries], remove=remove)


def apply_put(known: State, items: Any) -> None:
    entries, remove = items
    for key in remove:
        known.pop(key, None)
    known.update({key: (text, session, "active") for key, session, text in entries})


def apply_add(known: State, record: list[str]) -> None:
    known[record[0]] = (record[2], record[1], "active")


def apply_update(known: State, change: list[str]) -> None:
    known[change[0]] = (change[2], *known[change[0]][1:])


def apply_supersede(known: State, change: list[str]) -> None:
    old = known[change[0]]
    known[change[0]] = (old[0], old[1], "archived")
    known[change[1]] = (change[2], "s0", "active")


def leave(known: State, session: str) -> None:
    for key in [key for key, record in known.items() if record[1] == session]:
        del known[key]


def reembed(ann: BoundMemory, _: Any) -> object:
    """Turn to the embedder that the file does not have; somebody else may do so at the same time."""
    store = cast("Any", run_sync(store_of, ann))
    with_this = store._embedder.fingerprint.name
    (other,) = [each for each in EMBEDDERS if each[0] != with_this]
    try:
        return cast("object", run_sync(store.reembed, WordEmbedder(*other), None))
    except FingerprintError:
        return None


PAST = datetime(2020, 1, 1, tzinfo=UTC)
OPERATIONS = {
    "add": Operation(drawn_record, add, apply_add),
    "add_many": Operation(
        drawn_records,
        lambda ann, records: run_sync(ann.add_many, [draft(*record) for record in records]),
        lambda known, records: known.update({key: (text, session, "active") for key, session, text in records}),
    ),
    "update": Operation(
        drawn_change,
        lambda ann, change: run_sync(ann.update, change[0], Patch(text=change[2])),
        apply_update,
    ),
    "supersede": Operation(
        drawn_successor,
        lambda ann, change: run_sync(ann.supersede, change[0], draft(change[1], "s0", change[2])),
        apply_supersede,
    ),
    "delete": Operation(
        drawn_id, lambda ann, key: run_sync(ann.delete, key), lambda known, key: known.pop(key) and None
    ),
    "delete_where": Operation(
        drawn_session,
        lambda ann, session: run_sync(ann.delete_where, Where(states=STATES, session=session), forget=False),
        leave,
    ),
    "put_many": Operation(drawn_items, put, apply_put),
    "postpone": Operation(
        drawn_id, lambda ann, key: run_sync(ann.postpone, {key: PAST}), lambda known, key: known.pop(key) and None
    ),
    "sweep": Operation(nothing, lambda ann, _: run_sync(ann.sweep), lambda known, _: None),
    "touch": Operation(nothing, lambda ann, _: run_sync(ann.list, touch=True), lambda known, _: None),
    "erase": Operation(drawn_session, lambda ann, session: run_sync(ann.bind(session=session).erase), leave),
    "vacuum": Operation(nothing, lambda ann, _: run_sync(Operator(ann.memory).vacuum), lambda known, _: None),
    "reembed": Operation(nothing, reembed, lambda known, _: None),
}
RARE = {"erase", "vacuum", "reembed", "delete_where"}


class Log:
    """The log of what an owner's processes began and what was acknowledged, one line each."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.number = len(lines)
        self.known: State = {}
        self.under_way: tuple[str, Any] | None = None
        for what, *rest in lines:
            if what == "begin":
                self.under_way = (rest[0], rest[1])
            else:
                self._settle(is_there=rest[0])

    def begin(self, name: str, argument: Any) -> None:
        self._write(["begin", name, argument])
        self.under_way = (name, argument)

    def end(self, *, is_there: bool) -> None:
        self._write(["end", is_there])
        self._settle(is_there=is_there)

    def after(self) -> State:
        """The records if what was under way is there."""
        known = dict(self.known)
        if self.under_way is not None:
            name, argument = self.under_way
            OPERATIONS[name].apply(known, argument)
        return known

    def _settle(self, *, is_there: bool) -> None:
        self.known = self.after() if is_there else self.known
        self.under_way = None

    def _write(self, line: list[Any]) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")
        self.number += 1


def opened(path: str) -> Memory:
    """With whichever embedder the file has."""
    while True:
        for name, dimensions in EMBEDDERS:
            try:
                return run_sync(Memory(path, embedder=WordEmbedder(name, dimensions)).open)
            except FingerprintError:
                continue


def found(ann: BoundMemory) -> State:
    records = run_sync(ann.list, where=Where(states=STATES), limit=10_000).records
    return {record.id: (record.text, str(record.session), record.state) for record in records}


def live(path: str, owner: str, seed: int, *, works: bool) -> None:
    """Compare, then write until somebody kills this process; without `works` only compare."""
    logging.disable()  # another process may turn the file to the other embedder
    rng, log = random.Random(seed), Log(Path(f"{path}.{owner}.log"))
    while True:
        try:
            with opened(path) as memory:
                write(memory.bind(app="crash", user=owner), log, rng, works=works)
        except FingerprintError:  # it has done so between this opening and the first write; nothing is written
            continue
        else:
            return


def write(ann: BoundMemory, log: Log, rng: random.Random, *, works: bool) -> None:
    """See `live`."""
    there = found(ann)
    if there != log.after():
        owner = ann.scope.user
        assert there == log.known, f"{owner}: {log.under_way} left {set(there.items()) ^ set(log.known.items())}"
        log.end(is_there=False)
    elif log.under_way is not None:
        log.end(is_there=True)
    while works:
        names = ["erase"] if len(log.known) > MOST_RECORDS else [n for n in OPERATIONS if n not in RARE]
        name = rng.choice(sorted(RARE)) if rng.random() < 0.1 else rng.choice(names)
        argument = OPERATIONS[name].draw(rng, log.known, log.number)
        if argument is not None:
            log.begin(name, argument)
            OPERATIONS[name].perform(ann, argument)
            log.end(is_there=True)


def start(path: str, owner: str, seed: int, *, works: bool = True) -> int:
    child = os.fork()
    if child == 0:
        try:
            live(path, owner, seed, works=works)
        except BaseException:  # noqa: BLE001  (whatever it was, the parent has to know)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def main(path: str, kills: int, seed: int) -> None:
    rng, killed = random.Random(seed), 0
    workers: dict[str, tuple[int, float]] = {}
    while killed < kills:
        for owner in OWNERS:
            if owner not in workers:
                life = rng.random() * LONGEST_LIFE_SECONDS
                workers[owner] = (start(path, owner, rng.randrange(1 << 30)), time.monotonic() + life)
            child, until = workers[owner]
            if os.waitpid(child, os.WNOHANG)[0]:
                raise SystemExit(f"the process of {owner} ended by itself")
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                del workers[owner]
                killed += 1
        time.sleep(0.001)
    for child, _ in workers.values():
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    for owner in OWNERS:
        if os.waitpid(start(path, owner, 0, works=False), 0)[1]:
            raise SystemExit(f"what {owner} has is not what it should be")


if __name__ == "__main__":
    assert np.__version__
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
