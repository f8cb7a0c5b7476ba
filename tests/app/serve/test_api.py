"""The API on a memory file, in this process."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from starlette.types import Message

from memory_core import Draft, Memory, Patch, Scope, Where
from memory_core.app.serve.application import application
from memory_core.app.serve.bodies import Question, Search
from memory_core.app.serve.callers import Signer, tokens_of
from memory_core.app.serve.served import Served
from memory_core.recall import asking, recalling
from memory_core.values.limits import PAGE_BYTES

HOST = "http://127.0.0.1:8765"
TOKENS = {name: f"the-long-token-of-{name}".ljust(24, ".") for name in ("ann", "tom", "*")}


def served(memory: Memory, *, writable: bool = True) -> Served:
    """The memory that a server with tokens serves."""
    return Served(
        memory, Scope("default", "operator"), tokens_of(TOKENS), Signer(b"secret"), frozenset(), writable=writable
    )


def as_user(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[name]}"}


@contextmanager
def client_of(path: Path, *, user: str | None = "ann", writable: bool = True) -> Iterator[TestClient]:
    with Memory(path, embedder=None) as memory:
        headers = {} if user is None else as_user(user)
        yield TestClient(application(served(memory, writable=writable)), base_url=HOST, headers=headers)


@pytest.fixture
def ann(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(tmp_path / "m.db") as client:
        yield client


def added(client: TestClient, text: str, **fields: object) -> dict[str, Any]:
    answer = client.post("/v1/records", json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def insist_on_problem(answer: Any, status: int) -> str:
    """The sentence of an answer that says what is wrong."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    detail: str = answer.json()["detail"]
    assert detail
    return detail


