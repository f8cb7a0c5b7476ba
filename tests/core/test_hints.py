"""Errors that say what is meant, for those who come from other libraries; and what the package says about itself."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import memory_core
from memory_core import BoundMemory, InvalidInputError, Memory, run_sync
from memory_core.embedding.hashing import HashingEmbedder
from memory_core.operation import OPERATIONS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def memory() -> Any:
    """Untyped, as in a notebook."""
    return Memory(":memory:", embedder=None)


@pytest.mark.parametrize(
    ("name", "instead"),
    [("add", "add"), ("search", "search"), ("get_all", "list"), ("similarity_search", "search")],
)
def test_a_memory_names_the_method_of_a_handle(memory: Any, name: str, instead: str) -> None:
    expected = f"write memory.bind(app=..., user=...).{instead}(...)"
    with pytest.raises(AttributeError, match=re.escape(expected)):
        getattr(memory, name)


@pytest.mark.parametrize(("name", "instead"), [("delete_all", "erase"), ("add_texts", "add_many")])
def test_a_handle_names_its_own_method(memory: Any, name: str, instead: str) -> None:
    with pytest.raises(
        AttributeError, match=re.escape(f"'BoundMemory' object has no attribute {name!r}; write {instead}(...)")
    ):
        getattr(memory.bind(user="ann"), name)


@pytest.mark.parametrize("name", ["_repr_latex_", "colour"])
def test_a_name_that_means_nothing_gets_no_hint(memory: Any, name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(memory, name)
    assert str(caught.value) == f"'Memory' object has no attribute {name!r}"
    assert not hasattr(memory.bind(user="ann"), name)


def test_a_wrong_keyword_gets_the_error_of_python(memory: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'user_id'"):
        memory.bind(user_id="ann")


def test_run_sync_of_a_call_names_the_form_without_the_call(memory: Any, recwarn: pytest.WarningsRecorder) -> None:
    ann = memory.bind(user="ann")
    with pytest.raises(TypeError, match=re.escape("run_sync(handle.add, ...), not handle.add(...)")):
        run_sync(ann.add("tea"))
    assert not recwarn.list


def test_methods_keep_their_signature_and_are_still_coroutines() -> None:
    assert "limit" in inspect.signature(BoundMemory.search).parameters
    assert inspect.iscoroutinefunction(BoundMemory.search)
    assert BoundMemory.search.__doc__


def test_every_public_method_of_a_handle_is_an_operation() -> None:
    methods = {name for name, _ in inspect.getmembers(BoundMemory, inspect.isfunction) if not name.startswith("_")}
    assert sorted(OPERATIONS) == sorted(methods - {"bind", "now", "sharing", "space_of", "label_of"})


def test_the_repr_of_a_memory_says_where_it_is_how_it_embeds_and_whether_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    memory = Memory(path, embedder=HashingEmbedder())
    assert repr(memory) == f"<Memory {str(path)!r}, embedder=HashingEmbedder, not open yet>"
    with memory:
        assert repr(memory).endswith("embedder=HashingEmbedder, open>")
    assert repr(memory).endswith("closed>")
    assert repr(Memory(":memory:")) == "<Memory ':memory:', embedder=DEFAULT_EMBEDDER, not open yet>"


def test_the_package_says_its_version_and_what_it_has() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["version"]["path"] == "memory_core/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", memory_core.__version__)
    assert {*memory_core.__all__, "QdrantStore", "MiniLmEmbedder", "__version__"} <= set(dir(memory_core))


@pytest.mark.process
def test_dir_loads_nothing() -> None:
    code = "import sys, memory_core; dir(memory_core); assert not {'numpy', 'qdrant_client'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


async def test_a_clock_may_have_any_zone_but_must_have_one() -> None:
    tokyo = timezone(timedelta(hours=9))
    async with Memory(":memory:", embedder=None, clock=lambda: datetime(2026, 5, 4, tzinfo=tokyo)) as memory:
        record = await memory.bind(user="ann").add("tea")
        assert {record.created_at, record.occurred_at} == {datetime(2026, 5, 3, 15, tzinfo=UTC)}
        assert record.created_at.tzinfo is UTC
    async with Memory(":memory:", embedder=None, clock=lambda: datetime(2026, 5, 4)) as memory:  # noqa: DTZ001
        ann = memory.bind(user="ann")
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: ann.add("x"),
            lambda: ann.search("x"),
            ann.stats,
            ann.list,
        ]
        for call in calls:
            with pytest.raises(InvalidInputError, match="the time of the clock 2026-05-04T00:00:00 has no time zone"):
                await call()
