"""Values in today's Python: plain JSON, pydantic, FastAPI, notebooks and the prompt of an interpreter."""

from __future__ import annotations

import copy
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

import memory_core
from memory_core import (
    UNSET,
    AllOf,
    AnyOf,
    Component,
    DataCondition,
    Draft,
    ErasureReceipt,
    FieldCondition,
    Fingerprint,
    Hit,
    Hits,
    InvalidInputError,
    Link,
    Memory,
    MemoryRecord,
    NoneOf,
    Page,
    Passage,
    Patch,
    Scope,
    Stats,
    Version,
    Where,
)
from memory_core.values.unset import Unset
from memory_core.values.value import Value

GROUPS = (AnyOf, AllOf, NoneOf)
KINDS = (
    *GROUPS,
    *(Component, DataCondition, Draft, ErasureReceipt, FieldCondition, Fingerprint, Hit, Link, MemoryRecord),
    *(Page, Passage, Patch, Scope, Stats, Version, Where),
)
KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=9).filter(
    str.strip
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: KEYS,
    bool: st.booleans(),
    int: st.integers(-(2**53), 2**53),
    float: st.floats(allow_nan=False, allow_infinity=False),
    NoneType: st.none(),
    Unset: st.just(UNSET),
    datetime: st.datetimes(timezones=st.just(UTC)),
    Any: JSON,
    object: JSON,
}