async def test_no_request_of_the_api_waits_for_a_thread_of_its_own(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        transport = httpx.ASGITransport(application(served(memory)))
        async with httpx.AsyncClient(transport=transport, base_url=HOST, headers=as_user("ann")) as client:
            assert (await client.post("/v1/records", json={"text": "The key is with Ann"})).status_code == 201
            assert (await client.post("/v1/search", json={"query": "key"})).json()["hits"]
            assert (await client.get("/v1/stats")).json()["records"] == 1
    assert not {thread.name for thread in set(threading.enumerate()) - before if "AnyIO" in thread.name}


def test_what_one_route_stores_all_others_find(ann: TestClient) -> None:
    made = added(ann, "The spare key is with Mrs Okafor", kind="fact", tags=["house"])
    (hit,) = ann.post("/v1/search", json={"query": "spare key", "explain": True}).json()["hits"]
    assert hit["record"] == made
    assert sum(part["weighted"] for part in hit["components"].values()) == pytest.approx(hit["score"])
    assert ann.get("/v1/records", params={"where": '{"tags_all": ["house"]}'}).json()["records"] == [made]
    block = ann.post("/v1/recall", json={"query": "where is the spare key", "explain": True}).json()
    assert "Mrs Okafor" in block["text"]
    assert block["considered"][0]["reason"] == "shown"
    read = {"accessed_at": hit["record"]["accessed_at"], "access_count": 0}
    assert {**ann.get(f"/v1/records/{made['id']}").json(), **read} == made  # recalling it was a read
    assert ann.get("/v1/stats").json()["records"] == 1


def test_a_conversation_is_remembered_once(ann: TestClient) -> None:
    said = {"messages": [{"role": "user", "text": "I drink jasmine tea"}, {"role": "assistant", "text": "Noted"}]}
    first = ann.post("/v1/remember", json={**said, "session": "monday"}).json()["records"]
    again = ann.post("/v1/remember", json={**said, "session": "monday"}).json()["records"]
    assert [each["id"] for each in first] == [each["id"] for each in again]
    assert len(first) == 2


def test_a_prompt_gets_the_profile_and_nothing_that_it_shows(ann: TestClient) -> None:
    added(ann, "Ann is allergic to penicillin", tags=["pinned"])
    added(ann, "The spare key is with Mrs Okafor")
    added(ann, "Where did I leave the spare key of the shed?", session="now", role="user", kind="message")
    question = {"query": "spare key", "session": "now", "profile": True}
    text = ann.post("/v1/recall", json=question).json()["text"]
    assert text.index("penicillin") < text.index("Okafor")
    assert "shed" not in text
    assert "penicillin" not in ann.post("/v1/recall", json={**question, "profile": False}).json()["text"]


def test_an_idempotency_key_adds_once_even_after_a_restart(tmp_path: Path) -> None:
    ids = set()
    for _ in range(2):
        with client_of(tmp_path / "m.db") as client:
            for _ in range(2):
                answer = client.post("/v1/records", json={"text": "tea"}, headers={"Idempotency-Key": "a1"})
                ids.add(answer.json()["id"])
            (record,) = client.get("/v1/records").json()["records"]
            assert record["version"] == 1
    assert len(ids) == 1


def test_another_text_with_an_idempotency_key_changes_the_record(ann: TestClient) -> None:
    key = {"Idempotency-Key": "a1"}
    first, second = (ann.post("/v1/records", json={"text": text}, headers=key).json() for text in ("tea", "coffee"))
    assert (second["id"], second["text"]) == (first["id"], "coffee")
    assert [record["text"] for record in ann.get("/v1/records").json()["records"]] == ["coffee"]


def test_a_change_to_what_has_changed_is_refused(ann: TestClient) -> None:
    made = added(ann, "Ann lives in Oslo")
    place = f"/v1/records/{made['id']}"
    tag = ann.get(place).headers["etag"]
    changed = ann.patch(place, json={"text": "Ann lives in Bergen"}, headers={"If-Match": tag})
    assert changed.json()["rev"] == 2
    assert changed.headers["etag"] != tag
    insist_on_problem(ann.patch(place, json={"text": "Ann lives in Lima"}, headers={"If-Match": tag}), 412)
    insist_on_problem(ann.delete(place, headers={"If-Match": tag}), 412)
    insist_on_problem(ann.patch(place, json={"text": "x"}, headers={"If-Match": "no version"}), 412)
    texts = [each["text"] for each in ann.get(f"{place}/history").json()]
    assert texts == ["Ann lives in Oslo", "Ann lives in Bergen"]
    deleted = ann.delete(place, headers={"If-Match": changed.headers["etag"]})
    assert deleted.json() == {"records": 1, "derived": 0}
    insist_on_problem(ann.get(place), 404)


def test_superseding_archives_the_old_record(ann: TestClient) -> None:
    old = added(ann, "Ann lives in Oslo")
    new = ann.post(f"/v1/records/{old['id']}/supersede", json={"text": "Ann lives in Rome"})
    assert new.status_code == 201
    assert ann.get(f"/v1/records/{old['id']}").json()["state"] == "archived"
    again = ann.post(f"/v1/records/{old['id']}/supersede", json={"text": "Ann lives in Lima"})
    assert "superseded already" in insist_on_problem(again, 409)


def test_pages_lead_through_all_records(ann: TestClient) -> None:
    for number in range(7):
        added(ann, f"note {number}")
    texts, cursor = [], None
    while True:
        page = ann.get("/v1/records", params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
        texts += [record["text"] for record in page["records"]]
        if (cursor := page["cursor"]) is None:
            break
    assert texts == [f"note {number}" for number in reversed(range(7))]


@pytest.mark.parametrize("name", ["a/b", "ann@localhost/phone", "100%", "..%2F", "雪 ?#", "a%2Fb"])
def test_ids_and_owners_may_contain_anything(tmp_path: Path, name: str) -> None:
    from urllib.parse import quote

    with client_of(tmp_path / "m.db", user="*") as operator:
        base = f"/v1/owners/{quote(name, safe='')}/{quote(name, safe='')}"
        made = operator.post(f"{base}/records", json={"text": "tea", "id": name})
        assert made.status_code == 201, made.text
        assert (made.json()["app"], made.json()["user"], made.json()["id"]) == (name, name, name)
        assert operator.get(f"{base}/records/{quote(name, safe='')}").json() == made.json()
        assert operator.get("/v1/owners").json()["owners"][0]["user"] == name


@pytest.mark.slow
def test_an_export_is_what_the_command_imports(ann: TestClient, tmp_path: Path) -> None:
    from memory_core.transfer.jsonl import import_jsonl

    for number in range(600):
        added(ann, f"note {number}")
    lines = ann.get("/v1/export").content.splitlines(keepends=True)
    assert json.loads(lines[-1])["end"]["records"] == 600

    async def imported() -> int:
        async with Memory(tmp_path / "copy.db", embedder=None) as copy:
            return (await import_jsonl(copy, lines)).written

    assert asyncio.run(imported()) == 600


def test_erasing_returns_a_receipt(ann: TestClient) -> None:
    added(ann, "The spare key is with Mrs Okafor")
    receipt = ann.post("/v1/erase").json()
    assert (receipt["records"], receipt["files_clean"]) == (1, True)
    assert ann.get("/v1/records").json()["records"] == []


def test_what_cannot_be_used_is_said_in_one_sentence(ann: TestClient) -> None:
    assert "text" in insist_on_problem(ann.post("/v1/records", json={"text": " "}), 422)
    assert "colour" in insist_on_problem(ann.post("/v1/records", json={"text": "tea", "colour": "red"}), 422)
    insist_on_problem(ann.post("/v1/records", content=b"{", headers={"content-type": "application/json"}), 422)
    insist_on_problem(ann.get("/v1/records", params={"where": "[]"}), 422)
    insist_on_problem(ann.get("/v1/records", params={"limit": 0}), 422)
    insist_on_problem(ann.get("/v1/records", params={"cursor": "nonsense"}), 422)
    insist_on_problem(ann.post("/v1/search", json={"query": "x" * 10_001}), 422)
    insist_on_problem(ann.get("/v1/records/unknown"), 404)
    assert "there is no GET /v1/nothing; /v1/openapi.json" in insist_on_problem(ann.get("/v1/nothing"), 404)
    assert "there is no POST /v1/health" in insist_on_problem(ann.post("/v1/health"), 405)
    insist_on_problem(ann.post("/v1/records", content=b"x" * 16_000_001), 413)


WRONG: tuple[object, ...] = (
    *(None, True, -1, 1.5, "x", "", "2026-05-04T10:00:00", "2020-01-01T00:00:00Z"),
    *([], [7], [None], [{}], [["a"]], {}, {"x": 7}, {"a": {"b": [1]}}),
)
PYTHON = re.compile(
    r"<\w+>|\w\[\w|function|instance|dataclass|tzinfo|lambda|memory_core|Value error|json-or|union"
    r"|\b(?:dict|dictionary|tuple|Sequence|Mapping|class|(?:Data|Field)Condition|AnyOf|AllOf|NoneOf)\b"
    r"|\b(?:Where|Link|Draft|Patch|MemoryRecord)\b"
)
"""Words of Python, of pydantic, and names of our types."""


COMPARED = ("in", "gt", "between", "like", "exists")
MATCHING: tuple[object, ...] = (
    *({"path": wrong, "op": "eq", "value": 1} for wrong in WRONG),
    *({"path": ["a"], "op": wrong, "value": 1} for wrong in WRONG),
    *({"path": ["a"], "op": op, "value": wrong} for op in COMPARED for wrong in WRONG),
    *({"field": wrong, "op": "eq", "value": 1} for wrong in WRONG),
    *({"field": name, "op": op, "value": wrong} for name in ("rev", "tags") for op in COMPARED for wrong in WRONG),
    *({"field": "created_at", "op": op, "value": wrong} for op in COMPARED for wrong in WRONG),
    *({group: wrong} for group in ("any_of", "all_of", "none_of") for wrong in WRONG),
    *({"none_of": [{"any_of": [wrong]}]} for wrong in WRONG),
    *({"path": ["a"], "value": 1}, {"path": ["a"], "op": "eq", "value": 1, "x": 1}),
)
"""Conditions inside `matching`, most of which are wrong."""


@pytest.mark.slow
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.torture)])
def test_no_error_names_python(ann: TestClient, every: int) -> None:
    record = f"/v1/records/{added(ann, 'tea')['id']}"
    requests: list[tuple[str, str, Any]] = [
        *(("POST", "/v1/records", {"text": "tea", each.name: wrong}) for each in fields(Draft) for wrong in WRONG),
        *(("PATCH", record, {each.name: wrong}) for each in fields(Patch) for wrong in WRONG),
        *(
            ("POST", "/v1/search", {"query": "x", "where": {each.name: wrong}})
            for each in fields(Where)
            for wrong in WRONG
        ),
        *(("POST", "/v1/search", {"query": "x", each.name: wrong}) for each in fields(Search) for wrong in WRONG),
        *(("POST", "/v1/recall", {"query": "x", each.name: wrong}) for each in fields(Question) for wrong in WRONG),
        *(("POST", "/v1/remember", {"messages": [{"role": wrong, "text": wrong}], "data": wrong}) for wrong in WRONG),
        *(("PATCH", record, {"links": [{"relation": wrong, "id": wrong}]}) for wrong in WRONG),
        *(("POST", "/v1/search", {"query": "x", "where": {"matching": [one]}}) for one in MATCHING),
    ]
    answers = [ann.request(method, path, json=body) for method, path, body in requests[::every]]
    conditions: list[object] = [
        *WRONG,
        *({each.name: wrong} for each in fields(Where) for wrong in WRONG),
        *({"links": [{"relation": wrong, "id": wrong}]} for wrong in WRONG),
        *({"matching": [one]} for one in MATCHING),
    ]
    answers += [ann.get("/v1/records", params={"where": json.dumps(one)}) for one in conditions[::every]]
    answers += [ann.get("/v1/records", params={each.name: str(wrong)}) for each in fields(Where) for wrong in WRONG]
    values = ("", "x", "-1", "[", "{}", '{"x": 1}', *(json.dumps({each.name: {}}) for each in fields(Where)))
    names = ("cursor", "limit", "order", "where")
    answers += [ann.get("/v1/records", params={name: value}) for name in names for value in values]
    refused = {answer.json()["detail"] for answer in answers if answer.status_code >= 400}
    assert len(refused) > 200 / every
    assert [said for said in refused if PYTHON.search(said)] == []
    assert all(answer.status_code < 500 for answer in answers)


