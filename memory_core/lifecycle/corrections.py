"""Find statements that later ones correct, by their form: "I moved to Oslo", "no longer", a newer favourite.

Pure functions. A statement is parsed as a claim: a value of an attribute of a person or thing; a later claim with
another value corrects an earlier one. Only attributes with one value at a time are parsed, from short English
statements.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memory_core.lifecycle.sameness import statement_of
from memory_core.retrieval.analysis import stemmed

MAX_CHARS: Final = 120
"""Longest statement that is parsed; longer ones usually say more than one thing."""
MAX_VALUE_WORDS: Final = 8
LEAST_DENIED: Final = 2
"""Most words of it: a subject and what it does."""
SHARE_DENIED: Final = 0.5
"""A denial needs at least this share of the words of the statement that it denies."""

_SUBJECT: Final = r"(?P<subject>(?:[\w'-]+ ){0,4}?[\w'-]+)"
_NOW: Final = r"(?:(?:now|currently|just|recently|have|has|had|is|am|are|was|were|been|'s|'ve) )*"
_OF_NAMES: Final = frozenset(
    {"name", "nickname", "surname", "boss", "manager", "supervisor", "employer", "landlord", "dentist", "doctor"}
    | {"therapist", "wife", "husband", "spouse", "fiance", "fiancee", "partner", "hometown", "birthplace", "company"}
    | {"captain", "coach"}
)
_OF_NUMBERS: Final = frozenset(
    {"age", "number", "pin", "code", "budget", "salary", "wage", "rent", "weight", "height", "size", "price", "limit"}
    | {"fee", "score", "extension", "version", "port"}
)
_OF_TIMES: Final = frozenset({"birthday", "deadline", "anniversary", "appointment"})
_OF_ANYTHING: Final = frozenset(
    {"address", "email", "password", "username", "passphrase", "timezone", "occupation", "status", "major"}
)
_FAVOURITE: Final = re.compile(r"\b(?:favou?rite|preferred)\b")
_SPELT: Final = re.compile(r"\bfavorite\b|\bpreferred\b")
_FRESH: Final = re.compile(r"\b(?:new|latest|current|updated|old)\b ?")
_MONTH: Final = r"(?:jan|febr)uary|march|april|may|june|july|august|(?:sept|nov|dec)ember|october"
_DAY: Final = re.compile(rf"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:{_MONTH})\b|\btomorrow\b|\d{{4}}-\d")
_CLOCK: Final = re.compile(r"\b\d{1,2}(?::\d\d)? ?(?:am|pm|a\.m|p\.m|o'clock)|\b\d{1,2}:\d\d\b|\bnoon\b|\bmidnight\b")
_TRAILING: Final = re.compile(
    r"(?: (?:now|currently|instead|these days|anymore|again|recently|today|yesterday|from now on"
    rf"|for (?:now|good|a .*)|with .*|since .*|because .*|after .*|as of .*|to be .*"
    rf"|last \w+|this \w+|\w+ \w+ ago|in (?:{_MONTH}|\d{{4}})))+$"
)
_POSSESSED: Final = re.compile(
    r"^(?P<owner>my|our|the|(?:[\w-]+ ){0,2}[\w-]+(?:'s|s')) (?P<attribute>(?:[\w-]+ ){0,3}?[\w-]+)"
    r"(?: of (?P<of>(?:[\w'-]+ ){0,3}?[\w'-]+))? (?:is|are|was changed to|has changed to|changed to) "
    r"(?:now |currently )?(?P<value>.+)$"
)
_HOME: Final = re.compile(
    rf"^{_SUBJECT} {_NOW}(?:lives?|living|resides?|residing|moved|moving|relocated|settled|based) "
    r"(?:\w+ )?(?:in|to|at) (?P<value>.+)$"
)
_WORK: Final = re.compile(
    rf"^{_SUBJECT} {_NOW}(?:(?:works?|working|started|started working|got a job|took a job|employed) "
    r"(?:now )?(?:at|for)|joined) (?P<value>.+)$"
)
_TRADE: Final = re.compile(rf"^{_SUBJECT} {_NOW}(?:works?|working|started|retrained) as (?P<value>.+)$")
_SPOUSE: Final = re.compile(rf"^{_SUBJECT} {_NOW}married to (?P<value>.+)$")
_DRIVES: Final = re.compile(rf"^{_SUBJECT} {_NOW}drives? an? (?P<value>.+)$")
_AGE: Final = re.compile(rf"^{_SUBJECT} {_NOW}(?P<value>\d{{1,3}}) years old$")
_OWN_AGE: Final = re.compile(rf"^(?P<subject>i) {_NOW}(?:turned )?(?P<value>\d{{1,3}})$")
_WEIGHT: Final = re.compile(rf"^{_SUBJECT} {_NOW}weighs? (?P<value>.*\d.*)$")
_WHEN: Final = re.compile(
    r"^(?P<subject>(?!(?:i|it|this|that) )(?:[\w'-]+ ){0,7}?[\w'-]+) "
    r"(?:(?:(?:is|are|was|were|will be|takes place|got)(?: now)?|(?:has|have|had) been|moves?|moved) ?)+"
    r"(?:moved|rescheduled|postponed|pushed|changed|shifted)?(?: back)? ?(?:on|at|to|for|until) (?P<value>.+)$"
)
_GOES: Final = (
    ("home", _HOME),
    ("employer", _WORK),
    ("occupation", _TRADE),
    ("spouse", _SPOUSE),
    ("car", _DRIVES),
    ("age", _AGE),
    ("age", _OWN_AGE),
    ("weight", _WEIGHT),
)
_SOMEBODY: Final = frozenset({"he", "she", "they", "it", "this", "that", "who", "which", "there", "you"})
"""Subjects that refer to an earlier sentence and are unknown from the statement alone."""
_OF_PROPER: Final = frozenset({"home", "employer", "spouse"})
"""Attributes whose values are names: "I live in a flat" does not correct "I live in Oslo"."""
_DENIED: Final = (
    re.compile(r"^(?P<before>.*?)\bno longer (?P<after>.+)$"),
    re.compile(
        r"^(?P<before>.*?)\b(?:do|does|is|are|am|can|will)(?:n't| not) (?P<after>.+?) (?:any ?more|any longer)$"
    ),
    re.compile(r"^(?P<before>.*?)\b(?:(?:has|have|'ve|'s) )?(?:stopped|quit|given up|gave up) (?P<after>\w+ing\b.*)$"),
)
_EMPTY: Final = frozenset(
    {"is", "are", "am", "was", "were", "do", "does", "did", "be", "been", "have", "has", "had", "'s", "it", "to", "of"}
    | {"in", "on", "at", "for", "with", "and"}
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A value that a statement gives to an attribute of a person or thing."""

    key: tuple[str, str]
    """The owner of the attribute, and its name."""
    value: frozenset[str]


