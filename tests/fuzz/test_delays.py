"""Whatever one user sends, another one is answered; `delays.py` measures how long they wait, in `make torture`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fuzz import delays

pytestmark = pytest.mark.slow
FEW = 2
RECORDS = 300


def test_no_request_keeps_another_user_from_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delays, "RECORDS", RECORDS)  # vectors of thousands take longer than all that is asked
    found = asyncio.run(delays.run(tmp_path / "m.db", FEW, seed=2))  # it asks for what the other one has stored
    assert len(found) == FEW


def test_the_search_for_such_requests_ends_in_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delays, "RECORDS", RECORDS)
    assert asyncio.run(delays.run(tmp_path / "m.db", FEW, seed=2, seconds=0)) == []
