"""A memory survives as a text file: nothing is lost, whatever happens on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from memory_core import Draft, ForgottenError, InvalidInputError, Link, Memory, Patch, Progress, Scope, Where, run_sync
from memory_core.loop import on_core
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.storage.shared.transfer import Copyable, checksum
from memory_core.testing import Ticks
from memory_core.transfer.jsonl import BATCH, Exported, Imported, export_jsonl, import_jsonl
from memory_core.transfer.migrate import port_of
from tests.app.conftest import Run
from tests.storage.embedders import WordEmbedder

Lines = list[bytes]


def file(path: Path, *, words_only: bool = False) -> Memory:
    return Memory(path, embedder=None if words_only else WordEmbedder(), clock=Ticks())


def qdrant() -> Memory:
    return Memory(QdrantStore(":memory:", embedder=WordEmbedder(), clock=Ticks()), clock=Ticks())


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Memory]:
    """Something of everything a record can have, of two owners."""
    clock = Ticks()
    with Memory(tmp_path / "source.db", embedder=WordEmbedder(), clock=clock) as memory:
        ann = memory.bind(user="ann")
        drafts = [Draft(f"Ann saw bird number {n}", session=f"s{n % 7}", role="user") for n in range(BATCH + 88)]
        run_sync(ann.add_many, drafts)
        old = run_sync(ann.add, Draft("Ann lives in Oslo", data={"x": [1, {"y": 1e-9}]}, tags=("t", "ü\u2028")))
        run_sync(ann.supersede, old.id, "Ann lives in Rome")
        note = run_sync(ann.add, Draft("one", importance=0.1, emotion="joy", links=[Link("follows", old.id)]))
        for text in ("two", "three"):
            clock.advance(seconds=1)
            run_sync(ann.update, note.id, Patch(text=text))
        run_sync(ann.list, limit=3, touch=True)
        run_sync(ann.add, Draft("soon gone", expires_at=clock.now + timedelta(hours=1)))
        run_sync(ann.add, "a long walk by the river. " * 300)
        run_sync(ann.add, Draft("secret", source_key="forgotten"))
        run_sync(ann.delete_where, Where(source_keys=("forgotten",)))
        run_sync(memory.bind(app="other", user="\u202etom").add, "somebody else")
        yield memory


def exported(memory: Memory, *, owner: Scope | None = None, vectors: bool = True) -> tuple[Lines, Exported]:
    lines: Lines = []
    done = run_sync(lambda: export_jsonl(memory, lines.append, owner=owner, vectors=vectors))
    return lines, done


def imported(memory: Memory, lines: Lines, *, dry_run: bool = False) -> Imported:
    return run_sync(lambda: import_jsonl(memory, lines, dry_run=dry_run))


def state(memory: Memory) -> dict[str, str]:
    """The checksum of each owner."""

    async def read() -> dict[str, str]:
        port: Copyable = port_of(await memory.ready())
        return {f"{scope.app} {scope.user}": checksum(await port.manifest(scope)) for scope in await port.owners()}

    return run_sync(lambda: on_core(read))


@pytest.mark.parametrize("kind", ["file", "qdrant"])
def test_nothing_is_lost_and_no_vector_is_computed_again(source: Memory, tmp_path: Path, kind: str) -> None:
    lines, done = exported(source)
    embedder = WordEmbedder()
    store = QdrantStore(":memory:", embedder=embedder, clock=Ticks()) if kind == "qdrant" else tmp_path / "target.db"
    with Memory(store, embedder=embedder, clock=Ticks()) if kind == "file" else Memory(store, clock=Ticks()) as target:
        assert imported(target, lines) == Imported(done.records, done.records, 0)
        assert state(target) == state(source)
        assert embedder.embedded == []
        ann = target.bind(user="ann")
        with pytest.raises(ForgottenError):
            run_sync(ann.add, Draft("secret", source_key="forgotten"))
        for query in ("Where does Ann live?", "bird number 7"):
            found = [run_sync(memory.bind(user="ann").search, query) for memory in (source, target)]
            assert [hit.record for hit in found[0]] == [hit.record for hit in found[1]]
        again, _ = exported(target)
        assert again == lines or kind == "qdrant"  # another store may order what arrived at once otherwise
        assert sorted(again[1:-1]) == sorted(lines[1:-1])
        assert imported(target, lines) == Imported(done.records, 0, done.records)


def test_without_vectors_they_are_computed_again(source: Memory, tmp_path: Path) -> None:
    lines, _ = exported(source, vectors=False)
    assert not any(b'"vectors"' in line for line in lines)
    with file(tmp_path / "target.db") as target:
        imported(target, lines)
        assert state(target) == state(source)


def test_one_owner_can_be_exported_alone(source: Memory, tmp_path: Path) -> None:
    lines, done = exported(source, owner=Scope("other", "\u202etom"))
    assert (done.owners, done.records) == (1, 1)
    assert b"forgotten" not in b"".join(lines)
    with file(tmp_path / "target.db") as target:
        imported(target, lines)
        assert list(state(target)) == ["other \u202etom"]


def test_a_newer_version_at_the_target_is_kept(source: Memory, tmp_path: Path) -> None:
    lines, _ = exported(source)
    ann = source.bind(user="ann")
    (first,) = run_sync(ann.list, limit=1, order="oldest").records
    run_sync(ann.update, first.id, Patch(text="corrected since"))
    assert imported(source, lines).written == 0
    record = run_sync(ann.get, first.id)
    assert record is not None
    assert record.text == "corrected since"


def test_memories_of_another_store_are_not_mixed_up(source: Memory, tmp_path: Path) -> None:
    lines, _ = exported(source)
    with file(tmp_path / "target.db") as target:
        run_sync(target.bind(user="ann").add, "mine")
        with pytest.raises(InvalidInputError, match="memories of another store"):
            imported(target, lines)
        assert len(run_sync(target.bind(user="ann").list).records) == 1


def test_a_dry_run_checks_everything_and_writes_nothing(source: Memory, tmp_path: Path) -> None:
    lines, done = exported(source)
    with file(tmp_path / "target.db") as target:
        assert imported(target, lines, dry_run=True) == Imported(done.records, done.records, 0)
        assert state(target) == {}


DAMAGE: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "no first line": (lambda lines: lines[1:], "not the first line of an export"),
    "empty": (lambda _: [], "line 1 is not JSON"),
    "a newer format": (lambda lines: [lines[0].replace(b'"version":1', b'"version":2'), *lines[1:]], "upgrade it"),
    "half a line": (lambda lines: [*lines[:5], lines[5][:40]], "line 6 is not JSON"),
    "no end": (lambda lines: lines[:-1], "the export is incomplete: it ends after"),
    "a line less": (lambda lines: [*lines[:5], *lines[6:]], "the export was changed or cut"),
    "something after the end": (lambda lines: [*lines, lines[1]], "follows the last line"),
    "a list": (lambda lines: [lines[0], b"[1]\n"], "line 2 is not a JSON object"),
    "deep": (lambda lines: [lines[0], b"[" * 100_000 + b"\n"], "line 2 is not JSON"),
    "a naive time": (
        lambda lines: [lines[0], lines[1].replace(b'+00:00","updated_at', b'","updated_at')],
        "line 2 is not a record of an export: created_at",
    ),
    "too important": (lambda lines: [lines[0], lines[1].replace(b'"importance":0.5', b'"importance":7')], "importance"),
    "an unknown field": (lambda lines: [lines[0], lines[1].replace(b'"rev"', b'"ref"')], "a MemoryRecord has no 'ref'"),
    "rev 0": (lambda lines: [lines[0], lines[1].replace(b'"rev":1', b'"rev":0')], "out of range"),
    "no record": (lambda lines: [lines[0], b"{}\n"], "line 2 is not a record"),
    "bad vectors": (lambda lines: [lines[0], lines[1].replace(b'"vectors":["', b'"vectors":["?')], "line 2 is not"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_export_is_one_sentence(source: Memory, tmp_path: Path, name: str) -> None:
    change, said = DAMAGE[name]
    lines, _ = exported(source)
    with file(tmp_path / "target.db") as target, pytest.raises(InvalidInputError) as failed:
        imported(target, change(lines))
    assert said in str(failed.value)
    assert "\n" not in str(failed.value)


def test_an_export_that_was_cut_can_be_completed(source: Memory, tmp_path: Path) -> None:
    """As after a kill: what the first import stored is not written again."""
    lines, done = exported(source)
    with file(tmp_path / "target.db") as target:
        with pytest.raises(InvalidInputError, match="incomplete"):
            imported(target, lines[: BATCH + 10])
        assert imported(target, lines) == Imported(done.records, done.records - BATCH - 9, BATCH + 9)
        assert state(target) == state(source)


def test_progress_and_files_through_the_program(run: Run, tmp_path: Path) -> None:
    run("add", "The tide turns at noon")
    done = run("export", "all.jsonl", "--json").value
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o777 == 0o600
    assert "there is a file 'all.jsonl' already" in run("export", "all.jsonl", code=2).err
    assert run("import", "all.jsonl", "--file", "b.db", "--dry-run", "--json").value["written"] == 1
    assert not (tmp_path / "b.db").exists()
    assert run("import", "all.jsonl", "--file", "b.db", "--json").value["written"] == 1
    text = (tmp_path / "all.jsonl").read_text()
    assert run("import", "-", "--file", "c.db", "--json", stdin=text).value["written"] == 1
    assert done["checksum"] in text
    told: list[Progress] = []
    with Memory("b.db", embedder=None) as memory:
        run_sync(lambda: export_jsonl(memory, lambda _: None, progress=told.append))
    assert told[-1].done == told[-1].total


FILL = """
import asyncio, sys
from memory_core import Draft, Memory
async def main():
    async with Memory(sys.argv[1], embedder=None) as memory:
        for user in range(4):
            ann = memory.bind(user=f"user {user}")
            for start in range(0, int(sys.argv[2]) // 4, 1_000):
                await ann.add_many([Draft(f"memory {n} of the harbour at {n % 977}", session=f"s{n // 50}")
                                    for n in range(start, min(start + 1_000, int(sys.argv[2]) // 4))])
asyncio.run(main())
"""


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "memory_core", *arguments, "--words-only"]


@pytest.mark.parametrize(
    ("records", "kills"),
    [(2_000, 1), pytest.param(100_000, 10, marks=pytest.mark.torture)],
    ids=["short", "long"],
)
@pytest.mark.timeout(1_200)
def test_killed_and_run_again_both_ways(tmp_path: Path, records: int, kills: int) -> None:
    """At the end both files agree."""
    subprocess.run([sys.executable, "-c", FILL, "a.db", str(records)], check=True)
    began = time.monotonic()
    for command in (program("export", "all.jsonl", "--file", "a.db"), program("import", "all.jsonl", "--file", "b.db")):
        for number in range(kills):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                try:
                    process.wait(0.5 + number * records / 40_000)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
            if command[3] == "export":
                (tmp_path / "all.jsonl").unlink(missing_ok=True)
    before = time.monotonic() - began
    subprocess.run(program("export", "all.jsonl", "--file", "a.db"), check=True, capture_output=True)
    exported_after = time.monotonic() - began - before
    subprocess.run(program("import", "all.jsonl", "--file", "b.db"), check=True, capture_output=True)
    with file(tmp_path / "a.db", words_only=True) as one, file(tmp_path / "b.db", words_only=True) as other:
        assert state(one) == state(other)
    if records > 10_000:
        print(f"{records} records: exported in {exported_after:.0f} s, all in {time.monotonic() - began:.0f} s")  # noqa: T201


def test_memory_use_does_not_grow_with_the_records(tmp_path: Path) -> None:
    """Four times as many records of one owner: no more than some buffers more."""
    peaks: list[int] = []
    for records in (1_000, 8_000):
        subprocess.run([sys.executable, "-c", FILL, f"{records}.db", str(records)], check=True)
        with subprocess.Popen(program("export", f"{records}.jsonl", "--file", f"{records}.db")) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(usage.ru_maxrss)
    assert peaks[1] - peaks[0] < 10_000  # kB; the file of the larger one has 6,000 kB more
