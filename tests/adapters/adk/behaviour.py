"""A world for the cases of `test_adk_behaviour.py`, and the cases of searches."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session

from memory_adk import MemoryService
from memory_core import MemoryRecord
from memory_core.adapting import settled
from tests.adapters.adk.agents import said_event, text_of

ANN, BOB = "ann", "bob"
APPS = itertools.count()


@dataclass
class World:
    """A service in an app of its own."""

    service: MemoryService
    app: str

    async def tell(self, *texts: str, session: str = "s1", user: str = ANN, first: int = 0) -> Session:
        """Add a session in which the user says these texts, one event each."""
        events = [said_event(text, at=n, id=f"{session}-{n}") for n, text in enumerate(texts, first)]
        told = Session(id=session, app_name=self.app, user_id=user, events=events)
        await self.service.add_session_to_memory(told)
        await self._settled(user)
        return told

    async def events(self, *events: Event, session: str | None = "s1", **metadata: object) -> None:
        await self.service.add_events_to_memory(
            app_name=self.app, user_id=ANN, events=events, session_id=session, custom_metadata=metadata
        )
        await self._settled(ANN)

    async def entries(self, *entries: MemoryEntry, **metadata: object) -> None:
        await self.service.add_memory(app_name=self.app, user_id=ANN, memories=entries, custom_metadata=metadata)
        await self._settled(ANN)

    async def _settled(self, user: str) -> None:
        """Wait for vectors: what is stored is found by meaning, too."""
        await settled(self.service.handle(self.app, user))

    async def found(self, query: str, *, user: str = ANN, app: str | None = None) -> list[MemoryEntry]:
        answer = await self.service.search_memory(app_name=app or self.app, user_id=user, query=query)
        return answer.memories

    async def texts(self, query: str, *, user: str = ANN, app: str | None = None) -> list[str]:
        return [text_of(entry) for entry in await self.found(query, user=user, app=app)]

    async def stored(self, user: str = ANN) -> list[MemoryRecord]:
        return list((await self.service.handle(self.app, user).list(order="oldest")).records)

    async def forget(self, entry: MemoryEntry, user: str = ANN) -> None:
        await self.service.delete_memory(app_name=self.app, user_id=user, memory_id=entry.id)


Case = Callable[[World], Awaitable[None]]
CASES: Final[dict[str, Case]] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def a_search(name: str, told: Sequence[str], query: str, expected: Sequence[str], *, ordered: bool = False) -> None:
    """A case of what is found when these texts were told, each in its own session."""

    async def check(world: World) -> None:
        for n, text in enumerate(told):
            await world.tell(text, session=f"s{n}", first=n)
        texts = await world.texts(query)
        if not ordered:
            texts.sort()
        assert texts == (list(expected) if ordered else sorted(expected))

    CASES[name] = check


FERRY, DINNER = "The ferry leaves from pier nine.", "Dinner is served at eight."
BOTH = [FERRY, DINNER]
a_search("a word finds its text", BOTH, "ferry", [FERRY])
a_search("a word in capitals finds it", BOTH, "FERRY", [FERRY])
a_search("a word in small letters finds capitals", ["FERRY LATE", DINNER], "ferry", ["FERRY LATE"])
a_search("a question finds it", BOTH, "When does the ferry leave?", [FERRY])
a_search("two words of one text", BOTH, "ferry pier", [FERRY])
a_search("words of two texts find both", BOTH, "ferry dinner", BOTH)
a_search("a word beside a full stop", BOTH, "nine", [FERRY])
a_search("a word in quotes", BOTH, '"ferry"', [FERRY])
a_search("words with a hyphen", BOTH, "pier-nine", [FERRY])
a_search("punctuation after a word", BOTH, "ferry!", [FERRY])
a_search("an operator of a query language", BOTH, "ferry AND NOT pier", [FERRY])
a_search("a query that looks like SQL", BOTH, "ferry'; DROP TABLE memory; --", [FERRY])
a_search("a query that looks like a function", BOTH, "NEAR(ferry pier)", [FERRY])
a_search("a percent sign and an underscore", BOTH, "%_% ferry", [FERRY])
a_search("a number", ["Room 4711 is mine.", DINNER], "4711", ["Room 4711 is mine."])
a_search("a word in brackets", ["The Orbital Relay (ORR) works.", DINNER], "orr", ["The Orbital Relay (ORR) works."])
a_search("an unknown word finds nothing", BOTH, "submarine", [])
a_search("an empty query finds nothing", BOTH, "", [])
a_search("a blank query finds nothing", BOTH, " \n\t ", [])
a_search("punctuation alone finds nothing", BOTH, "!?… --", [])
a_search("the end of a word finds nothing", BOTH, "erry", [])
a_search("the beginning of a word finds nothing", BOTH, "fer", [])
a_search("function words alone find nothing", BOTH, "the is and", [])
a_search("nothing was told", [], "ferry", [])
a_search("a text of function words is not found by another word", ["the and or", FERRY], "ferry", [FERRY])
a_search(
    "a word that two texts share finds both", ["The ferry is late.", FERRY], "ferry", ["The ferry is late.", FERRY]
)
a_search(
    "more matching words rank higher",
    ["An old island.", "The red ferry was painted.", "The red ferry to the island is late."],
    "red ferry island late",
    ["The red ferry to the island is late.", "The red ferry was painted.", "An old island."],
    ordered=True,
)
IN_MORE_WORDS = ["Late.", "The red ferry is late.", "The red ferry to the island is late."]
a_search("a text is found beside one that says more", IN_MORE_WORDS, "red ferry island late", IN_MORE_WORDS)
a_search("an unrelated word finds nothing", BOTH, "hypothetical", [])
a_search(
    "of similar texts only the one with the word",
    ["first cabin info", "second cabin info"],
    "second",
    ["second cabin info"],
)
DISCOUNTS = ["The fare is 100% refundable", "The fare is 1000 refundable", "flag low_tide set", "flag low1tide set"]
a_search("a percent sign is no placeholder", DISCOUNTS, "100%", DISCOUNTS[:1])
a_search("an underscore is no placeholder", DISCOUNTS, "low_tide", DISCOUNTS[2:3])
a_search("an accent in another case", ["J'attends à l'Étang bleu"], "étang", ["J'attends à l'Étang bleu"])
a_search(
    "a text with a function word of the question is found as well",
    ["The traffic is very heavy today", "My cat's name is Mo, the small one", "Entirely another matter"],
    "What is my cat's name?",
    ["My cat's name is Mo, the small one", "The traffic is very heavy today"],
    ordered=True,
)


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


TEXTS_OF_OTHER_SCRIPTS = [
    ("妹の名前は花子です", "花子", True),
    ("妹の名前は花子です", "天気", False),
    ("我们喜欢看电影", "电影", True),
    ("我们喜欢看电影", "足球比赛", False),
    ("제 동생은 지영입니다", "지영입니다", True),
    ("Мою сестру зовут Ольга", "Ольга", True),
    ("花子 lives in OSLO Norway", "花子", True),
    ("花子 lives in OSLO Norway", "OSLO", True),
    ("妹はRustでCLIを書いています", "Rust", True),
    ("妹はRustでCLIを書いています", "cli", True),
    ("我用Rust写程序", "rust", True),
    ("妹はRustでCLIを書いています", "書いて", True),
    ("妹はRustでCLIを書いています", "Perl", False),
    ("My sister writes Rust", "ust", False),
    ("妹はRustでCLIを書いています", "ust", False),
    (nfd("妹はMüllerでCLIを使う"), "Müller", True),
    (nfd("妹はMüllerでCLIを使う"), "müller", True),
    (nfd("妹はMüllerでCLIを使う"), "Perl", False),
    (nfd("Dinner at Müller"), "Müller", True),
    ("Dinner at Müller", nfd("Müller"), True),
    (nfd("バイオリンを弾く"), "バイオリン", True),
    (nfd("제 동생은 지영입니다"), "지영입니다", True),
]
for number, (told, asked, matches) in enumerate(TEXTS_OF_OTHER_SCRIPTS):
    a_search(f"another script {number}", [told], asked, [told] if matches else [])
