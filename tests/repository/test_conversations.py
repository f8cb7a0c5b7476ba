"""The tables of `docs/conversations.md` are those of the code, and each row names tests that are there."""

from __future__ import annotations

import ast
from functools import cache

from tests.repository.conversations import FRAMEWORKS, MEANINGS, PAGE, TABLE, TESTS, page


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_the_page_shows_the_tables() -> None:
    shown = PAGE.read_text(encoding="utf-8")
    assert [found[1] for found in TABLE.finditer(shown)] == list(FRAMEWORKS)
    assert shown == page(), "write it again: python -m tests.repository.conversations"


def test_every_row_has_a_meaning_and_tests_that_prove_it() -> None:
    for name, rows in FRAMEWORKS.items():
        for row in rows:
            assert row.meaning.startswith(MEANINGS), f"{name}: {row}"
            assert row.proof, f"{name}: {row}"
            for proof in row.proof:
                file, _, test = proof.partition("::")
                assert test in names_in(file), f"{name}: there is no {proof}"
