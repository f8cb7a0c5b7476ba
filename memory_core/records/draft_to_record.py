"""Turning a caller's draft into a complete, valid record: pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, tzinfo
from operator import attrgetter
from typing import Any, Final, cast

from memory_core.errors import ConflictError, InvalidInputError, ScopeError
from memory_core.models import (
    PASSAGE_END,
    Draft,
    Json,
    MemoryRecord,
    OpenRecord,
    Patch,
    Scope,
    Tier,
    sealed,
)
from memory_core.records.fields import CHECKS, check_content
from memory_core.records.kinds import CONVERSATION_TURN, MESSAGE_KIND, STEP, USER_QUERY
from memory_core.records.restating import are_same_links
from memory_core.values.checks import (
    check_key,
    check_listed,
    check_local_time,
    check_size,
    check_text,
    check_texts,
    check_time,
    shown,
)
from memory_core.values.ids import new_id
from memory_core.values.json_checks import least_bytes
from memory_core.values.json_text import is_same_json
from memory_core.values.limits import MAX_LISTED, MAX_PASSAGES
from memory_core.values.long_texts import is_long as texts_are_long
from memory_core.values.times import offset_of, utc_now
from memory_core.values.unset import UNSET

TIER_OF_KIND: Final[Mapping[str, Tier]] = {
    MESSAGE_KIND: "raw",
    CONVERSATION_TURN: "raw",
    USER_QUERY: "raw",
    "note": "raw",
    STEP: "raw",
    "fact": "high",
    "important_fact": "high",
    "important_information": "high",
    "preference": "high",
    "capability": "high",
    "summary": "summary",
    "consolidated": "summary",
}
"""The level of detail of each kind; a kind that is not listed is `medium`."""

_BY_RULE: Final = frozenset(("id", "text", "tier", "occurred_at", "agent", "session", "collection", "state", "left"))
"""Fields whose value depends on more than what the draft gives for them."""
_DEFAULTS: Final = {field.name: field.default for field in fields(Draft)}
_AS_GIVEN: Final = tuple((name, check, _DEFAULTS[name]) for name, check in CHECKS.items() if name not in _BY_RULE)
_as_given: Final = attrgetter(*(name for name, _, _ in _AS_GIVEN))

_WITH_DATA: Final = (Draft, Patch)
LONG_BATCH: Final = 50
"""Maximum number of drafts completed on the loop, which takes about a millisecond."""
LONG_DATA_BYTES: Final = 10_000
"""Maximum size of `data` that is still checked on the loop."""


def complete(draft: Draft | str, scope: Scope, now: datetime) -> MemoryRecord:
    """The record that `draft` becomes when it is written through `scope` at `now`.

    The zone of `now` is that of a time that comes without a place: of `now` itself, and of `occurred_at` in UTC.

    Raises:
        InvalidInputError: A field cannot be stored; the message names it.
        ScopeError: The draft names a provenance key other than the one the scope is bound to.
    """
    draft = as_draft(draft)
    user = scope.user
    if user is None:
        raise ScopeError("this handle leaves the user open; bind one first: handle.bind(user=...)")
    given: dict[str, Any] = {
        name: value if value is default else check(value)  # most fields have their default, which is valid
        for (name, check, default), value in zip(_AS_GIVEN, _as_given(draft), strict=True)
    }
    zone, now = now.tzinfo or UTC, now.astimezone(UTC)
    occurred_at = now if draft.occurred_at is None else draft.occurred_at
    record = OpenRecord(
        **given,
        id=new_id() if draft.id is None else CHECKS["id"](draft.id),
        text=check_content(_with_passages(draft)),
        tier=tier_of(given["kind"]) if draft.tier is None else CHECKS["tier"](draft.tier),
        created_at=now,
        updated_at=now,
        accessed_at=None,
        occurred_at=check_local_time("occurred_at", occurred_at, zone),
        access_count=0,
        state="active",
        left=False,
        former_state=None,
        former_valid_to=None,
        rev=1,
        version=1,
        app=scope.app,
        user=user,
        agent=_provenance("agent", draft.agent, scope.agent),
        session=_provenance("session", draft.session, scope.session),
        collection=_provenance("collection", draft.collection, scope.collection),
    )
    _insist_on_content(record.text, record.data)
    return sealed(record)


def check_draft(draft: Draft) -> Draft:
    """Return the draft if it could be stored, so that an importer can detect a bad line before it writes a batch.

    Raises:
        InvalidInputError: A field cannot be stored; the message names it.
    """
    complete(draft, Scope(app="nobody", user="nobody"), utc_now())
    return draft


def new_record(draft: Draft | str, scope: Scope, now: datetime) -> MemoryRecord:
    """`complete` for a record that the caller adds or puts now.

    What is stored can be read: a draft whose expiry has passed is refused, because no read would return its record. An
    update may end a record at once, and an import of exported records keeps what it brings.

    Raises:
        InvalidInputError, ScopeError: As `complete`; and the draft has expired.
    """
    record = complete(draft, scope, now)
    if has_expired(record, now):
        raise InvalidInputError(
            f"expires_at {record.expires_at} has passed, since it is {now}, and no read would return the memory; "
            "give a later moment, or none if it does not expire"
        )
    return record


def has_expired(entry: Draft | MemoryRecord, now: datetime) -> bool:
    """True if reads at `now` leave the memory out because its time is over."""
    return entry.expires_at is not None and entry.expires_at <= now


def complete_all(drafts: Iterable[Draft | str], scope: Scope, now: datetime) -> list[MemoryRecord]:
    """`new_record` for each draft; an error names the index of the draft, counted from 0."""
    records: list[MemoryRecord] = []
    for position, draft in enumerate(drafts):
        try:
            records.append(new_record(draft, scope, now))
        except InvalidInputError as error:
            raise type(error)(f"draft {position}: {error}") from error
    return records


def complete_items(
    drafts: Iterable[Draft | str], remove: Collection[str], scope: Scope, now: datetime
) -> tuple[list[MemoryRecord], list[str]]:
    """The records of `complete_all`, each with a source key, and the checked source keys to remove."""
    records = complete_all(drafts, scope, now)
    for position, record in enumerate(records):
        if record.source_key is None:
            raise InvalidInputError(f"draft {position} has no source_key; put_many needs one for each draft")
    gone = list(check_texts("remove", remove))
    both = sorted({record.source_key or "" for record in records} & set(gone))
    if both:
        raise InvalidInputError(f"source key {both[0]!r} is both put and removed in one call; choose one")
    return records, gone


def check_expiries(expiries: object) -> dict[str, datetime | None]:
    """Return the checked mapping of ids to the moments when their records expire."""
    if not isinstance(expiries, Mapping):
        raise InvalidInputError(f"expiries must be a mapping of ids to moments or None, not {shown(expiries)}")
    given = cast("Mapping[object, object]", expiries)
    check_size("expiries", len(given), MAX_LISTED, "ids", "postpone some of them at a time")
    return {check_listed("the ids", id): _optional_time("expires_at", moment) for id, moment in given.items()}  # noqa: A001


def patched(record: MemoryRecord, patch: Patch, now: datetime) -> MemoryRecord:
    """`record` with the patch applied; the same object when the patch changes nothing.

    A new text increments `rev`. A new kind also sets its tier unless the patch names one.
    """
    changes: dict[str, Any] = {}  # by field name; each value has passed the check of its field
    compared = {"data", "links"}
    for item in fields(_patch(patch)):
        value = getattr(patch, item.name)
        if value is not UNSET:
            changes[item.name] = CHECKS[item.name](value)
    if "occurred_at" in changes and offset_of(changes["occurred_at"]) != offset_of(record.occurred_at):
        compared.add("occurred_at")  # the same moment elsewhere is equal, and is another day perhaps
    if "kind" in changes and "tier" not in changes:
        changes["tier"] = tier_of(str(changes["kind"]))
    if "data" in changes and is_same_json(changes["data"], record.data):
        del changes["data"]
    if "links" in changes and are_same_links(changes["links"], record.links):
        del changes["links"]
    changes = {name: value for name, value in changes.items() if name in compared or getattr(record, name) != value}
    if not changes:
        return record
    if "text" in changes:
        changes["rev"] = record.rev + 1
    if changes.keys() & {"state", "valid_to"}:  # somebody has decided again
        changes |= {"former_state": None, "former_valid_to": None}
    changed = replace(record, updated_at=now, version=record.version + 1, **changes)
    _insist_on_content(changed.text, changed.data)
    return changed


def placed(patch: Patch, zone: tzinfo) -> Patch:
    """The patch with the zone of a time that comes without a place, as `complete` sets it."""
    if not isinstance(patch, Patch) or patch.occurred_at is UNSET:  # pyright: ignore[reportUnnecessaryIsInstance]  # refused later
        return patch
    return replace(patch, occurred_at=check_local_time("occurred_at", patch.occurred_at, zone))


def check_version(value: object) -> int | None:
    """Return `value` if it can be the version of a record, or if it is `None`."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise InvalidInputError(f"expected_version must be the version of a record, a whole number, not {shown(value)}")


