"""The promises of a release are kept: see `docs/stability.md`."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from tests.repository.frozen import FILE, LISTS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", LISTS)
def test_nothing_public_is_taken_away(name: str) -> None:
    promised: dict[str, list[str]] = json.loads(FILE.read_text(encoding="utf-8"))[name]
    kept = LISTS[name]()
    gone = sorted(
        [each for each in promised if each not in kept]
        + [
            f"{each}: {part}"
            for each, parts in promised.items()
            for part in _bare(parts) - _bare(kept.get(each, parts))
        ]
    )
    assert gone == [], (
        "released code uses these; keep them, or say so in docs/changes and run `python -m tests.repository.frozen`"
    )


def test_no_tool_asks_for_an_argument_that_it_did_not_need() -> None:
    promised: dict[str, list[str]] = json.loads(FILE.read_text(encoding="utf-8"))["tools"]
    needed = {
        name: added
        for name, arguments in LISTS["tools"]().items()
        if name in promised and (added := {each for each in arguments if each[-1] == "!"} - set(promised[name]))
    }
    assert needed == {}


def _bare(parts: Iterable[str]) -> set[str]:
    """Parts without the mark of what must be given: an argument may become optional."""
    return {part.removesuffix("!") for part in parts}
