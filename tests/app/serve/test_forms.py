"""The answer of the page to a change, and what it keeps when a change is refused or a condition is added."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from memory_core import Draft, Link, Memory, Patch, Scope
from memory_core.app.serve.application import application
from memory_core.app.serve.callers import Caller
from memory_core.app.serve.served import Served, Space
from memory_core.app.showing import first_lines
from tests.app.serve.test_api import HOST, served

BASE = "/o/default/ann"


@pytest.fixture
def what(tmp_path: Path) -> Iterator[Served]:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann").sync
        ann.add(Draft("The cat is called Mohrle", id="cat", kind="fact", tags=["pets"]))
        ann.add(Draft("We chose the north pier", id="pier", kind="decision", session="monday"))
        memory.bind(user="team").sync.add(Draft("The crane is booked", kind="note", collection="harbour"))
        yield served(memory)


@pytest.fixture
def client(what: Served) -> TestClient:
    return signed_in(what)


def signed_in(what: Served, user: str | None = "ann") -> TestClient:
    client = TestClient(application(what), base_url=HOST, follow_redirects=True)
    client.cookies.set("memory_core_8765", what.signer.cookie(Caller(user), 2e9))
    return client


def send(client: TestClient, what: Served, id: str, form: str, **fields: object) -> Any:  # noqa: A002
    """Send a form of a record's page, as the page would: with the version that it shows now unless one is given."""
    record = what.memory.bind(user="ann").sync.get(id)
    cookie = client.cookies["memory_core_8765"]
    sent = {"csrf": what.signer.form_token(cookie), "version": "" if record is None else record.version} | fields
    return client.post(f"{BASE}/records/{id}/{form}", data={name: str(value) for name, value in sent.items()})


def texts(what: Served) -> dict[str, str]:
    return {record.id: record.text for record in what.memory.bind(user="ann").sync.list()}


def test_a_correction_that_changes_nothing_says_so_and_undoes_nothing(client: TestClient, what: Served) -> None:
    page = send(client, what, "cat", "correct", text="The cat is called Minka").text
    assert "It is corrected." in page
    assert "/revert" in page.partition("</form>")[0] + page
    page = send(client, what, "cat", "correct", text="The cat is called Minka").text
    assert "Nothing was changed" in page
    assert "Undo" not in page.partition("<article")[0]
    page = send(client, what, "cat", "revert", rev=1).text
    assert "The earlier text is back." in page
    assert "It is corrected." not in page


@pytest.mark.parametrize(
    "address",
    ["?done=archived", "?done=archived&version=1", "?done=pinned&version=1", "?done=corrected&version=1", "?done=x"],
)
def test_an_address_cannot_claim_a_change_that_was_not_made(client: TestClient, address: str) -> None:
    assert 'role="status"' not in client.get(f"{BASE}/records/cat{address}").text


def test_an_undo_is_offered_only_as_long_as_nothing_else_has_changed(client: TestClient, what: Served) -> None:
    archived = send(client, what, "cat", "archive")
    assert "It is archived" in archived.text
    what.memory.bind(user="ann").sync.update("cat", Patch(tags=["later"]))
    assert "It is archived" not in client.get(str(archived.url)).text


@pytest.mark.parametrize("form", ["correct", "supersede"])
def test_what_was_typed_is_kept_when_a_form_is_out_of_date(client: TestClient, what: Served, form: str) -> None:
    what.memory.bind(user="ann").sync.update("cat", Patch(text="The cat is called Minka"))
    answer = send(client, what, "cat", form, text="The cat is called <Lulu>", version=1)
    assert answer.status_code == 412
    assert "has changed since" in answer.text
    assert "The cat is called &lt;Lulu&gt;</textarea>" in answer.text
    assert "The cat is called Minka" in answer.text
    assert texts(what)["cat"] == "The cat is called Minka"
    version = re.search(r'name="version" value="(\d+)"', answer.text)
    assert version is not None
    again = send(client, what, "cat", form, text="The cat is called <Lulu>", version=version[1])
    assert again.status_code == 200
    assert "The cat is called <Lulu>" in texts(what).values()


