"""Superseding and changing records, as properties of pure functions."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memory_core import Draft, Link, MemoryRecord, Patch, Scope, Where
from memory_core.records.draft_to_record import complete, patched
from memory_core.records.superseding import FRAMEWORK_MESSAGE, NOT_INHERITED, retired, superseded_by, superseding
from memory_core.testing import Ticks
from memory_core.testing.records import full_draft
from memory_core.where.checks import check_where
from memory_core.where.meaning import satisfies

NOW = Ticks().now
SCOPE = Scope("demo", "ann")
DAYS = st.integers(-5, 5).map(lambda days: NOW + timedelta(days=days))
MAYBE = st.none() | DAYS
RECORDS = st.builds(Draft, st.just("old"), occurred_at=MAYBE, valid_from=MAYBE, valid_to=MAYBE).map(
    lambda draft: complete(draft, SCOPE, NOW)
)
DRAFTS = st.builds(Draft, st.just("new"), occurred_at=MAYBE, valid_from=MAYBE, valid_to=MAYBE)
PATCH_FIELDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "text": st.sampled_from(["old", "new"]),
        "kind": st.sampled_from(["note", "fact"]),
        "tags": st.lists(st.sampled_from("xy"), max_size=2),
        "importance": st.sampled_from([0, 0.5, 1]),
        "emotion": st.sampled_from([None, "joy"]),
        "valid_to": MAYBE,
    },
)
PATCHES = PATCH_FIELDS.map(lambda fields: Patch(**fields))


def is_true(record: MemoryRecord, day: int) -> bool:
    return satisfies(record, check_where(Where(as_of=NOW + timedelta(days=day))), NOW)


@given(RECORDS, DRAFTS | st.just("new"))
def test_a_record_and_the_one_that_takes_its_place_are_never_true_at_once(
    old: MemoryRecord, entry: Draft | str
) -> None:
    new = complete(superseding(old, entry, SCOPE, NOW), SCOPE, NOW)
    assert superseded_by(new) == [old.id]
    after = retired(old, new)
    for day in range(-6, 7):
        assert not (is_true(after, day) and is_true(new, day))
        assert is_true(old, day) or not is_true(after, day)  # nothing becomes true by being replaced
        if new.valid_from is not None and NOW + timedelta(days=day) < new.valid_from:
            assert is_true(after, day) == is_true(old, day)  # and the past stays as it was
    assert retired(after, new) is after


@given(RECORDS, PATCHES, PATCHES)
def test_a_patch_changes_what_it_names_once(record: MemoryRecord, patch: Patch, other: Patch) -> None:
    later = NOW + timedelta(hours=1)
    changed = patched(record, patch, later)
    assert patched(changed, patch, later + timedelta(hours=1)) is changed
    assert changed.rev == record.rev + (changed.text != record.text)
    assert (changed.updated_at == later) == (changed is not record)
    assert (changed.id, changed.created_at, changed.source_key) == (record.id, record.created_at, record.source_key)
    assert patched(patched(record, other, later), Patch(), later).rev in (1, 2)


def test_a_correction_inherits_every_field_but_those_that_are_of_the_words() -> None:
    copy: dict[str, Any] = {"project": "heron", FRAMEWORK_MESSAGE: {"any": "The door code is 2231"}}
    links = [Link("derived_from", "turn")]
    given = replace(full_draft(NOW), text="The door code is 2231", author="Bo", links=links, data=copy)
    old = complete(given, SCOPE, NOW)
    new = superseding(old, "The door code is 8874", SCOPE, NOW)
    for name in {field.name for field in fields(Draft)} - NOT_INHERITED:
        assert getattr(new, name) == getattr(given, name), name
    own = (new.text, new.author, new.data, new.id, new.source_key, new.valid_from, new.passages)
    assert own == ("The door code is 8874", "ann", {"project": "heron"}, None, None, NOW, ())
    assert list(new.links) == [Link("supersedes", old.id)]


def test_a_correction_of_what_was_true_until_a_moment_is_true() -> None:
    old = complete(Draft("old", occurred_at=NOW - timedelta(days=9), valid_to=NOW), SCOPE, NOW)
    assert superseding(old, "new", SCOPE, NOW).valid_to is None


def test_a_correction_of_what_nobody_has_said_has_no_author() -> None:
    assert superseding(complete("old", SCOPE, NOW), "new", SCOPE, NOW).author is None
