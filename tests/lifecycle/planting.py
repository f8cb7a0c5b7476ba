"""Sentences that people wrote, and what is planted beside them: the same in other words, and nearly the same."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence

KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
NAMES = ("Marta", "Ingrid", "Tom", "Jo", "Nina", "Oskar", "Priya", "Ben", "Lena", "Hugo")
_WORD = re.compile(r"\b[a-z]{4,}\b")
_MOVABLE = re.compile(
    r" (?:on|in|at|for|with|every|because|when|if|after|before|during|since|until|from) [^,;:()\"]+$", re.ASCII
)


def sentences(texts: Iterable[str]) -> list[str]:
    """Different sentences of 5 to 25 words, in order, none of which differs from another only in case and marks."""
    found: dict[str, str] = {}
    for text in texts:
        for sentence in re.split(r"(?<=[.!?])\s+|\n+", text):
            if 5 <= len(sentence.split()) <= 25 and sentence[0].isupper() and sentence[-1] == ".":
                found.setdefault(re.sub(r"\W+", " ", sentence.casefold()).strip(), sentence)
    return list(found.values())


def with_typo(sentence: str, chance: random.Random) -> str | None:
    """One slip of the keys in one longer word: a letter left out, doubled, beside the right one, or two exchanged."""
    words = list(_WORD.finditer(sentence))
    if not words:
        return None
    found = chance.choice(words)
    word, at = found.group(), chance.randrange(1, len(found.group()) - 1)
    row = next(row for row in KEYS if word[at] in row)
    beside = row[(row.index(word[at]) + chance.choice((-1, 1))) % len(row)]
    slips = (
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:at] + beside + word[at + 1 :],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    )
    slip = chance.choice(slips)
    return None if slip == word else sentence[: found.start()] + slip + sentence[found.end() :]


def with_other_order(sentence: str, chance: random.Random) -> str | None:
    """The last phrase first: "I sail on Fridays." as "On Fridays, I sail."."""
    body = sentence.rstrip(".")
    found = _MOVABLE.search(body)
    if found is None or len(body[: found.start()].split()) < 3 or re.search(r"[,;:]", body):
        return None
    moved, rest = found.group().strip(), body[: found.start()]
    first = rest if rest.startswith("I ") or rest.split()[0] in NAMES else rest[0].lower() + rest[1:]
    return f"{moved[0].upper()}{moved[1:]}, {first}."


def with_other_marks(sentence: str, chance: random.Random) -> str:
    """The same text as other people and programs write it."""
    changes = (
        sentence.removesuffix("."),
        sentence.replace(" ", "  ", 1),
        sentence.removesuffix(".") + "!" if sentence[-2].isalpha() else sentence + " ",
        sentence.replace("'", "\u2019") if "'" in sentence else f" {sentence}",
        sentence[0].swapcase() + sentence[1:] if sentence[1:2].islower() else f"{sentence}\n",
    )
    return chance.choice(changes)


def with_other_number(sentence: str, chance: random.Random) -> str | None:
    """Another digit somewhere."""
    found = list(re.finditer(r"\d", sentence))
    if not found:
        return None
    digit = chance.choice(found)
    other = str((int(digit.group()) + chance.randrange(1, 9)) % 10)
    return sentence[: digit.start()] + other + sentence[digit.end() :]


def with_other(names: Sequence[str]) -> Callable[[str, random.Random], str | None]:
    """Another one of these names."""

    def change(sentence: str, chance: random.Random) -> str | None:
        found = re.search(rf"\b(?:{'|'.join(names)})\b", sentence)
        if found is None:
            return None
        other = chance.choice([name for name in names if name != found.group()])
        return sentence[: found.start()] + other + sentence[found.end() :]

    return change


def with_not(sentence: str, chance: random.Random) -> str | None:
    """The opposite, by "not"."""
    if " not " in sentence:
        return sentence.replace(" not ", " ", 1)
    found = re.search(r"\b(?:is|are|was|were|can|will|has|have|should|must|do)\b", sentence)
    return None if found is None else f"{sentence[: found.end()]} not{sentence[found.end() :]}"


HARD: tuple[Callable[[str, random.Random], str | None], ...] = (
    with_other_number,
    with_other(NAMES),
    with_other(DAYS),
    with_other(MONTHS),
    with_not,
)
