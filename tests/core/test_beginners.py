"""Calls that a beginner gets wrong: each is answered with the value and the way out, or does what was meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memory_core import Draft, Memory, RecallOptions, Where, run_sync

Call = Callable[[Any], object]


@dataclass
class Desk:
    """The names that a beginner has in a notebook, untyped."""

    memory: Any
    ann: Any
    record: Any
    hit: Any
    page: Any
    folder: Path


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Memory(tmp_path / "ann.db", embedder=None) as memory:
        ann = memory.bind(user="ann").sync
        record = ann.add("I like jasmine tea")
        yield Desk(memory, ann, record, ann.search("tea")[0], ann.list(), tmp_path)


draft: Any = Draft
where: Any = Where
memory_at: Any = Memory
options: Any = RecallOptions

CALLS: list[tuple[Call, str]] = [
    # opening and binding
    (lambda desk: desk.memory.bind(user=7), "user must be a string, not 7"),
    (lambda desk: desk.memory.bind(user=""), "user must not be empty (got '')"),
    (lambda desk: desk.memory.bind().sync.add("tea"), "bind one first: handle.bind(user=...)"),
    (lambda desk: desk.memory.add("tea"), "write memory.bind(app=..., user=...).add(...)"),
    (lambda desk: desk.memory.sync, "write memory.bind(app=..., user=...).sync"),
    (lambda desk: memory_at(7), "store must be a path or a Store, not 7"),
    (lambda desk: memory_at("sqlite:///ann.db"), "give the path of the file only"),
    (lambda desk: memory_at("ann.db", embedder="minilm"), "embedder must be one, such as MiniLmEmbedder(), or None"),
    (lambda desk: memory_at("ann.db", quota=5), "quota must be a Quota such as Quota(records=10_000)"),
    (lambda desk: run_sync(memory_at(desk.folder).open), "is not a file; give the path of a memory file"),
    (lambda desk: run_sync(memory_at(desk.folder / "typo" / "ann.db").open), "there is no folder"),
    # adding
    (lambda desk: desk.ann.save("tea"), "write add(...)"),
    (lambda desk: desk.ann.add(None), "a memory is a text or a Draft, such as Draft('tea', kind='fact'), not None"),
    (lambda desk: desk.ann.add(""), "nothing to remember: the text is empty ('')"),
    (lambda desk: desk.ann.add({"text": "tea"}), "not {'text': 'tea'}"),
    (lambda desk: desk.ann.add(["tea", "milk"]), "not ['tea', 'milk']"),
    (lambda desk: desk.ann.add_many("tea"), "add_many takes a list of drafts and texts, not 'tea'; add takes one"),
    (lambda desk: desk.ann.add(draft("tea", role="human")), "role must be one of user, assistant, tool, system, not"),
    (lambda desk: desk.ann.add(draft("tea", kind="")), "kind must not be empty (got '')"),
    (lambda desk: desk.ann.add(draft("tea", importance=5)), "importance must be a number from 0 to 1, not 5"),
    (lambda desk: desk.ann.add(draft("tea", tags="hot")), "tags must be a sequence of strings, not 'hot'"),
    (lambda desk: desk.ann.add(draft("tea", occurred_at="2026-01-01")), "occurred_at must be a datetime"),
    (
        lambda desk: desk.ann.add(draft("tea", occurred_at=datetime(2026, 1, 1))),  # noqa: DTZ001  (the mistake)
        "has no time zone; add one, such as +00:00 for UTC",
    ),
    # searching and listing
    (lambda desk: desk.ann.search("tea", limit=0), "limit must be a whole number from 1 to 10000, not 0"),
    (lambda desk: desk.ann.search("tea", limit="3"), "limit must be a whole number from 1 to 10000, not '3'"),
    (lambda desk: desk.ann.search("tea", mode="semantic"), "mode must be one of substring, lexical, vector, hybrid"),
    (lambda desk: desk.ann.search("tea", where={"kind": "fact"}), "such as Where(kinds=['fact'])"),
    (lambda desk: desk.ann.search(None), "query must be a string, not None"),
    (lambda desk: desk.ann.search("tea", where=where(kinds="fact")), "kinds must be a sequence of strings, not 'fact'"),
    (lambda desk: desk.ann.list(where=where(roles=["human"])), "roles must be some of user, assistant, tool, system"),
    (lambda desk: desk.ann.list(order="new"), "order must be one of newest, oldest, importance, accessed, not 'new'"),
    (lambda desk: desk.ann.get_all(), "write list(...)"),
    (lambda desk: desk.ann.count(), "write stats(...)"),
    (lambda desk: desk.ann.retrieve("tea"), "write search(...)"),
    # what comes back
    (lambda desk: desk.hit.text, "write .record.text"),
    (lambda desk: desk.hit.id, "write .record.id"),
    (lambda desk: desk.hit["text"], "a Hit has attributes, not items: write .record"),
    (lambda desk: desk.record["text"], "a MemoryRecord has attributes, not items: write .text"),
    (lambda desk: desk.record.content, "write .text"),
    (lambda desk: desk.record.metadata, "write .data"),
    (lambda desk: desk.page[0], "write .records"),
    # changing
    (lambda desk: desk.ann.forget("tea"), "write delete(...)"),
    (lambda desk: desk.ann.get(desk.record), "id must be a string, not MemoryRecord("),
    (lambda desk: desk.ann.delete("nope"), "there is no memory 'nope'"),
    (lambda desk: desk.ann.update(desk.record.id, "milk"), "changes must be a Patch, such as Patch(text='tea')"),
    # conversations
    (lambda desk: desk.ann.remember("hi"), "a conversation is a list of messages, such as [('user', 'I like tea')]"),
    (lambda desk: desk.ann.remember([{"content": "hi"}]), "a mapping needs a 'role'"),
    (lambda desk: run_sync(desk.ann.handle.add("tea")), "run_sync(handle.add, ...), not handle.add(...)"),
]


@pytest.mark.parametrize(("call", "answer"), CALLS)
def test_a_mistake_is_answered_with_the_value_and_the_way_out(desk: Desk, call: Call, answer: str) -> None:
    with pytest.raises(Exception, match=re.escape(answer)) as caught:
        call(desk)
    assert type(caught.value).__module__ in {"builtins", "memory_core.errors"}


def test_a_page_is_read_like_a_list(desk: Desk) -> None:
    assert [record.text for record in desk.page] == ["I like jasmine tea"]
    assert len(desk.page) == 1


def test_a_refused_call_stores_nothing(desk: Desk) -> None:
    for call, _ in CALLS:
        with pytest.raises(Exception):  # noqa: B017, PT011  (the test above checks which)
            call(desk)
    assert [record.text for record in desk.ann.list()] == ["I like jasmine tea"]
