"""Limits: what is too large is refused by its size alone, and the reference names every limit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, overload

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import (
    AnyOf,
    DataCondition,
    Draft,
    FieldCondition,
    InvalidInputError,
    Link,
    Memory,
    Patch,
    Scope,
    Where,
    data_conditions,
    utc_now,
)
from memory_core.records.draft_to_record import (
    check_expiries,
    complete,
    complete_items,
    is_long_batch,
    is_long_patch,
)
from memory_core.records.fields import check_data
from memory_core.values import limits
from memory_core.values.json_checks import check_json, least_bytes
from memory_core.values.json_text import json_bytes
from memory_core.values.limits import MAX_DATA_BYTES, MAX_DATA_VALUES
from memory_core.values.long_texts import is_long as text_is_long
from memory_core.where.checks import check_where

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "limits.md"
SCOPE = Scope("app", "ann")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


class Huge(Sequence[Any]):
    """A million values, none of which anybody may look at."""

    def __len__(self) -> int:
        return 1_000_000

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> NoReturn:
        raise AssertionError("somebody looked at the values of a list that is too long")

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("somebody walked through a list that is too long")


class HugeList(list[Any]):
    """The same for what asks for a list."""

    def __len__(self) -> int:
        return 1_000_000

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("somebody walked through a list that is too long")


HUGE: Any = Huge()
TOO_LONG: dict[str, Callable[[], object]] = {
    "ids": lambda: check_where(Where(ids=HUGE)),
    "source_keys": lambda: check_where(Where(source_keys=HUGE)),
    "kinds": lambda: check_where(Where(kinds=HUGE)),
    "tags_any": lambda: check_where(Where(tags_any=HUGE)),
    "tags_all": lambda: check_where(Where(tags_all=HUGE)),
    "keywords": lambda: check_where(Where(keywords=HUGE)),
    "links": lambda: check_where(Where(links=HUGE)),
    "states": lambda: check_where(Where(states=HUGE)),
    "matching": lambda: check_where(Where(matching=HUGE)),
    "group": lambda: check_where(Where(matching=[AnyOf(HUGE)])),
    "in data": lambda: check_where(Where(matching=[DataCondition(("a",), "in", HUGE)])),
    "in a field": lambda: check_where(Where(matching=[FieldCondition("id", "nin", HUGE)])),
    "path": lambda: check_where(Where(matching=[DataCondition(HUGE, "eq", 1)])),
    "value": lambda: check_where(Where(matching=[DataCondition(("a",), "eq", HugeList([1]))])),
    "$in": lambda: check_where(Where(matching=data_conditions({"a": {"$in": HugeList([1])}}))),
    "tags": lambda: complete(Draft("x", tags=HUGE), SCOPE, utc_now()),
    "links of a record": lambda: complete(Draft("x", links=HUGE), SCOPE, utc_now()),
    "data": lambda: complete(Draft("x", data={"a": {"b": HugeList([1])}}), SCOPE, utc_now()),
    "remove": lambda: complete_items([], HUGE, SCOPE, utc_now()),
}


@pytest.mark.parametrize("call", TOO_LONG.values(), ids=TOO_LONG.keys())
def test_a_list_that_is_too_long_is_refused_without_a_look_at_its_values(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidInputError, match="at most"):
        call()


def test_what_would_be_read_again_and_again_is_refused() -> None:
    small: Any = {"$and": [{"a": 1}, {"a": 2}]}
    for _ in range(100):
        small = {"$and": [small, small]}
    with pytest.raises(InvalidInputError, match="a filter has 101 conditions"):
        data_conditions(small)
    tree: Any = FieldCondition("rev", "eq", 1)
    for _ in range(9):
        tree = AnyOf([tree, tree])
    with pytest.raises(InvalidInputError, match="matching has 1"):
        check_where(Where(matching=[tree]))
    data: Any = ["x" * 10]
    for _ in range(100):
        data = [data, data]
    with pytest.raises(InvalidInputError, match=r"data has .* values"):
        complete(Draft("x", data={"a": data}), SCOPE, utc_now())


def test_what_contains_itself_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["a"] = endless
    with pytest.raises(InvalidInputError, match="nested more than 200 levels"):
        complete(Draft("x", data=endless), SCOPE, utc_now())
    group: list[Any] = []
    group.append(AnyOf(group))
    with pytest.raises(InvalidInputError, match="levels of groups"):
        check_where(Where(matching=group))


def test_the_size_of_data_is_never_overrated() -> None:
    values: list[Any] = [{"a": [1, 2.5, None, True, "é", {}, []]}, [], {}, "", [[[]]], {"": {"": ""}}, ["x" * 50] * 50]
    for value in values:
        _, size = check_json("data", value, 10_000)
        assert least_bytes("data", value, 10_000) <= size
    with pytest.raises(InvalidInputError, match=r"data has 8 bytes as JSON; at most 7 are allowed: "):
        check_json("data", "\u00e9abcd", 7)


@given(JSON)
def test_the_size_of_data_is_that_of_utf_8(value: Any) -> None:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    assert check_json("data", value, 10_000) == (value, len(text.encode(errors="surrogatepass")))


@pytest.mark.parametrize("character", ["a", "é", "茶", "🍵", "\ud800", "\0"])
def test_every_script_may_fill_the_same_number_of_bytes(character: str) -> None:
    room = MAX_DATA_BYTES - len('{"a":""}')
    text = character * (room // (json_bytes(character) - 2))
    assert check_data({"a": text}) == {"a": text}
    with pytest.raises(InvalidInputError, match=r"data has 40\d{5} bytes as JSON"):
        check_data({"a": text + character})


async def test_a_long_text_of_another_script_is_stored_and_found_by_its_field(tmp_path: Path) -> None:
    text = "日本語 " * 300_000
    async with Memory(tmp_path / "memory.db", embedder=None) as memory:
        ann = memory.bind(app="demo", user="ann")
        kept = await ann.add(Draft("a page", data={"page": text, "lang": "ja"}))
        found = await ann.list(where=Where(data={"lang": "ja"}))
        assert [(record.id, record.data["page"]) for record in found.records] == [(kept.id, text)]


@pytest.mark.slow
def test_many_short_values_are_refused_although_they_have_few_bytes() -> None:
    assert check_json("data", [1] * MAX_DATA_VALUES, MAX_DATA_BYTES)[1] == 2 * MAX_DATA_VALUES + 1
    with pytest.raises(InvalidInputError, match="data has 500001 values; at most 500000 are allowed"):
        check_json("data", [1] * (MAX_DATA_VALUES + 1), MAX_DATA_BYTES)
    with pytest.raises(InvalidInputError, match="values; at most"):
        check_json("data", {"a": [{"b": []} for _ in range(300_000)]}, MAX_DATA_BYTES)


def test_long_work_is_told_from_short() -> None:
    assert not is_long_batch(["tea", Draft("x" * 1_000_000), Draft("x", data={"a": "short"})])
    assert is_long_batch(["tea"] * 51)
    assert is_long_batch([Draft("x", data={"a": list(range(10_000))})])
    assert not is_long_patch(Patch(text="tea"))
    assert is_long_patch(Patch(text="tea " * 1_000))
    assert is_long_patch(Patch(data={"a": "x" * 20_000}))
    assert text_is_long("x" * 1_001)
    assert text_is_long("é" * 126)
    assert not text_is_long("x" * 500, "é" * 62)


def test_links_and_expiries_are_counted_first() -> None:
    links = [Link("follows", "one")] * 1_001
    with pytest.raises(InvalidInputError, match="a record has 1001 links; at most 1000"):
        complete(Draft("x", links=links), SCOPE, utc_now())
    with pytest.raises(InvalidInputError, match="expiries has 10001 ids"):
        check_expiries(dict.fromkeys(map(str, range(10_001))))


def test_the_reference_names_every_limit_and_its_value() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| `(MAX_\w+)` \| ([\d,]+) ", text, re.MULTILINE))
    held = {name: value for name, value in vars(limits).items() if name.startswith("MAX_")}
    assert {name: int(value.replace(",", "")) for name, value in table.items()} == held