def forget_form(page: str) -> str:
    """The form that asks before a memory is forgotten, as a person reads it."""
    (form,) = re.findall(r'<form[^>]*/forget".*?</form>', page, re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", " ", form))


def test_the_question_before_forgetting_shows_what_goes_as_the_command_line_does(
    client: TestClient, what: Served
) -> None:
    ann = what.memory.bind(user="ann").sync
    long = ann.add(Draft("first line\nsecond line <b>bold</b> \u202e\x1b[2J " + "x" * 5_000, id="long"))
    ann.add(Draft("", data={"berth": 14}, id="data"))
    for record, shown in ((long, first_lines([long])[0]), (None, "(no text)")):
        page = client.get(f"{BASE}/records/{'data' if record is None else record.id}").text
        assert shown in forget_form(page)
    assert "first line" in first_lines([long])[0]
    assert "\x1b" not in forget_form(client.get(f"{BASE}/records/long").text)


def test_what_is_forgotten_is_the_version_that_the_question_showed(client: TestClient, what: Served) -> None:
    ann = what.memory.bind(user="ann").sync
    version = ann.update("cat", Patch(text="The cat is called Minka")).version
    refused = send(client, what, "cat", "forget", version=version - 1)
    assert refused.status_code == 412
    assert "nothing was written" in refused.text
    assert "The cat is called Minka" in forget_form(refused.text)
    assert texts(what)["cat"] == "The cat is called Minka"
    assert send(client, what, "cat", "forget").status_code == 200
    assert "cat" not in texts(what)


def test_an_empty_text_is_refused_on_the_page_of_the_memory(client: TestClient, what: Served) -> None:
    answer = send(client, what, "cat", "correct", text="  ")
    assert answer.status_code == 422
    assert "Text must not be empty." in answer.text
    assert "Change it" in answer.text


def links(page: str) -> list[str]:
    return [unescape(each) for each in re.findall(r'href="([^"]*)"', page)]


def test_a_facet_keeps_the_query_and_the_other_conditions(client: TestClient) -> None:
    asked = {"q": "pier", "keywords": "north", "kinds": "fact"}
    page = client.get(f"{BASE}/facets", params=asked).text
    assert f"{BASE}?q=pier&keywords=north&kinds=fact&tiers=medium" in links(page)
    listed = unescape(client.get(BASE, params=asked).text)
    assert f'hx-get="{BASE}/facets?q=pier&keywords=north&kinds=fact"' in listed


def test_the_form_of_conditions_keeps_those_that_it_has_no_fields_for(client: TestClient) -> None:
    page = client.get(BASE, params={"kinds": "decision", "session": "monday"}).text
    form = page.partition("Conditions")[2].partition("</form>")[0]
    assert '<input type="hidden" name="kinds" value="decision">' in form
    assert 'name="session" dir="auto" value="monday"' in form


def test_empty_fields_of_a_form_do_not_stay_in_the_address(client: TestClient) -> None:
    answer = client.get(BASE, params={"q": "", "keywords": "north", "since": "", "kinds": "decision"})
    assert answer.url.query == b"keywords=north&kinds=decision"


def test_a_condition_that_does_not_exist_is_refused(client: TestClient) -> None:
    answer = client.get(BASE, params={"tags": "pets"})
    assert answer.status_code == 422
    assert "There is no condition &#39;tags&#39;" in answer.text
    assert "tags_any" in answer.text
    assert BASE in links(answer.text)


def test_facets_count_what_the_list_lists(what: Served) -> None:
    shared = replace(what, spaces={"team": Space("team", is_writable=False)})
    page = signed_in(shared).get(f"{BASE}/facets").text
    assert f"{BASE}?under=harbour" in links(page)
    assert "Statistics of your own memories" in signed_in(shared).get(f"{BASE}/stats").text


def test_a_search_of_a_page_that_is_no_longer_signed_in_leads_to_the_sign_in(client: TestClient) -> None:
    client.cookies.clear()
    shown = f"{HOST}{BASE}?kinds=fact"
    answer = client.get(BASE, params={"q": "pier"}, headers={"HX-Request": "true", "HX-Current-URL": shown})
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"] == "/sign-in?then=%2Fo%2Fdefault%2Fann%3Fkinds%3Dfact"
    assert answer.text == ""
    whole = client.get(f"{BASE}?kinds=fact")
    assert "then=%2Fo%2Fdefault%2Fann%3Fkinds%3Dfact" in str(whole.url)


def test_signing_out_needs_the_form_of_the_page(client: TestClient, what: Served) -> None:
    assert client.post("/sign-out", data={"csrf": "no"}).status_code == 403
    assert "Sign out" in client.get(BASE).text
    csrf = what.signer.form_token(client.cookies["memory_core_8765"])
    answer = client.post("/sign-out", data={"csrf": csrf})
    assert answer.url.path == "/sign-in"
    assert "Max-Age=0" in answer.history[0].headers["set-cookie"]


def test_signing_out_ends_the_sessions_of_the_caller_in_all_browsers_and_of_nobody_else(what: Served) -> None:
    first, second, tom = signed_in(what), signed_in(what), signed_in(what, "tom")
    cookie = first.cookies["memory_core_8765"]
    first.post("/sign-out", data={"csrf": what.signer.form_token(cookie)})
    first.cookies.set("memory_core_8765", cookie)  # somebody has kept it
    for one in (first, second):
        assert one.get(BASE).url.path == "/sign-in"
        assert one.post(f"{BASE}/add", data={"text": "x"}).status_code == 401
    assert tom.get("/o/default/tom").status_code == 200
    assert signed_in(what).get(BASE).url.path == BASE  # who signs in again is in


def test_an_operator_without_memories_begins_at_the_people(what: Served) -> None:
    assert signed_in(what, None).get("/").url.path == "/owners"
    as_ann = replace(what, owner=Scope("default", "ann"))
    assert signed_in(as_ann, None).get("/").url.path == BASE


def test_a_search_says_how_many_it_has_found_and_leads_to_all_of_them(client: TestClient, what: Served) -> None:
    what.memory.bind(user="ann").sync.add_many([f"Ann met person {n} at the lighthouse" for n in range(30)])
    first = client.get(f"{BASE}?q=lighthouse").text
    assert "20 of 30 memories" in first
    more = re.search(r'class="more" href="([^"]*)"', first)
    assert more is not None
    second = client.get(unescape(more[1])).text
    assert "30 memories" in second
    assert 'class="more"' not in second
    assert [page.count('id="place-') for page in (first, second)] == [20, 30]


def test_a_search_that_finds_very_much_says_so(client: TestClient, what: Served) -> None:
    what.memory.bind(user="ann").sync.add_many([f"Ann met person {n} at the lighthouse" for n in range(130)])
    assert "20 of 130 memories" in client.get(f"{BASE}?q=lighthouse").text
    last = client.get(f"{BASE}?q=lighthouse&shown=140").text
    assert "130 memories" in last
    assert last.count('id="place-') == 130
    what.memory.bind(user="ann").sync.add_many([f"Ann met boat {n} at the lighthouse" for n in range(900)])
    assert "20 of 1000 or more memories" in client.get(f"{BASE}?q=lighthouse").text


def test_what_is_not_found_leads_back(client: TestClient) -> None:
    page = client.get(f"{BASE}/records/nobody")
    assert page.status_code == 404
    assert "<h1>Not found</h1>" in page.text
    assert BASE in links(page.text)


def test_an_accepted_proposal_leads_to_the_memory_that_it_archived(client: TestClient, what: Served) -> None:
    what.memory.bind(user="ann").sync.add(Draft("the cat is called Mohrle.", kind="fact"))
    proposals = client.get(f"{BASE}/proposals").text
    step = re.search(r'name="step" value="(\w+)"', proposals)
    assert step is not None
    csrf = what.signer.form_token(client.cookies["memory_core_8765"])
    done = client.post(f"{BASE}/proposals/accept", data={"csrf": csrf, "step": step[1]}).text
    (archived,) = [link for link in links(done.partition("<ol")[0]) if "/records/" in link]
    assert "Bring back" in client.get(archived).text


def test_proposals_are_about_the_newest_memories_and_the_page_says_how_many(client: TestClient, what: Served) -> None:
    ann = what.memory.bind(user="ann").sync
    charts = [Draft(f"Chart {number} of the harbour", data={"chart": "x" * 480_000}) for number in range(12)]
    for draft in [Draft("The ferry leaves at nine", kind="fact"), *charts, *[Draft("Tea is a leaf", kind="fact")] * 2]:
        ann.add(draft)
    page = client.get(f"{BASE}/proposals").text
    count = re.search(r"about the (\d+) newest memories", page)
    assert count is not None
    assert 2 < int(count[1]) < 14
    assert "Tea is a leaf" in page
    ann.add(Draft("The ferry leaves at nine", kind="fact"))
    assert "ferry" not in client.get(f"{BASE}/proposals").text
    for record in ann.list(limit=50).records:
        if record.text.startswith("Chart"):
            ann.delete(record.id)
    page = client.get(f"{BASE}/proposals").text
    assert "newest memories" not in page
    assert "The ferry leaves at nine" in page


def test_what_is_refused_stays_refused_however_much_is_refused_later(client: TestClient, what: Served) -> None:
    ann = what.memory.bind(user="ann").sync
    for text in ("The ferry leaves at nine", "The ferry leaves at nine"):
        ann.add(Draft(text, kind="fact"))
    page = client.get(f"{BASE}/proposals").text
    assert "The ferry leaves at nine" in page
    step = re.search(r'name="step" value="([^"]*)"', page)
    assert step is not None
    csrf = what.signer.form_token(client.cookies["memory_core_8765"])
    client.post(f"{BASE}/proposals/refuse", data={"csrf": csrf, "step": unescape(step[1])})
    assert "The ferry leaves at nine" not in client.get(f"{BASE}/proposals").text
    for number in range(12):
        later = ann.add(Draft(kind="undone", data={"steps": [["duplicate", f"{number}" + "x" * 480_000]]}))
        ann.update(later.id, Patch(state="archived"))
    assert "The ferry leaves at nine" not in client.get(f"{BASE}/proposals").text


def test_what_goes_with_a_memory_is_counted_before_and_after_and_why_shows_its_source(
    client: TestClient, what: Served
) -> None:
    ann = what.memory.bind(user="ann").sync
    code = ann.add(Draft("The door code is 2231", id="code"))
    fact = ann.add(Draft("Ann's code is 2231", id="fact", links=[Link("derived_from", code.id, code.rev)]))
    ann.add(Draft("Codes: 2231", id="sum", links=[Link("summarizes", fact.id, fact.rev)]))
    assert "1 memory and 2 made from it" in forget_form(client.get(f"{BASE}/records/code").text)
    page = client.get(f"{BASE}/records/fact").text
    assert "1 memory and 1 made from it" in forget_form(page)
    assert "The door code is 2231" in page.partition("forget there")[2].partition("</ul>")[0]
    assert "The door code is 2231" in client.get(f"{BASE}/why?id=fact&q=code").text
    assert "with 2 made from it" in send(client, what, "code", "forget").text
    assert not {"code", "fact", "sum"} & texts(what).keys()
