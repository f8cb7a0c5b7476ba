"""A file that was written without an embedder gets one by what is written to it, never by being opened or read."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from memory_core import FingerprintError, InvalidInputError, Memory, run_sync
from memory_core.handle import settled
from tests.storage.consistency import assert_consistent
from tests.storage.embedders import WordEmbedder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        run_sync(memory.bind(user="ann").add_many, ["Ann drinks jasmine tea", "Ann lives in Rome"])
    return path


def owner_of_vectors(path: Path) -> tuple[bool, int]:
    """True if an embedder has claimed the file, and the number of vectors that it has."""
    with closing(sqlite3.connect(path)) as db:
        (claims,) = db.execute("SELECT count(*) FROM meta WHERE name = 'fingerprint'").fetchone()
        (vectors,) = db.execute("SELECT count(vector) FROM chunk").fetchone()
        return bool(claims), vectors


@pytest.mark.parametrize("read_only", [False, True])
def test_no_read_makes_a_file_of_words_one_of_vectors(path: Path, *, read_only: bool) -> None:
    embedder = WordEmbedder()
    with Memory(path, embedder=embedder, read_only=read_only) as memory:
        ann = memory.bind(user="ann")
        for mode in ("hybrid", "lexical", "substring"):
            assert run_sync(ann.search, "jasmine", mode=mode)[0].record.text == "Ann drinks jasmine tea"
        assert run_sync(ann.recall, "jasmine").records
        run_sync(ann.list, touch=True)
        assert run_sync(ann.stats).vectors_pending == 0
        run_sync(lambda: settled(ann))
        assert run_sync(memory.operator().check) == []
    assert embedder.embedded == []
    assert owner_of_vectors(path) == (False, 0)


def test_what_only_deletes_makes_it_none_either(path: Path) -> None:
    with Memory(path, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.delete, run_sync(ann.list).records[0].id)
        run_sync(ann.erase)
    assert owner_of_vectors(path) == (False, 0)


def test_a_search_by_vectors_alone_says_that_there_are_none(path: Path, tmp_path: Path) -> None:
    with Memory(path, embedder=WordEmbedder()) as memory:
        ann = memory.bind(user="ann")
        with pytest.raises(InvalidInputError, match=r"no vectors for mode='vector'.*reembed"):
            run_sync(ann.search, "tea", mode="vector")
    with Memory(tmp_path / "empty.db", embedder=WordEmbedder()) as memory:
        assert run_sync(memory.bind(user="ann").search, "tea", mode="vector") == []
    assert owner_of_vectors(tmp_path / "empty.db") == (False, 0)


def test_the_first_text_with_an_embedder_gives_all_of_them_vectors(path: Path) -> None:
    embedder = WordEmbedder()
    with Memory(path, embedder=embedder) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.search, "tea")
        run_sync(ann.add, "Ann keeps bees", embed="later")
        run_sync(lambda: settled(ann))
        assert run_sync(ann.search, "jasmine tea", mode="vector")[0].record.text == "Ann drinks jasmine tea"
    assert owner_of_vectors(path) == (True, 3)
    assert_consistent(path, embedder)
    with pytest.raises(FingerprintError):
        run_sync(Memory(path, embedder=WordEmbedder("others", 32)).open)


def test_reembedding_with_the_embedder_of_the_memory_gives_them_vectors_at_once(path: Path) -> None:
    embedder = WordEmbedder()
    with Memory(path, embedder=embedder) as memory:
        assert run_sync(memory.reembed, embedder) == 2
        assert len(run_sync(memory.bind(user="ann").search, "Ann drinks tea", mode="vector", floor=False)) == 2
        assert run_sync(memory.reembed, embedder) == 0
    assert owner_of_vectors(path) == (True, 2)


def test_a_reader_finds_by_meaning_what_another_memory_has_given_vectors_since(path: Path) -> None:
    with (
        Memory(path, embedder=WordEmbedder()) as memory,
        Memory(path, embedder=WordEmbedder(), read_only=True) as reader,
    ):
        run_sync(reader.bind(user="ann").search, "tea")
        run_sync(memory.bind(user="ann").add, "Ann keeps bees")
        run_sync(lambda: settled(memory.bind(user="ann")))
        assert len(run_sync(reader.bind(user="ann").search, "Ann", mode="vector", floor=False)) == 3


OTHER = """
import sys
from memory_core import FingerprintError, Memory, run_sync
from tests.storage.embedders import WordEmbedder
with Memory(sys.argv[1], embedder=WordEmbedder("others", 32)) as memory:
    ann = memory.bind(user="ann")
    print(len(run_sync(ann.search, "tea")), flush=True)
    sys.stdin.readline()
    for call in (lambda: ann.add("lost?"), lambda: ann.add_many(["a", "b"]), lambda: ann.search("tea")):
        try:
            run_sync(call)
        except FingerprintError as error:
            print("refused:", str(error)[:40], flush=True)
"""


@pytest.mark.process
def test_another_process_that_opened_it_before_is_refused_by_its_next_text(path: Path) -> None:
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{OTHER}", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "1\n"
        with Memory(path, embedder=WordEmbedder()) as memory:
            run_sync(memory.bind(user="ann").add, "Ann keeps bees")
        output, _ = other.communicate("\n", timeout=300)
    assert output.count("refused: the vectors of this store were made by") == 3
    with Memory(path, embedder=WordEmbedder()) as memory:
        assert run_sync(memory.bind(user="ann").stats).records == 3
