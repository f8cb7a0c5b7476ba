"""A vector for each text of an item: a fact among many is found as LangGraph's own stores find it."""

from __future__ import annotations

import importlib
import inspect
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from memory_core import BoundMemory, Memory, MiniLmEmbedder, run_sync
from memory_langchain import MemoryStore

MODULES = (
    *(
        "argparse",
        "asyncio",
        "calendar",
        "csv",
        "datetime",
        "decimal",
        "difflib",
        "email.message",
        "gzip",
        "http.client",
    ),
    *("json", "logging", "os", "random", "shutil", "smtplib", "socket", "sqlite3", "ssl", "statistics", "subprocess"),
    *("tarfile", "textwrap", "threading", "urllib.request", "xml.etree.ElementTree"),
)
ITEMS = 25


def sentences() -> list[str]:
    """First sentences of the standard library's docstrings: real, diverse, and many of them near to others."""
    found: set[str] = set()
    for module in map(importlib.import_module, MODULES):
        things = [thing for _, thing in inspect.getmembers(module)]
        things += [part for thing in things if inspect.isclass(thing) for _, part in inspect.getmembers(thing)]
        for thing in things:
            text = getattr(thing, "__doc__", None)
            first = " ".join(text.split()).split(". ")[0] if isinstance(text, str) else ""
            if 40 < len(first) < 160:
                found.add(first)
    listed = sorted(found)
    random.Random(2).shuffle(listed)
    return listed


class Known(MiniLmEmbedder):
    """Embeds each text once, since all tests and both stores embed the same ones."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, Any] = {}

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if new:
            self._rows.update(zip(new, await super().embed_documents(new), strict=True))
        return np.stack([self._rows[text] for text in texts])


@pytest.fixture(scope="module")
def embedder() -> Iterator[MiniLmEmbedder]:
    embedder = Known()
    yield embedder
    run_sync(embedder.close)


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, 8, 16])
def test_a_fact_among_many_is_found_at_least_as_often_as_by_langgraphs_store(
    tmp_path: Path, embedder: MiniLmEmbedder, count: int
) -> None:
    known = sentences()
    items = [known[n * count : (n + 1) * count] for n in range(ITEMS)]
    assert all(len(facts) == count for facts in items)

    def embed(texts: Any) -> list[list[float]]:
        return [list(map(float, row)) for row in run_sync(embedder.embed_documents, list(texts))]

    theirs = InMemoryStore(index={"dims": 384, "embed": embed, "fields": ["facts[*].content"]})
    with Memory(tmp_path / "memory.db", embedder=embedder) as memory:
        ours = MemoryStore(memory.bind(user="ann"), fields=["facts[*].content"])
        puts = [
            PutOp(("a",), str(n), {"facts": [{"content": fact} for fact in facts]}) for n, facts in enumerate(items)
        ]
        ours.batch(puts)
        theirs.batch(puts)
        asked = [(random.Random(n).choice(facts), str(n)) for n, facts in enumerate(items)]
        halves = [(" ".join(fact.split()[: len(fact.split()) // 2]), key) for fact, key in asked]
        for queries in (asked, halves):
            found = [(ours.search(("a",), query=query, limit=1)[0].key, key) for query, key in queries]
            wanted = [(theirs.search(("a",), query=query, limit=1)[0].key, key) for query, key in queries]
            assert sum(one == key for one, key in found) >= sum(one == key for one, key in wanted)
        assert all(ours.search(("a",), query=fact, limit=1)[0].key == key for fact, key in asked)


def test_scores_are_the_cosines_that_langgraphs_store_gives(tmp_path: Path) -> None:
    vectors = {"q": [1.0, 0.0], "a": [-1.0, 0.1], "b": [-0.5, 1.0], "c": [-0.9, 0.5], "d": [0.5, 1.0], "e": [0.0, 1.0]}

    def embed(texts: Any) -> list[list[float]]:
        return [vectors.get(text, [0.6, 0.8]) for text in texts]

    index: Any = {"dims": 2, "embed": embed, "fields": ["t[*]"]}
    theirs = InMemoryStore(index=index)
    with MemoryStore.from_conn_string(tmp_path / "memory.db", index=index) as ours:
        for store in (ours, theirs):
            for key, texts in {"a": ["a"], "b": ["b", "a"], "c": ["c"], "d": ["e", "d"]}.items():
                store.put(("x",), key, {"t": texts})
            store.put(("x",), "none", {"t": ["d"]}, index=False)
        found = {item.key: item.score for item in ours.search(("x",), query="q")}
        assert list(found) == ["d", "b", "c", "a", "none"]
        assert found.pop("none") is None
        assert found == pytest.approx(
            {item.key: item.score for item in theirs.search(("x",), query="q") if item.score is not None}, abs=1e-3
        )


def test_texts_beyond_a_thousand_share_the_last_vector(ann: BoundMemory) -> None:
    store = MemoryStore(ann, fields=["t[*]"])
    store.put(("a",), "k", {"t": [f"number{n}" for n in range(1_005)]})
    (record,) = run_sync(ann.list).records
    assert record.text.count("\f") == 999
    assert record.text.endswith("number1003\nnumber1004")
    assert store.search(("a",), query="number1004", limit=1)[0].key == "k"
