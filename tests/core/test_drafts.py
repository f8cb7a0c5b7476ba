"""The record that a draft becomes: all that was given, completed by what was not."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Draft, InvalidInputError, Link, Scope, ScopeError
from memory_core.adapting import complete
from memory_core.models import ROLES, TIERS
from memory_core.records.draft_to_record import TIER_OF_KIND

NOW = datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=UTC)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20).filter(str.strip)
ZONES = st.integers(-12, 12).map(lambda hours: timezone(timedelta(hours=hours)))
NAIVE = NOW.replace(tzinfo=None)
MAYBE_TIMES = st.none() | st.datetimes(NAIVE.replace(year=1900), NAIVE.replace(year=2100), timezones=ZONES)
UNITS = st.floats(0, 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
PROVENANCE = ("agent", "session", "collection")
GIVEN: dict[str, st.SearchStrategy[Any]] = {
    "text": NAMES,
    "role": st.none() | st.sampled_from(ROLES),
    "kind": st.sampled_from(["note", "fact", "whatever"]) | NAMES,
    "tier": st.none() | st.sampled_from(TIERS),
    "data": st.dictionaries(NAMES, JSON, max_size=2),
    "tags": st.lists(NAMES, max_size=3, unique=True).map(tuple),
    "links": st.lists(st.builds(Link, st.just("follows"), NAMES), max_size=2, unique=True).map(tuple),
}
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str | None: st.none() | NAMES,
    float: UNITS,
    datetime | None: MAYBE_TIMES,
}
GIVEN |= {name: BY_TYPE[kind] for name, kind in get_type_hints(Draft).items() if name not in GIVEN and kind in BY_TYPE}
DRAFTS = st.fixed_dictionaries(GIVEN).map(lambda values: Draft(**values))


@given(DRAFTS)
def test_a_record_holds_all_that_was_given_and_completes_the_rest(draft: Draft) -> None:
    record = complete(draft, Scope("demo", "ann"), NOW)
    assert {field.name for field in fields(draft)} - {"_", "passages"} == GIVEN.keys()
    for name in GIVEN:
        wanted, held = getattr(draft, name), getattr(record, name)
        assert held == wanted or wanted is None, name
        assert not isinstance(held, datetime) or held.tzinfo is UTC or name == "occurred_at", name
    assert draft.occurred_at is None or record.occurred_at.utcoffset() == draft.occurred_at.utcoffset()
    assert record.tier == (draft.tier or TIER_OF_KIND.get(draft.kind, "medium"))
    assert record.id
    assert record.occurred_at == (draft.occurred_at or NOW)
    assert (record.app, record.user, record.state, record.rev, record.version) == ("demo", "ann", "active", 1, 1)
    assert (record.created_at, record.updated_at, record.accessed_at, record.access_count) == (NOW, NOW, None, 0)
    again = Draft(**{name: getattr(record, name) for name in GIVEN})
    assert complete(again, Scope("demo", "ann"), NOW) == record


@given(NAMES, NAMES, st.sampled_from(PROVENANCE))
def test_a_draft_is_stamped_by_the_scope_and_may_not_contradict_it(bound: str, given_name: str, key: str) -> None:
    keys: dict[str, Any] = {key: bound}
    scope = Scope("demo", "ann", **keys)
    for told in (None, bound):
        same: dict[str, Any] = {key: told}
        assert getattr(complete(Draft("tea", **same), scope, NOW), key) == bound
    if given_name != bound:
        other: dict[str, Any] = {key: given_name}
        with pytest.raises(ScopeError):
            complete(Draft("tea", **other), scope, NOW)


def test_passages_follow_the_text_each_behind_a_form_feed() -> None:
    assert complete(Draft("Ann", passages=["tea", "cats"]), Scope("demo", "ann"), NOW).text == "Ann\ftea\fcats"
    assert complete(Draft(passages=("tea",)), Scope("demo", "ann"), NOW).text == "tea"


@pytest.mark.parametrize(
    "wrong", ["tea", 5, [5], ["\ud800"], ["x"] * 1_001], ids=["text", "number", "numbers", "half", "many"]
)
def test_passages_that_cannot_be_stored_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match="passage"):
        complete(Draft("Ann", passages=wrong), Scope("demo", "ann"), NOW)
