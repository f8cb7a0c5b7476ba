"""ADK's own test cases of its memory services, with this service in the place of ADK's: how many hold.

    ADK_CHECKOUT=~/adk-python python -m tests.adapters.adk.upstream

`ADK_CHECKOUT` is a checkout of github.com/google/adk-python at the installed version. Cases that look into an object or
a file of ADK's own say nothing about another service and are left out. `published.py` has the same cases in our words,
which CI runs, and `docs/howto/adk-services.md` explains what does not hold.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import google.adk.memory
import google.adk.memory.in_memory_memory_service
import pytest
from google.adk.memory.base_memory_service import SearchMemoryResponse

from memory_adk import MemoryService
from memory_core import Memory
from memory_core.adapting import settled

FILES: Final = ("test_in_memory_memory_service.py", "test_sqlite_memory_service.py")
KINDS: Final = ("by default", "words alone")
_OF_FILES: Final = frozenset({"sqlite3", "aiosqlite", "get_db_schema_version", "RuntimeError"})
"""Names in a case that looks into a file, or expects an error of ADK's own."""


class Swapped(MemoryService):
    """A service that can be made as ADK's are; what it has stored is found by meaning at once."""

    def __init__(self, db_path: str | Path = ":memory:", *, kind: str, fts: str = "off") -> None:
        address = urlsplit(str(db_path))
        path = address.path.removeprefix("/") if address.scheme else str(db_path)
        options: dict[str, Any] = {"embedder": None} if kind == "words alone" else {}
        self._is_only_read = "mode=ro" in address.query
        super().__init__(Memory(path, read_only=self._is_only_read, **options), owns_memory=True)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        if not self._is_only_read:
            await settled(self.handle(app_name, user_id))
        return await super().search_memory(app_name=app_name, user_id=user_id, query=query)


class Counting:
    """Leaves cases out that do not fit another service, and counts the others."""

    def __init__(self) -> None:
        self.outcomes: dict[str, bool] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if isinstance(item, pytest.Function) and is_public(item.function)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self.outcomes[report.nodeid] = report.passed and self.outcomes.get(report.nodeid, True)


def is_public(case: Callable[..., object]) -> bool:
    """True if a case uses nothing but what every memory service has."""
    parts = list(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(case)))))
    attributes = {part.attr for part in parts if isinstance(part, ast.Attribute)}
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return not names & _OF_FILES and not any(name.startswith("_") for name in attributes)


def outcomes(checkout: Path, kind: str) -> dict[str, bool]:
    """The cases by name, each with whether it holds. They are run once a process, because the cases are modules."""

    def made(*arguments: Any, **options: Any) -> Swapped:
        return Swapped(*arguments, kind=kind, **options)

    counting = Counting()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(google.adk.memory, "SqliteMemoryService", made)
        patch.setattr(google.adk.memory.in_memory_memory_service, "InMemoryMemoryService", made)
        files = [str(checkout / "tests" / "unittests" / "memory" / name) for name in FILES]
        alone = ["--noconftest", "--import-mode=importlib", f"--rootdir={checkout}", "-c", os.devnull]
        pytest.main(["-q", *alone, "-p", "no:cacheprovider", *files], plugins=[counting])
    return counting.outcomes


def main() -> None:
    if "ADK_CHECKOUT" not in os.environ:
        sys.exit("nothing is counted: set ADK_CHECKOUT to a checkout of github.com/google/adk-python")
    if not sys.argv[1:]:
        for kind in KINDS:
            subprocess.run([sys.executable, "-m", "tests.adapters.adk.upstream", kind], check=True)
        return
    found = outcomes(Path(os.environ["ADK_CHECKOUT"]), sys.argv[1])
    sys.stdout.write(f"{sys.argv[1]}: {sum(found.values())} of {len(found)} hold\n")
    sys.stdout.writelines(f"  not {name.rpartition('::')[2]}\n" for name, holds in found.items() if not holds)


if __name__ == "__main__":
    main()
