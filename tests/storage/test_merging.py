"""What becomes of a record when another one has its source key, or when it changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memory_core import Draft, Scope, utc_now
from memory_core.records.draft_to_record import complete
from memory_core.storage.shared.merging import is_searched_differently

NOW = utc_now()
STORED = complete(Draft("Tea at five", author="Ann", session="kitchen"), Scope(app="demo", user="ann"), NOW)


@pytest.mark.parametrize(
    "changes",
    [{"text": "Tea at six"}, {"author": "Bob"}, {"occurred_at": NOW - timedelta(days=1)}, {"session": "garden"}],
    ids=", ".join,
)
def test_words_the_speaker_the_time_and_the_session_change_how_a_record_is_searched(changes: dict[str, Any]) -> None:
    assert is_searched_differently(STORED, replace(STORED, **changes))


@pytest.mark.parametrize(
    "changes",
    [{}, {"tags": ("drinks",)}, {"importance": 0.9}, {"state": "archived"}, {"version": 2}, {"expires_at": NOW}],
    ids=lambda changes: ", ".join(changes) or "nothing",
)
def test_other_fields_do_not_change_how_a_record_is_searched(changes: dict[str, Any]) -> None:
    assert not is_searched_differently(STORED, replace(STORED, **changes))
