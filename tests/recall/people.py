"""Fifty people whose circumstances change, and what one asks about them; made up for these tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from typing import Final

START: Final = datetime(2023, 1, 9, 18, tzinfo=UTC)

_CITIES: Final = [
    "Tromsø",
    "Leeds",
    "Ghent",
    "Porto",
    "Graz",
    "Brno",
    "Malmö",
    "Turin",
    "Cork",
    "Lyon",
    "Basel",
    "Gdansk",
    "Split",
    "Bilbao",
    "Utrecht",
    "Aarhus",
    "Riga",
    "Vilnius",
    "Tampere",
    "Nantes",
    "Bremen",
    "Girona",
    "Parma",
    "Bergen",
    "Dundee",
    "Cardiff",
    "Zagreb",
    "Krakow",
    "Lugano",
    "Toulouse",
]
_MOVES: Final = (
    "I moved to {} last weekend, the boxes are everywhere.",
    "We finally have the keys to our new flat in {}!",
    "Just so you know, I live in {} now.",
    "The move is done: {} is my new home.",
    "I've relocated to {} because of the sea air.",
    "Guess what, we packed up everything and settled in {}.",
    "My new address is in {}, two streets from the station.",
)
_JOBS: Final = (
    "I started a new job as a {} on Monday.",
    "They hired me, so I work as a {} from now on.",
    "I quit my old job and became a {}.",
    "My career took a turn: I'm a {} these days.",
)
_WORK: Final = [
    "baker",
    "beekeeper",
    "carpenter",
    "cartographer",
    "florist",
    "glazier",
    "librarian",
    "locksmith",
    "midwife",
    "optician",
    "paramedic",
    "pilot",
    "plumber",
    "potter",
    "roofer",
    "surveyor",
    "tailor",
    "translator",
    "vet",
    "welder",
]
_PETS: Final = [
    "Biscuit",
    "Waldo",
    "Nugget",
    "Pepper",
    "Tofu",
    "Pixel",
    "Mango",
    "Olive",
    "Sushi",
    "Rocket",
    "Bruno",
    "Luna",
    "Socks",
    "Ziggy",
    "Clover",
]
_CHATTER: Final = (
    ("Can you suggest a film for tonight?", "How about a light comedy? Most of them run under two hours."),
    ("I burnt the lentil soup again.", "Stir it more often and keep the heat low."),
    ("My knee hurts after running.", "A rest of some days and soft ground may help."),
    ("What rhymes with orange?", "Hardly anything, but door hinge comes close."),
    ("I planted tomatoes on the balcony.", "They like sun, warmth and regular watering."),
    ("My sister plays the oboe in an orchestra.", "What a fine instrument!"),
    ("I want to read more this year.", "Keep a book beside your bed and start with ten minutes."),
    ("The train was late again today.", "How annoying. I hope you got there in the end."),
    ("I'm allergic to walnuts, by the way.", "Good to know, I will keep it in mind."),
    ("Remind me to call the dentist.", "I will, tomorrow morning."),
)
_NICE: Final = ("Thanks for telling me!", "How exciting!", "Noted.", "Good luck with that!")


@dataclass(frozen=True)
class Person:
    """One person: what was said, and what holds at the end."""

    name: str
    turns: Sequence[tuple[str, str, datetime]]
    """Message of the user, answer, and when."""
    cities: Sequence[str]
    jobs: Sequence[str]
    pets: Sequence[str]


def people() -> Iterator[Person]:
    """Fifty people who each moved three times, changed jobs twice and renamed a pet, in turns among others."""
    for n in range(50):
        cities = [_CITIES[(n * 7 + step * 11) % len(_CITIES)] for step in range(3)]
        jobs = [_WORK[(n * 3 + step * 7) % len(_WORK)] for step in range(2)]
        pets = [_PETS[n % len(_PETS)], _PETS[(n + 4) % len(_PETS)]]
        told = [
            _MOVES[n % 7].format(cities[0]),
            _JOBS[n % 4].format(jobs[0]),
            f"Our {('cat', 'dog', 'parrot')[n % 3]} is called {pets[0]}.",
            _MOVES[(n + 2) % 7].format(cities[1]),
            f"We renamed the {('cat', 'dog', 'parrot')[n % 3]}: it listens to {pets[1]} now.",
            _JOBS[(n + 1) % 4].format(jobs[1]),
            _MOVES[(n + 4) % 7].format(cities[2]),
        ]
        turns: list[tuple[str, str, datetime]] = []
        chatter = cycle(_CHATTER[n % 10 :] + _CHATTER[: n % 10])
        at = START + timedelta(days=n)
        for step, text in enumerate(told):
            for asked, answer in islice(chatter, 2):
                turns.append((asked, answer, at))
                at += timedelta(days=9)
            turns.append((text, _NICE[(n + step) % 4], at))
            at += timedelta(days=40)
        yield Person(f"person {n}", turns, cities, jobs, pets)