def corrections(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of positions: a statement and the later one that corrects it; each statement is corrected at most once.

    Args:
        texts: The statements of one person, oldest first.
    """
    read = [_plain(text) for text in texts]
    found: dict[int, int] = {}
    claims: dict[tuple[str, str], list[tuple[int, Claim]]] = defaultdict(list)
    by_word: dict[str, list[int]] = defaultdict(list)
    terms: list[frozenset[str]] = []
    for place, (text, plain) in enumerate(zip(texts, read, strict=True)):
        denied = _denied(plain)
        for old in _said_before(denied, by_word, terms):
            found.setdefault(old, place)
        claim = None if denied else claim_of(text)
        if claim is not None:
            for old, earlier in claims[claim.key]:
                if not (earlier.value <= claim.value or claim.value <= earlier.value):
                    found.setdefault(old, place)
            claims[claim.key] = [each for each in claims[claim.key] if each[0] not in found] + [(place, claim)]
        terms.append(frozenset() if denied else _terms(plain))
        for word in terms[-1]:
            by_word[word].append(place)
    return sorted(found.items())


def claim_of(text: str) -> Claim | None:
    """The claim of a short statement, or `None` if its form is not recognised."""
    plain = _plain(text)
    if not plain or "?" in text:
        return None
    if possessed := _POSSESSED.match(plain):
        owner = possessed["of"] or possessed["owner"]
        attribute = _FRESH.sub("", possessed["attribute"]).strip()
        claim = _possession(owner, attribute, possessed["value"], text)
        if claim is not None:
            return claim
    if (found := _WHEN.match(plain)) and (kind := _kind_of_time(found["value"])) and (value := _value(found["value"])):
        return Claim((_subject(found["subject"]), kind), value)
    for attribute, form in _GOES:
        if (found := form.match(plain)) and found["subject"] not in _SOMEBODY and (value := _value(found["value"])):
            is_place = attribute not in _OF_PROPER or _is_written_as_name(text, found["value"])
            return Claim((_subject(found["subject"]), attribute), value) if is_place else None
    return None


def _possession(owner: str, attribute: str, value: str, text: str) -> Claim | None:
    head = attribute.rsplit(maxsplit=1)[-1] if attribute else ""
    said = _value(value)
    is_name = _is_written_as_name(text, value)
    fits = (
        bool(_FAVOURITE.search(attribute))
        or (head in _OF_NAMES and is_name)
        or (head in _OF_NUMBERS and any(map(str.isdigit, value)))
        or (head in _OF_TIMES and bool(_kind_of_time(value)))
        or head in _OF_ANYTHING
    )
    if not (fits and said):
        return None
    kind = _kind_of_time(value) if head in _OF_TIMES else ""
    return Claim(
        (_subject(owner), f"{_SPELT.sub('favourite', attribute).removesuffix(' address')} {kind}".strip()), said
    )


def _is_written_as_name(text: str, value: str) -> bool:
    first = value.split(maxsplit=1)[0]
    at = text.casefold().rfind(first)
    return at >= 0 and text[at].isupper()


def _kind_of_time(value: str) -> str:
    if _CLOCK.search(value):
        return "" if _DAY.search(value) else "hour"
    return "day" if _DAY.search(value) else ""


def _value(said: str) -> frozenset[str]:
    """The words of a value; empty for a long one, which says more than a value."""
    words = frozenset(statement_of(_TRAILING.sub("", said)).words)
    return words if len(words) <= MAX_VALUE_WORDS else frozenset()


def _subject(said: str) -> str:
    plain = re.sub(r"(?:'s|s')$", "", said)
    plain = re.sub(r"^(?:the|a|an|and|but|so|well|now|actually|recently|currently)\b ?", "", plain).strip()
    return "i" if plain in {"i", "my", "i'm", "i've"} else plain


def _plain(text: str) -> str:
    """One sentence without case, final punctuation and curly apostrophes; empty for several sentences or a long one."""
    if len(text) > MAX_CHARS:
        return ""
    said = unicodedata.normalize("NFKC", text).replace("\u2019", "'").strip().rstrip(".! ").casefold()
    said = re.sub(r"^(?:actually|well|update|correction|by the way|fyi)[,:] ", "", said)
    said = re.sub(r"\bi'(?:m|ve) ", "i ", said)
    return "" if re.search(r"[.!?\n;] ", said) else " ".join(said.replace(",", " ").split())


def _denied(plain: str) -> frozenset[str]:
    """The terms of what a statement says is no longer true; empty if it denies nothing."""
    for form in _DENIED:
        if found := form.match(plain):
            return _terms(f"{found['before']} {_TRAILING.sub('', found['after'])}")
    return frozenset()


def _said_before(
    denied: frozenset[str], by_word: dict[str, list[int]], terms: Sequence[frozenset[str]]
) -> Iterator[int]:
    if len(denied) < LEAST_DENIED:
        return
    rarest = min(denied, key=lambda word: len(by_word.get(word, ())))
    for place in by_word.get(rarest, ()):
        if denied <= terms[place] and len(denied) >= SHARE_DENIED * len(terms[place]):
            yield place


def _terms(plain: str) -> frozenset[str]:
    return frozenset(stemmed(word) for word in statement_of(plain).words if word not in _EMPTY)
