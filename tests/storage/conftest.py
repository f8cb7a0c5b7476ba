"""The long forms of contracts."""

from __future__ import annotations

import pytest

from tests.storage.sample import Sample


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that `Sample` leaves out is a long form; the hook of a folder runs before that of the folder above it."""
    seen: set[tuple[object, str]] = set()
    for item in items:
        if isinstance(item, pytest.Function) and issubclass(item.cls or object, Sample):
            promise = (item.cls, item.originalname)
            if promise in seen or not item.cls.holds(item.function):
                item.add_marker(pytest.mark.torture)
            seen.add(promise)
