"""Every public operation on a memory file, as the fault matrix runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from memory_core import BoundMemory, Draft, Memory, NotAStoreError, Patch, StorageError, Where, maintain, run_sync
from memory_core.models import STATES
from memory_core.transfer.jsonl import export_jsonl, import_jsonl
from tests.storage.embedders import WordEmbedder

EMBEDDER: Final = WordEmbedder()
OTHER: Final = WordEmbedder("others", 32)
NOON: Final = datetime(2026, 5, 1, 12, tzinfo=UTC)

State = frozenset[tuple[str, str, str, str]]
"""Owner, text, state and kind of each record."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One public operation."""

    perform: Callable[[Memory, Path], object]
    """Do it to a memory; files that it makes go to the folder."""
    is_stepwise: bool = False
    """True if it consists of several transactions, each of which can be the last."""
    made: str | None = None
    """The name of a memory file that it makes: whole, as it was before, or not there."""


def path_of(folder: Path) -> Path:
    return folder / "memory.db"


def make(folder: Path) -> None:
    """The memory and the other files that the operations begin with."""
    with Memory(path_of(folder), embedder=EMBEDDER) as memory:
        ann, bob = memory.bind(user="ann"), memory.bind(user="bob")
        run_sync(
            ann.add_many,
            [Draft(f"tea number {n}", id=f"a{n}", session=f"s{n % 2}", source_key=f"k{n}") for n in range(24)],
        )
        run_sync(ann.add_many, [Draft("Tea is green", id="same1"), Draft("tea is green.", id="same2")])
        run_sync(ann.add, Draft("a long walk by the river. " * 120, id="long"))
        run_sync(ann.add, Draft("gone by noon", id="old"))
        run_sync(ann.update, "old", Patch(expires_at=datetime(2020, 1, 1, tzinfo=UTC)))
        run_sync(bob.add_many, [Draft(f"coffee number {n}", id=f"b{n}") for n in range(6)])
        run_sync(ann.update, "a3", Patch(text="tea number three"))
        run_sync(memory.backup, folder / "monday.db")
    with Memory(folder / "imported.db", embedder=EMBEDDER):
        pass
    with Memory(folder / "other.db", embedder=EMBEDDER) as memory:
        run_sync(memory.bind(user="carl").add_many, [f"milk number {n}" for n in range(9)])
        lines: list[bytes] = []
        run_sync(export_jsonl, memory, lines.append)
    (folder / "carl.jsonl").write_bytes(b"".join(lines))


FILES: Final = ("memory.db", "monday.db", "other.db", "imported.db", "carl.jsonl")
"""The files that `make` makes."""


def state(memory: Memory) -> State:
    """The records of all owners."""
    found: set[tuple[str, str, str, str]] = set()
    for scope in run_sync(memory.operator().owners):
        page = run_sync(memory.operator().handle(scope).list, where=Where(states=STATES), limit=1_000)
        found |= {(scope.user or "", record.text, record.state, record.kind) for record in page.records}
    return frozenset(found)


def is_whole(path: Path) -> bool:
    """True if a file is a memory in which nothing is wrong, after SQLite has undone what was interrupted in it."""
    if not path.stat().st_size:
        return False  # would be opened as a new memory
    with suppress(StorageError, NotAStoreError), Memory(path, embedder=EMBEDDER) as memory:
        return run_sync(memory.operator().check) == []
    return False


def _ann(memory: Memory) -> BoundMemory:
    return memory.bind(user="ann")


def _drafts(number: int) -> Sequence[Draft]:
    return [Draft(f"cocoa number {n} " + "and more " * n, id=f"c{n}", session="s1") for n in range(number)]


def _erased(memory: Memory, _: Path) -> None:
    if not run_sync(_ann(memory).erase).files_clean:
        raise StorageError("the receipt says that traces are left")


def _exported(memory: Memory, _: Path) -> None:
    run_sync(export_jsonl, memory, lambda _: None)


def _imported(_: Memory, folder: Path) -> None:
    with Memory(folder / "imported.db", embedder=EMBEDDER) as memory:
        run_sync(import_jsonl, memory, (folder / "carl.jsonl").read_bytes().splitlines(keepends=True))


OPERATIONS: Final[dict[str, Operation]] = {
    "open": Operation(
        lambda _, folder: Memory(path_of(folder), embedder=EMBEDDER).__enter__().__exit__(None, None, None)
    ),
    "add": Operation(lambda memory, _: run_sync(_ann(memory).add, Draft("cocoa", id="c"))),
    "add_many": Operation(lambda memory, _: run_sync(_ann(memory).add_many, _drafts(40))),
    "add, vectors later": Operation(lambda memory, _: run_sync(_ann(memory).add_many, _drafts(9), embed="later")),
    "remember": Operation(
        lambda memory, _: run_sync(_ann(memory).remember, [("user", "hello"), ("assistant", "hi")], session="s9")
    ),
    "put_many": Operation(
        lambda memory, _: run_sync(_ann(memory).put_many, [Draft("cocoa", source_key="k1")], remove=["k2"])
    ),
    "update": Operation(lambda memory, _: run_sync(_ann(memory).update, "a1", Patch(text="cocoa " * 400))),
    "supersede": Operation(lambda memory, _: run_sync(_ann(memory).supersede, "a1", "cocoa")),
    "postpone": Operation(lambda memory, _: run_sync(_ann(memory).postpone, {"a1": datetime(2020, 1, 1, tzinfo=UTC)})),
    "sweep": Operation(lambda memory, _: run_sync(_ann(memory).sweep)),
    "delete": Operation(lambda memory, _: run_sync(_ann(memory).delete, "a1")),
    "delete_where": Operation(lambda memory, _: run_sync(_ann(memory).delete_where, Where(session="s1"))),
    "erase": Operation(_erased),
    "maintain": Operation(lambda memory, _: run_sync(maintain, _ann(memory)), is_stepwise=True),
    "search": Operation(lambda memory, _: run_sync(_ann(memory).search, "tea number 7")),
    "recall": Operation(lambda memory, _: run_sync(_ann(memory).recall, "tea number 7")),
    "list": Operation(lambda memory, _: run_sync(_ann(memory).list)),
    "get": Operation(lambda memory, _: run_sync(_ann(memory).get, "a1")),
    "history": Operation(lambda memory, _: run_sync(_ann(memory).history, "a3")),
    "stats": Operation(lambda memory, _: run_sync(_ann(memory).stats)),
    "check": Operation(lambda memory, _: run_sync(memory.operator().check)),
    "vacuum": Operation(lambda memory, _: run_sync(memory.operator().vacuum)),
    "reembed": Operation(lambda memory, _: run_sync(memory.reembed, OTHER), is_stepwise=True),
    "export": Operation(_exported),
    "import": Operation(_imported, made="imported.db"),
    "backup": Operation(lambda memory, folder: run_sync(memory.backup, folder / "tuesday.db"), made="tuesday.db"),
    "restore": Operation(
        lambda _, folder: run_sync(Memory.restore, folder / "monday.db", folder / "new.db"), made="new.db"
    ),
    "restore over another": Operation(
        lambda _, folder: run_sync(Memory.restore, folder / "monday.db", folder / "other.db", overwrite=True),
        made="other.db",
    ),
    "close": Operation(lambda memory, _: run_sync(memory.close)),
}
