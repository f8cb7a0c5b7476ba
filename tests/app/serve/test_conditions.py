"""The conditions of `GET /v1/records` as parameters, as a client sends them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import pytest
from fastapi.testclient import TestClient

from memory_core import Where
from memory_core.where.where import ALTERNATIVES, CONJUNCTIONS, EQUAL_FIELDS
from tests.app.serve.test_api import added, client_of, insist_on_problem

RECORDS: Final[dict[str, dict[str, Any]]] = {
    "boat": {
        "text": "The boat has berth 14",
        "role": "user",
        "kind": "fact",
        "tier": "high",
        "author": "Ann",
        "agent": "helper",
        "session": "monday",
        "collection": "trips/2025",
        "emotion": "joy",
        "importance": 0.9,
        "confidence": 0.9,
        "tags": ["harbour", "boat"],
        "data": {"berth": 14},
        "links": [{"relation": "follows", "id": "crane"}],
        "occurred_at": "2026-03-02T09:00:00Z",
        "source_key": "key of the boat",
    },
    "crane": {
        "text": "The crane is painted",
        "role": "assistant",
        "kind": "note",
        "tier": "raw",
        "author": "Tom",
        "agent": "other",
        "session": "tuesday",
        "collection": "trips2",
        "emotion": "calm",
        "importance": 0.1,
        "confidence": 0.1,
        "tags": ["harbour"],
        "data": {"berth": 15},
        "occurred_at": "2026-05-02T09:00:00Z",
        "source_key": "key of the crane",
    },
    "buoy": {"text": "The buoy is gone", "occurred_at": "2026-05-03T09:00:00Z"},
    "ferry": {"text": "The ferry is late", "occurred_at": "2026-05-03T09:00:00Z"},
}
"""By id; the buoy is archived, and the ferry was left."""

ONE: Final[dict[str, tuple[str | list[str], str]]] = {
    "roles": ("user", "boat"),
    "kinds": (["fact", "preference"], "boat"),
    "tiers": ("high", "boat"),
    "tags_any": (["boat", "ferry"], "boat"),
    "tags_all": (["harbour", "boat"], "boat"),
    "keywords": ("BERTH", "boat"),
    "author": ("Tom", "crane"),
    "agent": ("helper", "boat"),
    "session": ("tuesday", "crane"),
    "collection": ("trips2", "crane"),
    "under": ("trips", "boat"),
    "emotion": ("joy", "boat"),
    "min_importance": ("0.5", "boat"),
    "min_confidence": ("0.5", "boat"),
    "since": ("2026-04-01", "crane"),
    "until": ("2026-04-01T00:00:00+01:00", "boat"),
    "as_of": ("2026-04-01", "boat"),
    "links": ("follows:crane", "boat"),
    "states": ("archived", "buoy"),
    "left": ("true", "ferry"),
    "data": ('{"berth": 15}', "crane"),
    "matching": ('[{"path": ["berth"], "op": "gt", "value": 14}]', "crane"),
    "ids": (["crane", "buoy", "nobody"], "crane"),
    "source_keys": ("key of the boat", "boat"),
}
"""For each condition what a client sends, and the one record that satisfies it."""

NAMES: Final = [each.name for each in fields(Where)]


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    path: Path = tmp_path_factory.mktemp("conditions") / "m.db"
    with client_of(path) as client:
        for name, given in RECORDS.items():
            added(client, **given, id=name)
        client.patch("/v1/records/buoy", json={"state": "archived"}).raise_for_status()
        client.patch("/v1/records/ferry", json={"left": True}).raise_for_status()
        yield client


def found(client: TestClient, params: dict[str, Any]) -> set[str]:
    answer = client.get("/v1/records", params=params)
    assert answer.status_code == 200, answer.text
    return {record["id"] for record in answer.json()["records"]}


@pytest.mark.parametrize("name", NAMES)
def test_every_condition_is_a_parameter(ann: TestClient, name: str) -> None:
    value, expected = ONE[name]
    assert found(ann, {name: value}) == {expected}
    texts = [value] if isinstance(value, str) else value
    if name not in {*ALTERNATIVES, *CONJUNCTIONS} or name in {"data", "matching", "left"}:
        said = insist_on_problem(ann.get("/v1/records", params={name: [*texts, *texts]}), 422)
        assert said == f"there are 2 values of {name}, which has one"


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_parameter_is_the_empty_value_and_never_no_condition(ann: TestClient, name: str) -> None:
    """An empty list of alternatives matches nothing, nor does an empty name, which no record has; an empty conjunction
    matches everything; what has no empty value is refused by its name."""
    if name in {*ALTERNATIVES, *EQUAL_FIELDS}:
        assert found(ann, {name: ""}) == set()
    elif name in {"tags_all", "links"}:
        assert found(ann, {name: ""}) == {"boat", "crane"}
    else:
        assert insist_on_problem(ann.get("/v1/records", params={name: ""}), 422).startswith(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_that_is_almost_a_condition_is_refused_with_its_name(ann: TestClient, name: str) -> None:
    for wrong in (f"{name}s", name[:-1], name.upper(), f"{name}[]", f"where.{name}"):
        value, _ = ONE[name]
        said = insist_on_problem(ann.get("/v1/records", params={name: value, wrong: value}), 422)
        assert f"there is no parameter {wrong!r} here" in said


@pytest.mark.parametrize("name", NAMES)
def test_a_condition_is_given_as_a_parameter_or_in_the_object(ann: TestClient, name: str) -> None:
    value, expected = ONE[name]
    other = "source_keys" if name != "source_keys" else "kinds"
    where = json.dumps({other: [RECORDS["crane"]["source_key" if name != "source_keys" else "kind"]]})
    assert found(ann, {name: value, "where": where}) == ({expected} & {"crane"})
    twice = {name: value, "where": json.dumps({name: None})}
    assert insist_on_problem(ann.get("/v1/records", params=twice), 422).startswith(
        f"{name} is a parameter and in where"
    )
