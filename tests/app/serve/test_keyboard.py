"""The page with the keyboard alone, on a phone and on a screen, light and dark; axe finds nothing on the way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core import Memory
from tests.app.serve.accessibility import violations
from tests.app.serve.conftest import Running, filled, running
from tests.chromium import CHROMIUM, Page, page

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
]

LOOKS = {"phone": (390, 844), "screen": (1280, 800)}
FIRST = "#results .memories .text a"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    asyncio.run(filled(tmp_path / "m.db"))
    with running(tmp_path / "m.db", "--write") as started:
        yield started


@pytest.mark.parametrize(
    ("look", "dark"),
    [
        ("phone", True),
        ("screen", False),
        pytest.param("phone", False, marks=pytest.mark.torture),
        pytest.param("screen", True, marks=pytest.mark.torture),
    ],
)
def test_everything_is_done_with_the_keyboard_alone(
    tab: Page, server: Running, tmp_path: Path, look: str, *, dark: bool
) -> None:
    width, height = LOOKS[look]
    tab.look(width=width, height=height, dark=dark)
    tab.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    _sign_in(tab, server)
    _choose_a_person(tab)
    _look_at_the_block(tab)
    _correct_and_undo(tab)
    _forget(tab)
    _read_a_conversation(tab)
    _download(tab, tmp_path)
    _sign_out(tab, server)
    with Memory(tmp_path / "m.db") as memory:
        texts = {record.text for record in memory.bind(user="ann").sync.list(limit=100)}
    assert "Ann lives in Oslo" not in texts
    assert "Ann is allergic to penicilin" in texts


def _insist_on_access(tab: Page) -> None:
    assert violations(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def _sign_in(tab: Page, server: Running) -> None:
    tab.send("Network.clearBrowserCookies")
    tab.open(server.address)
    tab.until("document.activeElement.name === 'token'")
    _insist_on_access(tab)
    tab.type(server.key)
    tab.enter()
    assert tab.shows("The spare key is with Mrs Okafor")


def _choose_a_person(tab: Page) -> None:
    tab.reach("nav a[href='/owners']")
    tab.enter()
    _insist_on_access(tab)
    tab.reach(".people a[href$='/tom']")
    tab.enter()
    assert tab.shows("Tom keeps bees")
    tab.reach("nav a[href='/owners']")
    tab.enter()
    tab.reach(".people a[href$='/ann']")
    tab.enter()
    _insist_on_access(tab)


def _find(tab: Page, question: str, text: str) -> None:
    """Search, and go to the first memory."""
    tab.reach("nav a")
    tab.enter()
    tab.press("/", 191, "/")
    assert tab.evaluate("document.activeElement.id") == "q"
    tab.type(question)
    tab.until(f"document.querySelector('.ends, .more') && document.querySelector({FIRST!r}).innerText === {text!r}")
    tab.press("ArrowDown", 40)
    assert tab.evaluate("document.activeElement.innerText") == text


def _look_at_the_block(tab: Page) -> None:
    _find(tab, "where is the spare key", "The spare key is with Mrs Okafor")
    _insist_on_access(tab)
    tab.reach("#results a[href*='/block?q=']")
    tab.enter()
    assert "Mrs Okafor" in tab.evaluate("document.querySelector('pre.block').innerText")
    _insist_on_access(tab)


def _correct_and_undo(tab: Page) -> None:
    _find(tab, "allergic to penicilin", "Ann is allergic to penicilin")
    tab.enter()
    _insist_on_access(tab)
    tab.reach(".actions summary")
    tab.press("Enter", 13, "\r")
    tab.until("document.querySelector('.actions details').open")
    tab.reach("form[action$='/correct'] textarea")
    tab.type("Ann is allergic to penicillin")
    tab.reach("form[action$='/correct'] button")
    tab.enter()
    assert tab.shows("It is corrected.")
    assert tab.evaluate("document.querySelector('.whole').innerText") == "Ann is allergic to penicillin"
    _insist_on_access(tab)
    tab.reach(".done button")
    tab.enter()
    assert tab.evaluate("document.querySelector('.whole').innerText") == "Ann is allergic to penicilin"
    tab.reach(".back a")
    tab.enter()
    assert tab.evaluate("document.querySelector('#q').value") == "allergic to penicilin"


def _forget(tab: Page) -> None:
    _find(tab, "where does Ann live", "Ann lives in Oslo")
    tab.enter()
    tab.reach(".danger summary")
    tab.press("Enter", 13, "\r")
    tab.until("document.querySelector('.danger').open")
    _insist_on_access(tab)
    tab.reach("form[action$='/forget'] button")
    tab.enter()
    assert tab.shows("Forgotten for good")
    assert tab.evaluate("document.querySelector('#q').value") == "where does Ann live"
    _insist_on_access(tab)


def _read_a_conversation(tab: Page) -> None:
    tab.reach("nav a[href$='/conversations']")
    tab.enter()
    _insist_on_access(tab)
    tab.reach(".memories a")
    tab.enter()
    assert tab.shows("I have noted berth 14 on the east pier")


def _download(tab: Page, folder: Path) -> None:
    tab.reach("a[download]")
    tab.press("Enter", 13, "\r")
    file, deadline = folder / "memories.jsonl", time.monotonic() + 300
    while not file.exists() or not file.stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    lines = file.read_text(encoding="utf-8")
    assert "The spare key is with Mrs Okafor" in lines
    assert "Ann lives in Oslo" not in lines


def _sign_out(tab: Page, server: Running) -> None:
    tab.reach("form[action='/sign-out'] button")
    tab.enter()
    tab.open(f"{server.address}/o/default/ann")
    assert tab.evaluate("document.querySelector('h1').innerText") == "Sign in to memory-core"
    assert not tab.shows("Okafor")


@pytest.mark.parametrize("question", ["", "?q=harbour"])
def test_fourteen_memories_are_seen_at_once(tab: Page, server: Running, tmp_path: Path, question: str) -> None:
    long = "Ann has met somebody at the harbour who knows where the ferry goes in winter, what it costs, who sails it, "
    with Memory(tmp_path / "m.db") as memory:
        memory.bind(user="ann").sync.add_many([long + f"namely person {n} of the crew" for n in range(20)])
    tab.look(width=1280, height=800, dark=False)
    tab.open(server.link)
    tab.open(f"{server.address}/o/default/ann{question}")
    rows = "[...document.querySelectorAll('#results .memories > li')]"
    assert tab.evaluate(f"{rows}.filter(row => row.getBoundingClientRect().bottom <= 800).length") >= 14
