"""Lines of an export that anybody may have changed: an import refuses them in one sentence, or does what it says."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import pytest

from memory_core import Draft, InvalidInputError, Memory, MemoryCoreError, MemoryRecord, Where, run_sync
from memory_core.models import STATES
from memory_core.transfer.jsonl import export_jsonl, import_jsonl
from tests.fuzz.conftest import Run, begin, insist_on_what_was_there
from tests.fuzz.mutating import changed_bytes, changed_lines, each, insist_on_sentence, kept, mutants
from tests.storage.embedders import WordEmbedder

pytestmark = pytest.mark.uncovered

SUBJECT = "export_lines"
EVERYTHING = Where(states=STATES)


def sealed(content: bytes) -> bytes:
    """The lines with the last one that fits them, so that what is in them is read."""
    lines = [line for line in content.split(b"\n") if line.strip()]
    if lines and b'"end"' in lines[-1]:
        lines.pop()
    body = b"".join(line + b"\n" for line in lines)
    records = sum(b'"record"' in line for line in lines)
    end = {"end": {"records": records, "checksum": blake2b(body, digest_size=16).hexdigest()}}
    return body + json.dumps(end).encode() + b"\n"


def taken(memory: Memory, content: bytes) -> None:
    run_sync(lambda: import_jsonl(memory, content.splitlines(keepends=True)))


def all_of(memory: Memory, app: str, user: str) -> dict[str, MemoryRecord]:
    page = run_sync(memory.bind(app=app, user=user).list, where=EVERYTHING, limit=1_000)
    return {record.id: record for record in page.records}


def copied(memory: Memory) -> bytes:
    lines: list[bytes] = []
    run_sync(lambda: export_jsonl(memory, lines.append))
    return b"".join(lines)


def check(content: bytes) -> None:
    """Whatever is imported, what was there stays, the memory works, and its own export is accepted."""
    _into_a_copy(content)
    with Memory(":memory:", embedder=WordEmbedder()) as fresh:
        try:
            taken(fresh, content)
        except MemoryCoreError as error:
            insist_on_sentence(error)
        else:
            _insist_on_use(fresh)


def _into_a_copy(content: bytes) -> None:
    whole = dict(kept(SUBJECT))["plain.jsonl"]
    with Memory(":memory:", embedder=WordEmbedder()) as target:
        taken(target, whole)
        private = target.bind(app="private 4711", user="eve")
        run_sync(private.add, Draft("Eve's own", source_key="k1"))
        before, ann = all_of(target, "private 4711", "eve"), all_of(target, "default", "ann")
        try:
            taken(target, content)
        except MemoryCoreError as error:
            insist_on_sentence(error)
        assert all_of(target, "private 4711", "eve") == before
        after = all_of(target, "default", "ann")
        assert ann.keys() <= after.keys()
        assert all(after[id_] == record or after[id_].version > record.version for id_, record in ann.items())
        _insist_on_use(target)


def _insist_on_use(memory: Memory) -> None:
    ann = memory.bind(user="ann")
    run_sync(ann.search, "Where does Ann live?")
    added = run_sync(ann.add, "something new")
    assert run_sync(ann.get, added.id) == added
    again = copied(memory)
    with Memory(":memory:", embedder=WordEmbedder()) as third:
        taken(third, again)


def test_the_kept_exports() -> None:
    each(SUBJECT, (content for _, content in kept(SUBJECT)), ".jsonl", check)
    for name in ("plain.jsonl", "vectors.jsonl", "one-owner.jsonl"):
        with Memory(":memory:", embedder=WordEmbedder()) as memory:
            taken(memory, dict(kept(SUBJECT))[name])  # the seeds are whole


@pytest.mark.parametrize("count", [12, pytest.param(4_000, marks=pytest.mark.torture)])
def test_changed_lines(count: int) -> None:
    assert each(SUBJECT, map(sealed, mutants(kept(SUBJECT), count, changed_lines)), ".jsonl", check) == count


@pytest.mark.parametrize("count", [8, pytest.param(2_000, marks=pytest.mark.torture)])
def test_changed_bytes_with_and_without_a_last_line_that_fits(count: int) -> None:
    choice = random.Random(5)

    def maybe_sealed(contents: Iterable[bytes]) -> Iterable[bytes]:
        return (sealed(content) if choice.random() < 0.7 else content for content in contents)

    assert each(SUBJECT, maybe_sealed(mutants(kept(SUBJECT), count, changed_bytes)), ".jsonl", check) == count


@pytest.mark.parametrize("count", [2, pytest.param(500, marks=pytest.mark.torture)])
def test_the_command_says_it_in_a_sentence(folder: Path, run: Run, count: int) -> None:
    def command(content: bytes) -> None:
        (folder / "export.jsonl").write_bytes(content)
        begin()
        assert run("import", "export.jsonl", "--embedder", "none") == 2  # Eve's memory is of another store
        looked = run("import", "export.jsonl", "--embedder", "none", "--file", "new.db", "--dry-run", "--json")
        assert run("import", "export.jsonl", "--embedder", "none", "--file", "new.db") in {looked, 2}
        (folder / "new.db").unlink(missing_ok=True)
        insist_on_what_was_there()

    made = (sealed(content) for content in mutants(kept(SUBJECT), count, changed_lines, seed=11))
    each(SUBJECT, (*(content for _, content in kept(SUBJECT)), *made), ".jsonl", command)


def test_a_line_that_is_no_bytes_is_refused() -> None:
    with Memory(":memory:", embedder=None) as memory, pytest.raises(InvalidInputError, match="mode 'rb'"):
        run_sync(lambda: import_jsonl(memory, ["{}"]))  # type: ignore[list-item]  # that is the point
