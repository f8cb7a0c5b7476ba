"""Conditions on nested data, against a plain reading of what they mean."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core import DataCondition, Draft, Json, Memory, Where, run_sync
from memory_core.where.meaning import matcher

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -0.0]) | st.sampled_from("abé\0")
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz."), inner, max_size=3)
)
PATHS = st.lists(st.sampled_from(["x", "y", "z", ".", 0, 1]), min_size=1, max_size=3).map(tuple)


def holds(condition: DataCondition, data: Any) -> bool:
    return matcher(condition)(SimpleNamespace(data=data))


def written(value: object) -> str:
    """A spelling that two JSON values share exactly when they are equal."""
    match value:
        case bool() | None | str():
            return repr(value)
        case int() | float():
            return repr(float(value) + 0.0)
        case list():
            return f"[{','.join(map(written, value))}]"
        case dict():
            return f"{{{','.join(f'{key!r}:{written(value[key])}' for key in sorted(value))}}}"
        case _:
            raise AssertionError(value)


def oracle(data: Any, path: tuple[str | int, ...], op: str, wanted: Any) -> bool:
    found: list[Any] = [data]
    for step in path:
        if isinstance(step, str):
            found = [item[step] for item in found if isinstance(item, dict) and step in item]
        else:
            found = [item[step] for item in found if isinstance(item, list) and step < len(item)]
    if op in {"eq", "ne"}:
        return ([written(item) for item in found] == [written(wanted)]) == (op == "eq")
    kinds = {str} if isinstance(wanted, str) else {int, float}
    return any(
        type(item) in kinds
        and {"gt": item > wanted, "gte": item >= wanted, "lt": item < wanted, "lte": item <= wanted}[op]
        for item in found
    )


@given(VALUES, PATHS, st.sampled_from(["eq", "ne"]), VALUES)
def test_equality_means_the_same_value_at_the_path(data: Json, path: Any, op: Any, wanted: Json) -> None:
    assert holds(DataCondition(path, op, wanted), data) == oracle(data, path, op, wanted)


@given(
    VALUES,
    PATHS,
    st.sampled_from(["gt", "gte", "lt", "lte"]),
    st.integers(-3, 3) | st.sampled_from("abé") | st.just(0.5),
)
def test_order_exists_among_numbers_and_among_texts(data: Json, path: Any, op: Any, wanted: Json) -> None:
    assert holds(DataCondition(path, op, wanted), data) == oracle(data, path, op, wanted)


@settings(max_examples=20)
@given(st.lists(st.dictionaries(st.sampled_from("xyz."), VALUES, min_size=1), max_size=4), PATHS, VALUES)
def test_the_store_finds_exactly_what_matches(held: list[dict[str, Json]], path: Any, wanted: Json) -> None:
    with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(user="ann")
        run_sync(ann.add_many, [Draft(str(n), data=data) for n, data in enumerate(held)])
        for op in ("eq", "ne"):
            where = Where(matching=[DataCondition(path, op, wanted)])
            found = {int(record.text) for record in run_sync(ann.list, where=where).records}
            assert found == {n for n, data in enumerate(held) if oracle(data, path, op, wanted)}
