"""A text that has the form of an address is no path, and a part of it that may be a key is never shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import InvalidInputError, Memory, QdrantServer, QdrantStore, run_sync
from memory_core.values.places import check_path, is_address, without_key
from memory_core.values.private_files import new_private_file

KEY = "A-SECRET-KEY"
ADDRESSES = [
    f"qdrant://{KEY}@host/memories",
    f"qdrant+https://{KEY}@host:6333/memories",
    f"qdrnt+https://{KEY}@host",
    f"s3://bucket/memory.db?key={KEY}",
    f"my_scheme://{KEY}@host",
    f"file:///tmp/memory.db#{KEY}",
    f"qdrant:/{KEY}@host",
    f"qdrant:{KEY}@host",
]
keys = st.text(min_size=4).map(lambda said: f"k{said}k")


@given(scheme=st.from_regex(r"[a-z][a-z+]{1,9}", fullmatch=True), key=keys, rest=st.sampled_from(["host", "h:1/c", ""]))
def test_a_key_is_not_in_what_is_shown_of_an_address(scheme: str, key: str, rest: str) -> None:
    for address in (f"{scheme}://{key}@{rest}", f"{scheme}://host/c?key={key}", f"{scheme}://host#{key}"):
        assert is_address(address)
        assert key not in without_key(address)
        with pytest.raises(InvalidInputError) as refused:
            check_path("a file", address)
        assert key not in str(refused.value)


@pytest.mark.parametrize(
    "path",
    ["memory.db", "a/b:/c@d", "./qdrant://x", "/tmp/s3://x", "C:\\memory.db", "ann@example.org.db", ":memory:", "~/m"],
)
def test_a_path_is_taken_and_shown_as_it_is(path: str) -> None:
    check_path("a file", path)
    assert without_key(path) == path


def _open(address: str, _: Memory) -> object:
    return Memory(address)


def _open_path(address: str, _: Memory) -> object:
    return Memory(Path(address))


def _back_up(address: str, memory: Memory) -> object:
    return run_sync(memory.backup, address)


def _restore(address: str, _: Memory) -> object:
    return run_sync(Memory.restore, "memory.db", address)


def _restore_from(address: str, _: Memory) -> object:
    return run_sync(Memory.restore, address, "new.db")


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("call", [_open, _open_path, _back_up, _restore, _restore_from])
def test_every_call_refuses_an_address_in_place_of_a_file_and_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, call: Callable[[str, Memory], object]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory("memory.db", embedder=None) as memory:
        memory.bind(user="ann").sync.add("tea")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(InvalidInputError) as refused:
            call(address, memory)
        assert KEY not in str(refused.value)
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "make",
    [
        lambda: QdrantStore.from_uri(f"qdrant://{KEY}@ho st", embedder=None),
        lambda: QdrantStore.from_uri(f"qdrant://host:{KEY}@port:x", embedder=None),
        lambda: QdrantStore.from_uri(f"qdrant://a/{KEY}@host", embedder=None),
        lambda: QdrantServer(url=f"htps://{KEY}@host"),
    ],
)
def test_the_address_of_a_server_is_refused_without_its_key(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        make()
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_private_file_is_private_whatever_the_umask_and_replaces_none(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        with new_private_file(tmp_path / "texts") as file:
            assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
    with pytest.raises(FileExistsError):
        new_private_file(tmp_path / "texts")
