"""Complaints about values from outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memory_core.values.complaints import MOST_NAMED, complaints


def test_no_more_wrong_fields_are_looked_at_than_an_answer_names() -> None:
    looked_at: list[int] = []

    def errors() -> Iterator[dict[str, Any]]:
        for number in range(1_000):
            looked_at.append(number)
            yield {"type": "string_type", "loc": ("tags", number), "msg": "Input should be a valid string"}

    said = complaints(errors(), {"tags": [0] * 1_000})
    assert said.count("tags.") == MOST_NAMED
    assert said.endswith("; and more")
    assert len(looked_at) == MOST_NAMED + 1


def test_a_complaint_that_is_said_twice_is_said_once() -> None:
    error = {"type": "missing", "loc": ("text",), "msg": ""}
    assert complaints([error, error], {}) == "text: is missing"