def test_a_wrong_value_is_named_by_what_was_sent(ann: TestClient) -> None:
    record = f"/v1/records/{added(ann, 'tea')['id']}"
    for body, said in (
        ({"user": "bob"}, "body.user: there is no such field"),
        ({"tags": "x"}, "body.tags: must be a JSON array"),
        ({"links": [{"relation": "supersedes"}]}, "body.links.0.id: is missing"),
    ):
        assert insist_on_problem(ann.patch(record, json=body), 422) == said
    for where, said in (
        ({"x": 1}, "there is no field 'x' in where; there are roles, "),
        ({"kinds": "fact"}, "where.kinds must be a list, not 'fact'"),
        ({"kinds": ["fact", 7]}, "where.kinds.1 must be a text, not 7"),
        ({"links": [{"id": "a"}]}, "where.links.0.relation is missing"),
        ({"matching": [{"path": ["a"], "op": "is", "value": 1}]}, "where.matching.0.op must be one of eq, "),
        ({"data": {"a": [1]}}, "where.data.a must be a text or a whole number or a number or true or false, not [1]"),
    ):
        answer = ann.get("/v1/records", params={"where": json.dumps(where)})
        assert insist_on_problem(answer, 422).startswith(said)
    answer = ann.get("/v1/records", params={"matching": '[{"path": ["a"]}]', "where": '{"kinds": []}'})
    assert insist_on_problem(answer, 422) == "matching.0.op is missing"
    conditions = {"where": {"matching": [7]}, "query": "x"}
    assert insist_on_problem(ann.post("/v1/search", json=conditions), 422).startswith("body.where.matching.0: must be")


