"""The write-ahead log as SQLite writes it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.storage.sqlite.log_format import pages_in

HEADER, FRAME = 32, 24
ROWS = 12


def log_of(path: Path, page: int) -> bytes:
    """The log of so many transactions, whose second page is in each of them."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA page_size = {page}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE note (text)")
        for number in range(ROWS):
            db.execute("INSERT INTO note VALUES (?)", (f"note {number}",))
        return path.with_name(f"{path.name}-wal").read_bytes()


@pytest.fixture(scope="module", params=[512, 4_096, 16_384])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, int]:
    return log_of(tmp_path_factory.mktemp("log") / "a.db", request.param), request.param


def versions(log: bytes, *, whole: bool) -> list[bytes]:
    return list(pages_in(BytesIO(log), 2, whole=whole))


def test_the_checksums_of_a_whole_log_fit(log: tuple[bytes, int]) -> None:
    found = versions(log[0], whole=True)
    assert len(found) > ROWS // 2
    assert found == versions(log[0], whole=False)


@given(place=st.integers(0, 10**9), bit=st.integers(0, 7))
def test_nothing_is_read_from_a_changed_page_on(log: tuple[bytes, int], place: int, bit: int) -> None:
    content, page = log
    place = HEADER + place % (len(content) - HEADER)
    number, within = divmod(place - HEADER, FRAME + page)
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    found = versions(bytes(changed), whole=True)
    assert found == versions(content[: HEADER + number * (FRAME + page)], whole=True), within


def test_what_is_no_log_has_no_pages() -> None:
    assert versions(b"", whole=True) == versions(bytes(100), whole=False) == []