def insist_on_version(record: MemoryRecord, expected: int | None) -> None:
    """Refuse to change a record that has changed since its caller read it; `None` accepts any version.

    Raises:
        ConflictError: The record has another version.
    """
    if expected is not None and record.version != expected:
        raise ConflictError(
            f"the memory {record.id!r} has version {record.version} now, not {expected}; read it again, apply your "
            "change again, and update with that version"
        )


def insist_on_versions(found: Mapping[str, int], expected: Mapping[str, int] | None) -> None:
    """Refuse to delete other records than a caller has seen; `None` accepts any.

    Args:
        found: The version of each record that would go, by id.
        expected: The version of each record that was seen.

    Raises:
        ConflictError: A record has changed or is gone, or there is another one.
    """
    if expected is None or found == expected:
        return
    changed = [name for name in expected if found.get(name) != expected[name]] or [*found.keys() - expected.keys()]
    raise ConflictError(
        f"{len(changed)} of the memories that were seen have changed or are gone, such as {changed[0]!r}; nothing was "
        "deleted: read them again"
    )


def check_versions(given: object) -> dict[str, int]:
    """Return the versions by id as a dictionary of its own."""
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"versions must be a mapping of ids to versions, not {shown(given)}")
    checked = dict(cast("Mapping[object, object]", given))
    for name, version in checked.items():
        if version is None:
            raise InvalidInputError(f"the version of {shown(name)} is missing; pass `record.version`")
    return {check_key("id", name): check_version(version) or 0 for name, version in checked.items()}