def test_a_server_that_only_reads_refuses_every_change(tmp_path: Path) -> None:
    with client_of(tmp_path / "m.db") as client:
        made = added(client, "tea")
    with client_of(tmp_path / "m.db", writable=False) as client:
        place = f"/v1/records/{made['id']}"
        changes = [("POST", "/v1/remember"), ("POST", "/v1/records"), ("PATCH", place), ("DELETE", place)]
        changes += [("POST", f"{place}/supersede"), ("POST", "/v1/erase")]
        for method, path in changes:
            body: dict[str, Any] = {"messages": []} if path.endswith("remember") else {"text": "coffee"}
            said = insist_on_problem(client.request(method, path, json=body), 403)
            assert "--write" in said, path
        assert client.get("/v1/records").json()["records"] == [made]


def test_the_api_describes_itself(ann: TestClient) -> None:
    schema = ann.get("/v1/openapi.json").json()
    assert schema["paths"]["/v1/recall"]["post"]["summary"] == "Recall"
    for operations in schema["paths"].values():
        for operation in operations.values():
            assert operation["description"]
            assert "HTTPValidationError" not in json.dumps(operation)


@pytest.mark.parametrize(("limit", "short"), [(100, 70), (61, 70), (5, 70), (70, 70)])
def test_a_page_of_short_texts_has_as_many_as_were_asked_for(ann: TestClient, limit: int, short: int) -> None:
    for number in range(short):
        added(ann, f"note {number}")
    page = ann.get("/v1/records", params={"limit": limit}).json()
    assert len(page["records"]) == min(limit, short)
    assert (page["cursor"] is None) == (limit >= short)


def test_a_page_of_long_texts_ends_early_and_its_cursor_leads_to_the_rest(ann: TestClient) -> None:
    for number in range(24):
        added(ann, f"{number} " + "harbour " * 60_000)
    found, sizes, cursor = list[str](), list[int](), None
    while True:
        page = ann.get("/v1/records", params={"limit": 1_000, **({"cursor": cursor} if cursor else {})}).json()
        found += [record["id"] for record in page["records"]]
        sizes.append(len(page["records"]))
        if (cursor := page["cursor"]) is None:
            break
    assert len(found) == len(set(found)) == 24
    assert max(sizes) * 480_000 < 2 * PAGE_BYTES


