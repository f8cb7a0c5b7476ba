"""The conditions of a read as the query of an address, and back, so that every condition can be a link.

What is sent is a condition: a name without a value is the empty value, and an unknown name is refused. Only a form of
the page sends fields that nobody filled in; the page leaves those out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from itertools import islice
from typing import Final
from urllib.parse import urlencode

from memory_core.errors import InvalidInputError
from memory_core.local_time import local_day
from memory_core.models import MemoryRecord
from memory_core.values.checks import shown
from memory_core.values.zones import zoned
from memory_core.where.checks import check_where
from memory_core.where.where import EVERYTHING, Where

LISTS: Final = ("roles", "kinds", "tiers", "tags_any", "tags_all", "keywords", "states", "ids", "source_keys")
NUMBERS: Final = ("min_importance", "min_confidence")
TIMES: Final = ("since", "until", "as_of")
JSON: Final = ("left", "data", "matching")
_OF_ITS_OWN: Final = ("ids", "left", "data", "links")
"""Conditions that no link of a single value shows."""
MOST_OF_DATA: Final = 50
"""Keys of `data` that the page of a record has links for."""
NAMES: Final = tuple(each.name for each in fields(Where))

Pairs = Sequence[tuple[str, str]]

FIELDS: Final = ("author", "session", *TIMES, "min_importance", "data")
"""The conditions of one value that the form beside a list has fields for."""


def where_in(pairs: Pairs) -> Where:
    """The conditions that the pairs of a query say: see `given_in`."""
    return check_where(Where.from_dict(given_in(pairs)))


def given_in(pairs: Pairs) -> dict[str, object]:
    """The conditions that the pairs of a query say, as JSON.

    Lists repeat their name, and an empty text alone is the empty list; links are `relation:id`, days stand for their
    first moment in the zone of this machine, `data` and `matching` are JSON.

    Raises:
        InvalidInputError: A name is not that of a condition, a value cannot be a condition, or there are two of one.
    """
    texts: dict[str, list[str]] = {}
    for name, text in pairs:
        if name not in NAMES:
            raise InvalidInputError(f"there is no condition {shown(name)}; there are {', '.join(NAMES)}")
        texts.setdefault(name, []).append(text)
    return {name: _given(name, some) for name, some in texts.items()}


def _given(name: str, texts: Sequence[str]) -> object:
    if name in LISTS or name == "links":
        some: Sequence[str] = () if texts == [""] else texts
        return [_link(text) for text in some] if name == "links" else list(some)
    if len(texts) > 1:
        raise InvalidInputError(f"there are {len(texts)} values of {name}, which has one")
    return _value(name, texts[0])


def pairs_of(where: Where) -> list[tuple[str, str]]:
    """The pairs that say these conditions: what `where_in` reads."""
    pairs: list[tuple[str, str]] = []
    default, plain = EVERYTHING.to_dict(), where.to_dict()
    for name, value in plain.items():
        if value == default[name]:
            continue
        if name == "links":
            pairs += [(name, f"{each['relation']}:{each['id']}") for each in value]
        elif name in LISTS:
            pairs += [(name, str(each)) for each in value or ("",)]
        else:
            pairs.append((name, json.dumps(value, ensure_ascii=False) if name in JSON else str(value)))
    return pairs


def query_of(pairs: Pairs) -> str:
    """The query of an address, from its question mark on; empty without pairs."""
    return f"?{urlencode(pairs, errors='replace')}" if pairs else ""


def conditions_on(record: MemoryRecord) -> list[tuple[str, str, tuple[str, str]]]:
    """The fields of a record that are conditions, each with its value and the pair that asks for the same."""
    found: list[tuple[str, str, tuple[str, str]]] = []
    for name, key in _of_one_value():
        value = getattr(record, name)
        if value is not None:
            found.append((name, str(value), (key, str(value))))
    found += [("left", "yes", ("left", "true"))] if record.left else []
    found += [("tag", tag, ("tags_all", tag)) for tag in record.tags]
    for key, value in islice(record.data.items(), MOST_OF_DATA):
        if value is None or isinstance(value, str | int | float | bool):
            found.append((f"data {key}", str(value), ("data", json.dumps({key: value}, ensure_ascii=False))))
    for name in ("importance", "confidence"):
        found.append((name, f"{getattr(record, name):.2f} or more", (f"min_{name}", str(getattr(record, name)))))
    day = local_day(record).isoformat()
    found.append(("since", day, ("since", record.occurred_at.isoformat())))
    found.append(("what was true then", day, ("as_of", record.occurred_at.isoformat())))
    return found


def _of_one_value() -> Iterator[tuple[str, str]]:
    """The fields of a record with one value that a condition names, each with the name of the condition."""
    for each in fields(MemoryRecord):
        key = "under" if each.name == "collection" else each.name if each.name in NAMES else f"{each.name}s"
        if key in NAMES and key not in _OF_ITS_OWN:
            yield each.name, key


def _value(name: str, text: str) -> object:
    try:
        if name in NUMBERS:
            return float(text)
        if name in TIMES:
            return zoned(datetime.fromisoformat(text)).isoformat()
        return json.loads(text) if name in JSON else text
    except (ValueError, RecursionError) as error:
        forms = {**dict.fromkeys(NUMBERS, "a number"), **dict.fromkeys(TIMES, "a day such as 2026-03-02")}
        raise InvalidInputError(f"{name} must be {forms.get(name, 'JSON')}, not {shown(text)}") from error


def _link(text: str) -> Mapping[str, str]:
    relation, _, id = text.partition(":")  # noqa: A001
    return {"relation": relation, "id": id}