def of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that a field of ours may have."""
    if hint in SCALARS:
        return SCALARS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return st.one_of([of(each) for each in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in {tuple, Sequence}:
        return st.lists(of(arguments[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(KEYS, of(arguments[1]), max_size=3)
    return a(hint)


def a(kind: type[Value]) -> st.SearchStrategy[Any]:
    """Any value of one of our classes; a condition on a moment compares with one."""
    if kind is FieldCondition:
        names = st.builds(FieldCondition, st.just("author"), st.sampled_from(["eq", "in"]), KEYS | st.just(["a", "b"]))
        moments = SCALARS[datetime] | st.none() | st.lists(SCALARS[datetime], max_size=3)
        return names | st.builds(FieldCondition, st.just("created_at"), st.just("lt"), moments)
    if kind in GROUPS:
        return group(kind, st.recursive(a(DataCondition) | a(FieldCondition), groups, max_leaves=5))
    hints, own = get_type_hints(kind), fields(cast("Any", kind))
    return st.builds(kind, **{each.name: of(hints[each.name]) for each in own})


def group(kind: type[Value], conditions: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, st.lists(conditions, max_size=3).map(tuple))


def groups(conditions: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of([group(kind, conditions) for kind in GROUPS])


VALUES = st.sampled_from(KINDS).flatmap(a)


ADAPTERS: dict[Any, TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in KINDS}
"""The view that pydantic has of our classes; it takes a while to look."""


@given(VALUES)
def test_every_value_comes_back_from_plain_json(value: Value) -> None:
    text = json.dumps(value.to_dict())
    assert type(value).from_dict(json.loads(text)) == value


@given(VALUES)
def test_pydantic_writes_every_value_down_and_reads_it_again(value: Any) -> None:
    adapter = ADAPTERS[type(value)]
    again = adapter.validate_json(adapter.dump_json(value))
    assert again.to_dict() == value.to_dict()


@given(VALUES)
def test_pydantic_takes_what_to_dict_gives(value: Value) -> None:
    assert ADAPTERS[type(value)].validate_python(value.to_dict()).to_dict() == value.to_dict()


@pytest.mark.parametrize("kind", [*KINDS, Hits], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_pydantic_describes_every_value(kind: type, mode: Literal["validation", "serialization"]) -> None:
    schema = TypeAdapter(kind).json_schema(mode=mode)
    assert schema.get("properties") or schema.get("$ref") or schema["type"] == "array"


class Model(BaseModel):
    record: MemoryRecord
    patch: Patch
    hits: Hits


def test_a_pydantic_model_holds_values_as_they_are() -> None:
    with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(user="ann")
        record = memory_core.run_sync(ann.add, Draft("green tea", data={"cups": [1, {"sugar": None}]}, tags=["drink"]))
        hits = memory_core.run_sync(ann.search, "tea", explain=True)
    model = Model(record=record, patch=Patch(author=None), hits=hits)
    assert model.record is record
    again = Model.model_validate_json(model.model_dump_json())
    assert again == model
    assert isinstance(again.hits, Hits)
    assert json.loads(model.model_dump_json())["patch"] == {"author": None}


def test_pydantic_refuses_what_a_patch_does_not_have() -> None:
    with pytest.raises(ValidationError, match="colour"):
        TypeAdapter(Patch).validate_json('{"colour": "green"}')


def test_fastapi_takes_and_returns_values() -> None:
    app = FastAPI()
    memory = Memory(":memory:", embedder=None)
    ann = memory.bind(user="ann")

    @app.post("/memories")
    async def add(draft: Draft) -> MemoryRecord:
        return await ann.add(draft)

    @app.patch("/memories/{id}")
    async def update(id: str, patch: Patch) -> MemoryRecord:  # noqa: A002
        return await ann.update(id, patch)

    @app.post("/list", response_model=Page)
    async def listed(where: Where) -> Page:
        return await ann.list(where=where)

    @app.get("/search", response_model=list[Hit])
    async def search(q: str) -> Hits:
        return await ann.search(q, explain=True)

    with memory, TestClient(app) as client:
        assert {"Draft", "MemoryRecord", "Where", "Page", "Hit"} <= set(
            client.get("/openapi.json").json()["components"]["schemas"]
        )
        made = client.post("/memories", json={"text": "green tea", "data": {"cups": 2}}).json()
        changed = client.patch(f"/memories/{made['id']}", json={"text": "black tea"}).json()
        assert (changed["text"], changed["rev"], changed["data"]) == ("black tea", 2, {"cups": 2})
        old = {"field": "created_at", "op": "lte", "value": made["created_at"]}
        two = {"path": ["cups"], "op": "eq", "value": 2}
        holding: list[list[dict[str, Any]]] = [
            [old, two],
            [{"any_of": [{"all_of": [old, two]}]}],
            [{"none_of": [{"any_of": []}]}],
        ]
        for matching in holding:
            page = client.post("/list", json={"matching": matching})
            assert Page.from_dict(page.json()).records == (MemoryRecord.from_dict(changed),)
        page = client.post("/list", json={"matching": [old, {"none_of": [two]}]})
        assert Page.from_dict(page.json()).records == ()
        assert client.post("/list", json={"kind": "note"}).status_code == 422  # it is called kinds
        (hit,) = client.get("/search", params={"q": "tea"}).json()
        assert Hit.from_dict(hit).components


@pytest.mark.process
def test_importing_the_core_imports_no_pydantic() -> None:
    code = "import sys, memory_core; assert not [name for name in sys.modules if 'pydantic' in name]"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"id": 3}, "id must be a text, not 3"),
        ({"texts": "tea"}, "there is no field 'texts'; there are "),
        ({"occurred_at": "yesterday"}, "occurred_at must be a time in ISO 8601, not 'yesterday'"),
        ({"tags": "drink"}, "tags must be a list, not 'drink'"),
        ({"links": [{"relation": "follows"}]}, "links.0.id is missing"),
        ({"links": [{"relation": "likes", "id": "a"}]}, "links.0.relation must be "),
        ({"importance": True}, "importance must be a number, not True"),
        ([], "this must be a JSON object, not []"),
    ],
)
def test_what_is_no_value_of_ours_is_refused_with_the_field(given: Any, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(reason)):
        Draft.from_dict(given)


def test_data_that_json_cannot_hold_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    wrong: tuple[dict[str, Any], ...] = ({"moment": object()}, {"deep": deep})
    for data in wrong:
        with pytest.raises(InvalidInputError):
            Draft(data=data).to_dict()


def test_the_repr_of_a_record_is_short_and_ends_with_its_id() -> None:
    with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(user="ann")
        record = memory_core.run_sync(ann.add, Draft("tea " * 500, author="Ann", kind="fact"))
        page = memory_core.run_sync(ann.list)
        (hit,) = memory_core.run_sync(ann.search, "tea")
    assert repr(record).endswith(f", kind='fact', author='Ann', id='{record.id}')")
    assert repr(hit).startswith("Hit(")
    assert repr(record) in repr(hit)
    assert repr(page) == "Page(1 records, cursor=None)"
    assert max(len(repr(record)), len(repr(hit))) < 200
    assert repr(Draft("tea", tags=["drink"])) == "Draft(text='tea', tags=['drink'])"
    assert repr(Where()) == "Where()"
    assert repr(Patch(author=None)) == "Patch(author=None)"


def test_unset_stays_one_object_however_it_is_copied() -> None:
    assert copy.deepcopy(UNSET) is pickle.loads(pickle.dumps(UNSET)) is UNSET
    assert repr(UNSET) == "UNSET"


def test_a_notebook_shows_hits_with_their_parts_and_runs_nothing_that_was_stored() -> None:
    with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(user="ann")
        memory_core.run_sync(ann.add, "<script>alert('tea')</script>")
        plain = memory_core.run_sync(ann.search, "tea")
        explained = memory_core.run_sync(ann.search, "tea", explain=True)
        page = memory_core.run_sync(ann.list)
    for table in (plain._repr_html_(), explained._repr_html_(), page._repr_html_()):
        assert table.startswith("<table>")
        assert "&lt;script&gt;" in table
        assert "<script>" not in table
    assert "parts" not in plain._repr_html_()
    name, part = next(iter((explained[0].components or {}).items()))
    assert f"{name} {part.weighted:.2f}" in explained._repr_html_()
    assert isinstance(plain, list)
