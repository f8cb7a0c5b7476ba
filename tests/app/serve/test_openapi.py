"""A request that the description of the API allows never fails, and every answer is as it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import jsonschema  # type: ignore[import-untyped]
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import Memory, Scope
from memory_core.app.serve.application import application, unguarded
from memory_core.app.serve.callers import Signer, tokens_of
from memory_core.app.serve.served import Served
from tests.app.serve.test_api import HOST, TOKENS, as_user

pytestmark = pytest.mark.slow

_TEXT = st.text(max_size=20) | st.sampled_from(
    ["", " ", "\0", "tea", "note", "active", "2026-03-02", "1", "\ud800", "a/b"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)


def _served(memory: Memory) -> Served:
    return Served(
        memory, Scope("default", "operator"), tokens_of(TOKENS), Signer(b"secret"), frozenset(), writable=True
    )


SCHEMA: dict[str, Any] = unguarded(_served(Memory(":memory:", embedder=None))).openapi()
OPERATIONS = [
    (path, method) for path, operations in SCHEMA["paths"].items() for method in operations if "/owners/" not in path
]


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = SCHEMA["components"]["schemas"][name]
    return schema


def values(schema: dict[str, Any], depth: int = 4) -> st.SearchStrategy[Any]:
    """Values that a schema allows, and sometimes others."""
    schema = resolved(schema)
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return st.one_of([values(each, depth) for each in options])
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        if not depth:
            return st.just({})
        fields = {name: values(each, depth - 1) for name, each in schema["properties"].items()}
        required = {name: fields.pop(name) for name in schema.get("required", [])}
        return st.fixed_dictionaries(required, optional=fields)
    if kind == "object":
        return st.dictionaries(_TEXT, _JSON, max_size=3)
    if kind == "array":
        return st.lists(values(schema.get("items", {}), depth - 1), max_size=3) if depth else st.just([])
    return _plain(schema, kind)


def _plain(schema: dict[str, Any], kind: str | None) -> st.SearchStrategy[Any]:
    if kind == "integer":
        return st.integers(schema.get("minimum"), schema.get("maximum"))
    if kind == "number":
        return st.floats(schema.get("minimum"), schema.get("maximum"), allow_nan=False, allow_infinity=False)
    if kind == "boolean":
        return st.booleans()
    if kind == "null":
        return st.none()
    if schema.get("format") == "date-time":
        return st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat()) | _TEXT
    return _TEXT if kind == "string" else _JSON


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with Memory(tmp_path_factory.mktemp("api") / "m.db", embedder=None) as memory:
        yield TestClient(application(_served(memory)), base_url=HOST, headers=as_user("ann"))


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_every_call_is_answered_as_described(client: TestClient, path: str, method: str, data: st.DataObject) -> None:
    client.post("/v1/records", json={"text": "Ann drinks tea", "id": "tea"})  # there is something to find, by that id
    operation = SCHEMA["paths"][path][method]
    parameters = {each["name"]: each for each in operation.get("parameters", [])}
    query: dict[str, Any] = {}
    headers: dict[str, str] = {}
    for name, each in parameters.items():
        value = data.draw(values(each["schema"]), label=name)
        if each["in"] == "path":
            path = path.replace(f"{{{name}}}", segment(str(value)))
        elif value is not None and data.draw(st.booleans(), label=f"send {name}"):
            (query if each["in"] == "query" else headers)[name] = str(value)
    headers = {name: value for name, value in headers.items() if value.isascii() and value.isprintable()}
    content = None
    if body := operation.get("requestBody"):
        value = data.draw(values(body["content"]["application/json"]["schema"]) | _JSON, label="body")
        content = json.dumps(value).encode()
        headers["content-type"] = "application/json"
    query = {name: value.encode(errors="replace").decode() for name, value in query.items()}
    answer = client.request(method, path, params=query, content=content, headers=headers)
    insist_on_description(operation, answer)


def segment(value: str) -> str:
    """A part of a path; clients remove "." and ".." before they send a path (RFC 3986, 5.2.4)."""
    return "x" if value in {"", ".", ".."} else quote(value, safe="", errors="replace")


def insist_on_description(operation: dict[str, Any], answer: Any) -> None:
    """The answer has a status and a body that the description names."""
    assert answer.status_code < 500, answer.text
    described = operation["responses"].get(str(answer.status_code))
    assert described is not None, answer.text
    content = described.get("content", {})
    if not content:
        assert answer.content == b""
        return
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind in content
    if kind in {"application/json", "application/problem+json"}:
        wanted = {**content[kind]["schema"], "components": SCHEMA["components"]}
        jsonschema.Draft202012Validator(wanted).validate(answer.json())


def test_a_client_can_be_made_of_the_description() -> None:
    described = {(path, method): one for path, methods in SCHEMA["paths"].items() for method, one in methods.items()}
    assert SCHEMA["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert SCHEMA["security"] == [{"token": []}]
    open_to_all = {path for (path, _), one in described.items() if one.get("security") == []}
    assert open_to_all == {"/v1/health", "/v1/live"}
    names = [one["operationId"] for one in described.values()]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)
    problems = [
        answer["content"]["application/problem+json"]["schema"]
        for one in described.values()
        for status, answer in one["responses"].items()
        if status >= "400"
    ]
    assert {json.dumps(each) for each in problems} == {'{"$ref": "#/components/schemas/Problem"}'}
