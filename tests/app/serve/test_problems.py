"""The statuses of errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_core import MemoryCoreError
from memory_core.app.serve.problems import status_of
from tests.test_docs import ROOT

LINE = re.compile(r"^\| (?P<names>`\w+Error`.*?) \|.*\| (?P<status>\d+) \|$", re.MULTILINE)


def kinds(of: type[MemoryCoreError] = MemoryCoreError) -> Iterator[type[MemoryCoreError]]:
    for kind in of.__subclasses__():
        if kind.__module__ == "memory_core.errors":
            yield kind
            yield from kinds(kind)


def test_the_page_of_errors_says_the_status_of_each() -> None:
    lines = LINE.findall((ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8"))
    said = {name: int(status) for names, status in lines for name in re.findall(r"`(\w+)`", names)}
    answered = {kind.__name__: status_of(kind.__new__(kind)) for kind in kinds()}
    assert len(answered) > 20
    assert answered.items() <= said.items()