def as_draft(given: object) -> Draft:
    """Return the caller's entry as a draft: it is a draft or a bare text."""
    if isinstance(given, str):
        return Draft(text=given)
    if not isinstance(given, Draft):
        raise InvalidInputError(f"a memory is a text or a Draft, such as Draft('tea', kind='fact'), not {shown(given)}")
    return given


def as_list(given: object) -> list[Draft | str]:
    """Return the caller's entries as a list; `complete_all` checks each entry."""
    wrong = given  # not narrowed by the next line, which leaves type checkers with half a type
    if isinstance(given, str | Draft | Mapping) or not isinstance(given, Iterable):
        raise InvalidInputError(f"add_many takes a list of drafts and texts, not {shown(wrong)}; add takes one")
    return list(cast("Iterable[Draft | str]", given))


def _patch(given: object) -> Patch:
    if not isinstance(given, Patch):
        raise InvalidInputError(f"changes must be a Patch, such as Patch(text='tea'), not {shown(given)}")
    return given


def tier_of(kind: str) -> Tier:
    """The level of detail of records of a kind, unless a caller gives another."""
    return TIER_OF_KIND.get(kind, "medium")


def _insist_on_content(text: str, data: Mapping[str, Json]) -> None:
    if not text.strip() and not data:
        raise InvalidInputError(f"nothing to remember: the text is empty ({shown(text)}) and there is no data")


def _with_passages(draft: Draft) -> object:
    """The text and the passages of a draft as one text, for `check_content` to check."""
    given = cast("object", draft.passages)
    if given == ():
        return draft.text
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInputError(f"passages must be a sequence of texts, not {shown(given)}")
    parts = [
        check_text("text", draft.text),
        *(check_text("a passage", part) for part in cast("Sequence[object]", given)),
    ]
    check_size("a record", len(parts) - 1, MAX_PASSAGES, "passages", "split it into several records")
    return PASSAGE_END.join(parts if parts[0] else parts[1:])


def is_long_batch(entries: Sequence[object]) -> bool:
    """True if completing these drafts would block a loop for more than about a millisecond."""
    return len(entries) > LONG_BATCH or any(_has_long_data(entry) for entry in entries)


def is_long_patch(patch: object) -> bool:
    """True if applying the patch would block a loop for more than about a millisecond."""
    text = patch.text if isinstance(patch, Patch) else ""
    return (isinstance(text, str) and texts_are_long(text)) or _has_long_data(patch)


def _has_long_data(entry: object) -> bool:
    data: object = entry.data if isinstance(entry, _WITH_DATA) else None
    if not isinstance(data, Mapping) or not data:
        return False
    try:
        return least_bytes("data", data, LONG_DATA_BYTES) > LONG_DATA_BYTES
    except InvalidInputError:  # raised again when it is checked
        return False


def _optional_time(name: str, value: object) -> datetime | None:
    return None if value is None else check_time(name, value)


def _provenance(name: str, given: str | None, bound: str | None) -> str | None:
    if given is None:
        return bound
    if bound is not None and given != bound:
        raise ScopeError(f"{name} {shown(given)} contradicts the handle, which is bound to {name} {bound!r}")
    return check_key(name, given)
