"""The lists of the page: kinds, where relevance ends, the way back, people, conversations and times."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from memory_core import Draft, Link, Memory, Patch
from memory_core.app.serve import conversations, people
from memory_core.app.serve.conditions import MOST_OF_DATA
from memory_core.app.serve.page import MOST_COLLECTIONS
from memory_core.app.serve.served import Served, Space
from memory_core.app.serve.shapes import MOST_CHIPS
from memory_core.app.serve.times import ago, in_utc
from memory_core.app.why import NOTHING_IN_COMMON
from memory_core.values.limits import PAGE_BYTES
from tests.app.serve.test_api import served
from tests.app.serve.test_forms import BASE, links, send, signed_in

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
KINDS = {"fact": 3, "decision": 2, "message": 25}


@pytest.fixture
def what(tmp_path: Path) -> Iterator[Served]:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        ann = memory.bind(user="ann").sync
        for kind, count in KINDS.items():
            ann.add_many([Draft(f"{kind} {n} about the harbour", kind=kind, id=f"{kind}{n}") for n in range(count)])
        ann.add(Draft("The cat is called Minka", kind="fact", id="cat", tags=["pets"]))
        memory.bind(user="tom").sync.add(Draft("Tom keeps bees", kind="note"))
        yield served(memory)


@pytest.fixture
def client(what: Served) -> TestClient:
    return signed_in(what)


def kinds(page: str) -> dict[str, int]:
    """The chips of kinds with their counts."""
    chips = page.partition('aria-label="Kinds"')[2].partition("</ul>")[0]
    return {kind: int(count) for kind, count in re.findall(r"<bdi>(.*?)</bdi> (\d+)", chips)}


def shown(page: str) -> list[str]:
    return [unescape(text) for text in re.findall(r'<li id="place-.*?<a href="[^"]*">([^<]*)<', page, re.DOTALL)]


def test_kinds_stand_above_the_list_with_their_counts_and_follow_the_question(client: TestClient) -> None:
    assert kinds(client.get(BASE).text) == {"decision": 2, "fact": 4, "message": 25}
    assert kinds(client.get(f"{BASE}?q=harbour").text) == {"decision": 2, "fact": 3, "message": 25}
    assert kinds(client.get(f"{BASE}?tags_all=pets").text) == {"fact": 1}
    assert kinds(client.get(f"{BASE}?q=cat&kinds=decision").text) == {"decision": 0, "fact": 1}


def test_a_kind_is_chosen_by_its_chip_and_left_by_it(client: TestClient) -> None:
    page = client.get(f"{BASE}?q=harbour&kinds=decision").text
    assert len(shown(page)) == 2
    assert kinds(page) == {"decision": 2, "fact": 3, "message": 25}
    chips = page.partition('aria-label="Kinds"')[2].partition("</ul>")[0]
    assert links(chips) == [f"{BASE}?q=harbour", f"{BASE}?q=harbour&kinds=fact", f"{BASE}?q=harbour&kinds=message"]
    assert chips.count("aria-current") == 1


def test_kinds_count_archived_memories_only_where_the_list_has_them(client: TestClient, what: Served) -> None:
    what.memory.bind(user="ann").sync.update("decision0", Patch(state="archived"))
    assert kinds(client.get(BASE).text)["decision"] == 1
    assert kinds(client.get(f"{BASE}?states=archived").text) == {"decision": 1}


def test_kinds_count_the_spaces_that_the_list_lists(what: Served) -> None:
    shared = replace(what, spaces={"garden": Space("tom", is_writable=False)})
    page = signed_in(shared).get(BASE).text
    assert kinds(page) == {"decision": 2, "fact": 4, "message": 25, "note": 1}
    assert "20 of 32 memories, newest first" in page


def test_a_list_says_how_many_memories_there_are(client: TestClient) -> None:
    assert "20 of 31 memories, newest first" in client.get(BASE).text
    assert "2 memories, newest first" in client.get(f"{BASE}?kinds=decision").text
    assert "1 memory<" in client.get(f"{BASE}?tags_all=pets").text


def test_a_line_says_where_relevance_ends_and_the_best_of_the_rest_follow_it(client: TestClient) -> None:
    page = client.get(f"{BASE}?q=cat").text
    relevant, _, rest = page.partition("Relevance ends here")
    assert shown(relevant) == ["The cat is called Minka"]
    assert 0 < rest.count("<li>") <= 5
    assert "The cat is called Minka" not in rest
    first = client.get(f"{BASE}?q=harbour").text
    assert 'class="more"' in first
    assert "Relevance ends here" not in first


def test_a_search_of_long_texts_shows_what_a_page_may_have_and_counts_the_rest(
    client: TestClient, what: Served
) -> None:
    ann = what.memory.bind(user="ann").sync
    for number in range(24):
        ann.add(Draft(f"ferry {number}", kind="timetable", data={"chart": "x" * 480_000}))
    page = client.get(f"{BASE}?q=ferry").text
    read = len(shown(page))
    assert 0 < read * 480_000 < 2 * PAGE_BYTES
    assert f"{read} of 24 memories" in page
    assert f"{24 - read} more are found and not shown" in page
    assert kinds(page) == {"timetable": 24}
    assert kinds(client.get(f"{BASE}?q=ferry&kinds=fact").text) == {"fact": 0, "timetable": 24}
    newest = client.get(BASE).text
    assert 0 < len(shown(newest)) < 20
    assert "Older memories" in newest


def test_a_memory_that_a_search_does_not_read_is_explained(client: TestClient, what: Served) -> None:
    ann = what.memory.bind(user="ann").sync
    for number in range(24):
        ann.add(Draft(f"ferry {number}", id=f"ferry{number}", data={"chart": "x" * 480_000}))
    said = [client.get(f"{BASE}/why?q=bees+of+the+ferry&id=ferry{number}").text for number in range(24)]
    assert not [page for page in said if NOTHING_IN_COMMON in page]


def test_a_memory_leads_back_to_the_results_also_after_changes_and_after_forgetting(
    client: TestClient, what: Served
) -> None:
    listed = client.get(f"{BASE}?q=cat&kinds=fact").text
    record = client.get(next(link for link in links(listed) if "/records/cat" in link)).text
    back = f"{BASE}?q=cat&kinds=fact"
    assert back in links(record.partition("<article")[0])
    assert f'name="back" value="{back}"'.replace("&", "&amp;") in record
    pinned = send(client, what, "cat", "pin", back=back).text
    assert back in links(pinned.partition("<article")[0])
    refused = send(client, what, "cat", "correct", text=" ", back=back).text
    assert back in links(refused.partition("<article")[0])
    gone = send(client, what, "cat", "forget", back=back)
    assert str(gone.url.raw_path, "ascii").startswith(f"{BASE}?q=cat&kinds=fact&done=forgotten")
    assert "Forgotten for good" in gone.text
    assert 'value="cat"' in gone.text


@pytest.mark.parametrize(
    "back", ["https://example.org/", "//example.org/", "/\\example.org", "javascript:alert(1)", "/\u00e9"]
)
def test_a_way_back_never_leads_to_another_server(client: TestClient, what: Served, back: str) -> None:
    page = client.get(f"{BASE}/records/cat", params={"back": back}).text
    assert BASE in links(page.partition("<article")[0])
    assert back not in unescape(page)
    assert send(client, what, "cat", "forget", back=back).url.path == BASE


def test_many_kinds_conditions_and_data_make_no_page_of_very_many_links(client: TestClient, what: Served) -> None:
    ann = what.memory.bind(user="ann").sync
    ann.add_many(
        [Draft("A knot", kind=f"kind {n}", id=f"knot{n}", data={str(k): k for k in range(99)}) for n in range(99)]
    )
    page = client.get(f"{BASE}?kinds=kind 98&{'&'.join(f'ids=knot{n}' for n in range(99))}").text
    assert len(kinds(page)) == page.partition('aria-label="Conditions"')[2].count("Remove this condition") == MOST_CHIPS
    assert kinds(page)["kind 98"] == 1
    assert kinds(client.get(BASE).text).items() >= {"decision": 2, "fact": 4, "message": 25}.items()
    assert client.get(f"{BASE}/records/knot0").text.count(">data ") == MOST_OF_DATA


def test_many_collections_make_no_page_of_very_long_links(client: TestClient, what: Served) -> None:
    ann = what.memory.bind(user="ann").sync
    ann.add_many([Draft("A knot", collection=f"shelf {n}") for n in range(600)])
    every, some = (client.get(f"{BASE}/facets", params={"q": q}).text for q in ("knot", "knot" * 5_000))
    assert (every.count(">shelf "), some.count(">shelf ")) == (MOST_COLLECTIONS, MOST_CHIPS)
    assert len(some) < 2_000_000  # with 60 kB in each of 500 links it was 30 MB


def test_a_very_long_question_has_no_way_back_in_every_link(client: TestClient) -> None:
    listed = client.get(BASE, params={"q": "harbour " * 1_000}).text
    assert "/records/" in listed
    assert "back=" not in listed


def test_a_very_long_way_back_is_in_no_link_of_the_page_of_a_memory(client: TestClient, what: Served) -> None:
    long = f"{BASE}?q={'a' * 10_000}"
    for page in (
        client.get(f"{BASE}/records/cat", params={"back": long}).text,
        send(client, what, "cat", "correct", text=" ", back=long).text,
    ):
        assert "/records/cat" in page
        assert "a" * 10_000 not in page


def test_people_have_counts_and_dates_and_pages(what: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = signed_in(what, None)
    page = operator.get("/owners").text
    assert re.findall(r"<td>(\d+)</td>", page) == ["31", "0", "1", "0"]
    assert page.count("just now") == 2
    assert "2 people" in page
    assert "1 person" in operator.get("/owners?starting=to").text
    monkeypatch.setattr(people, "PAGE", 1)
    first = operator.get("/owners").text
    assert "1 of 2 people" in first
    (more,) = (link for link in links(first) if "start=1" in link)
    assert "/o/default/tom" in links(operator.get(more).text)
    assert signed_in(what).get("/owners").status_code == 404


def test_conversations_stand_once_each_with_their_first_words(
    client: TestClient, what: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = what.memory.bind(user="ann").sync
    for n in range(4):  # they overlap: each goes on after the next one has begun
        for turn in range(3):
            moment = START + timedelta(minutes=10 * n + 15 * turn)
            ann.add(Draft(f"talk {n} turn {turn}", session=f"talk/{n}", occurred_at=moment, kind="message"))
    for turn in range(6):  # as an import without times has it
        ann.add(Draft(f"talk 4 turn {turn}", session="talk/4", occurred_at=START + timedelta(hours=9), kind="message"))
    everything = client.get(f"{BASE}/conversations").text
    assert _conversations(everything) == [f"talk {n} turn 0" for n in (4, 3, 2, 1, 0)]
    assert everything.count("3 memories") == 4
    monkeypatch.setattr(conversations, "PAGE", 1)
    monkeypatch.setattr(conversations, "_READ_AT_ONCE", 2)
    found, query, pages = list[str](), "", 0
    while True:
        page = client.get(f"{BASE}/conversations{query}").text
        found, pages = found + _conversations(page), pages + 1
        more = re.search(r'class="more" href="[^"?]*([^"]*)"', page)
        if more is None:
            break
        assert _conversations(page) or "Older conversations may be on the next page" in page
        query = unescape(more[1])
    assert found == [f"talk {n} turn 0" for n in (4, 3, 2, 1, 0)]
    assert pages > 2
    first = client.get(f"{BASE}?session=talk/0").text
    assert shown(first) == ["talk 0 turn 2", "talk 0 turn 1", "talk 0 turn 0"]
    assert "There are no older conversations" in page
    assert "3 memories" in first
    assert "belongs to a conversation" not in page


def _conversations(page: str) -> list[str]:
    return re.findall(r'session=talk%2F\d">(.*?)</a>', page)


@pytest.mark.slow
def test_conversations_of_long_texts_are_not_all_read_at_once(what: Served) -> None:
    tom = what.memory.bind(user="tom").sync
    for n in range(60):
        tom.add(Draft(f"talk {n} " + "x" * 999_000, session=f"talk/{n % 2}", occurred_at=START))
    tracemalloc.start()
    try:
        page = signed_in(what, "tom").get("/o/default/tom/conversations").text
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "30 memories" in page
    assert most < 30_000_000


def test_what_was_made_of_a_memory_is_not_all_in_memory_at_once(client: TestClient, what: Served) -> None:
    ann = what.memory.bind(user="ann").sync
    said = ann.add(Draft("The door code is 2231", id="said"))
    for number in range(120):
        chart = {"chart": "x" * 480_000}
        ann.add(Draft(f"Code {number}: 2231", data=chart, links=[Link("derived_from", said.id, said.rev)]))
    tracemalloc.start()
    try:
        page = client.get(f"{BASE}/records/said").text
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "1 memory and 120 made from it" in page
    assert peak < 45_000_000


def test_who_has_no_conversation_is_told_so(what: Served) -> None:
    assert "belongs to a conversation" in signed_in(what, "tom").get("/o/default/tom/conversations").text


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        (timedelta(seconds=0), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=23, minutes=59), "23 h ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=6, hours=23), "6 days ago"),
        (timedelta(days=7), "2026-03-02"),
        (timedelta(hours=-1), "2026-03-02"),
    ],
)
def test_a_time_is_said_as_people_say_it(passed: timedelta, said: str) -> None:
    assert ago(START, START + passed) == said


def test_an_old_time_is_the_day_where_it_was_and_its_title_is_in_utc(client: TestClient, what: Served) -> None:
    late = datetime(2026, 3, 10, 20, 30, tzinfo=timezone(timedelta(hours=-7)))
    assert ago(late, late + timedelta(days=90)) == "2026-03-10"
    assert in_utc(late) == "2026-03-11 03:30 UTC"
    what.memory.bind(user="ann").sync.add(Draft("The ferry leaves at nine", id="ferry", occurred_at=late))
    page = client.get(f"{BASE}/records/ferry").text
    assert 'title="2026-03-11 03:30 UTC"' in page


def test_the_page_that_is_shown_is_marked_and_erasing_is_not_in_the_menu(client: TestClient, what: Served) -> None:
    for place, name in (("", "Search"), ("/conversations", "Conversations"), ("/stats", "Statistics")):
        menu = client.get(f"{BASE}{place}").text.partition('aria-label="Pages"')[2].partition("</nav>")[0]
        assert re.findall(r'aria-current="page">(\w+)<', menu) == [name]
        assert "/erase" not in menu
    assert f"{BASE}/erase" in links(client.get(f"{BASE}/stats").text)
    people_menu = signed_in(what, None).get("/owners").text
    assert re.findall(r'aria-current="page">(\w+)<', people_menu) == ["People"]


@pytest.mark.parametrize("place", ["", "/records/cat", "/stats", "/block"])
def test_every_page_has_the_name_of_the_product(client: TestClient, place: str) -> None:
    page = client.get(f"{BASE}{place}").text
    assert re.search(r"<title>.+ · memory-core</title>", page)
    assert '<a class="product" href="/">memory-core</a>' in page