def test_a_page_ends_early_also_where_long_texts_follow_many_short_ones(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        owner = memory.bind(user="ann").sync
        owner.add_many([Draft(f"{number} " + "x" * 100_000) for number in range(120)])
        owner.add_many([Draft(f"short {number}") for number in range(248)])
    with client_of(tmp_path / "m.db") as client:
        page = client.get("/v1/records", params={"limit": 1_000}).json()
    assert page["cursor"] is not None
    assert sum(len(record["text"]) for record in page["records"]) < 2 * PAGE_BYTES


async def test_very_many_hits_are_written_a_part_at_a_time(tmp_path: Path) -> None:
    async with Memory(tmp_path / "m.db", embedder=None) as memory:
        await memory.bind(user="ann").add_many([Draft("tea", id=f"{number}") for number in range(550)])
        body = json.dumps({"query": "tea", "limit": 550}).encode()
        headers = {"host": "127.0.0.1", "content-type": "application/json", **as_user("ann")}
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/search",
            "raw_path": b"/v1/search",
            "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        parts, to_send = list[bytes](), [body]

        async def receive() -> Message:
            if not to_send:
                await asyncio.Event().wait()  # the client stays
            return {"type": "http.request", "body": to_send.pop()}

        async def send(message: Message) -> None:
            parts.append(message.get("body", b""))

        await application(served(memory))(scope, receive, send)
    hits = json.loads(b"".join(parts))["hits"]
    assert len({hit["record"]["id"] for hit in hits}) == 550
    assert max(part.count(b'"record"') for part in parts) <= 100


def test_a_search_of_long_texts_ends_early_and_names_the_rest(ann: TestClient) -> None:
    for number in range(24):
        added(ann, f"harbour {number}", data={"chart": "x" * 480_000})
    question: dict[str, Any] = {"query": "harbour", "limit": 1_000}
    found, sizes, rest = list[str](), list[int](), None
    while rest != []:
        where: dict[str, Any] = {} if rest is None else {"ids": rest}
        answer = ann.post("/v1/search", json={**question, "where": where}).json()
        assert answer["hits"]
        found += [hit["record"]["id"] for hit in answer["hits"]]
        sizes.append(len(answer["hits"]))
        rest = answer["rest"]
    assert len(found) == len(set(found)) == 24
    assert max(sizes) * 480_000 < 2 * PAGE_BYTES
    assert len(sizes) > 2


@pytest.mark.parametrize("setting", [{"diversity": 0.5, "limit": 24}, {"mode": "substring"}, {"floor": False}])
def test_a_search_ends_early_however_it_ranks(ann: TestClient, setting: dict[str, Any]) -> None:
    for number in range(24):
        added(ann, f"harbour {number}", data={"chart": "x" * 480_000})
    answer = ann.post("/v1/search", json={"query": "harbour", "limit": 1_000, **setting}).json()
    assert 0 < len(answer["hits"]) * 480_000 < 2 * PAGE_BYTES
    assert len(answer["hits"]) + len(answer["rest"]) == 24


def test_a_page_counts_all_that_is_long_in_a_record(ann: TestClient) -> None:
    for number in range(16):
        links = [{"relation": "follows", "id": f"{number} {place} ".ljust(512, "x")} for place in range(1_000)]
        added(ann, f"note {number}", links=links)
    page = ann.get("/v1/records", params={"limit": 1_000}).json()
    assert page["cursor"] is not None
    assert 0 < len(page["records"]) * 512_000 < 2 * PAGE_BYTES


def test_a_recall_of_long_memories_answers_few_of_them_and_names_the_rest(ann: TestClient) -> None:
    for number in range(24):
        added(ann, f"Boat {number} lies in the harbour", data={"chart": "x" * 480_000})
    answer = ann.post("/v1/recall", json={"query": "boats in the harbour", "max_chars": 100_000, "pulled": True}).json()
    shown = [record["id"] for record in answer["records"]]
    assert 0 < len(shown) * 480_000 < 2 * PAGE_BYTES
    assert len(shown) + len(answer["rest"]) == answer["text"].count("lies in the harbour") > len(shown)


def test_a_recall_reads_no_more_than_its_bytes_allow(ann: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    for searching in (asking, recalling):
        monkeypatch.setattr(searching, "MOST_BYTES", 1_000_000)
    for number in range(24):
        added(ann, f"Boat {number} lies in the harbour", data={"chart": "x" * 200_000})
    question = {"query": "boats in the harbour", "max_chars": 100_000, "pulled": True, "explain": True}
    answer = ann.post("/v1/recall", json=question).json()
    assert 0 < len(answer["considered"]) < 8
