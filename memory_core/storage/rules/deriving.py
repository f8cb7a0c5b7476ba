"""The life of records that were made of the words of others: it ends with theirs.

A record is derived if it has a `summarizes` or `derived_from` link. What holds after every write:

- No source of a derived record was deleted or erased. It may have expired, or stand outside of the store, as the source
  of an imported record. The sources of one that has expired are sources of what was made of it.
- The earlier texts of a record have no words of other sources than it names (`loses_source`).
- A derived record is left while one of its sources is left, or reads otherwise than it was read.
- A turn that a summary had compacted is active again when no summary that is shown covers it.

So a write that would break this is refused (`insist_on_sources`, `restated`, `as_changed`), takes the derived records
with it (`made_of`, `give_back`), or leaves them (`follow`). What only says the same (`confirmed_by`) is no source, nor
is what a note has `read` and `made`.

What was read is read once. So what a person deletes is not made again: the note of its reading stays. If it goes or is
left because of a source, what stays may say it again (`say_again`): the notes that have made or confirmed it forget
that they have read its other sources and the turns that confirm it, and an equal statement that was merged into it is
active. A note has read or made a record that is stored, and goes with the last of them (`says_nothing`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Protocol

from memory_core.errors import ConflictError
from memory_core.models import DERIVING, Link, MemoryRecord, Patch, Scope
from memory_core.records.restating import are_same_links, reading_of
from memory_core.records.superseding import reinstated, retired, superseded_by
from memory_core.storage.rules.rows import Head, HidingRows, Row
from memory_core.values.limits import MAX_LINKS


class LinkedRows(Protocol):
    """The methods of `Rows` that these rules use."""

    def with_ids(self, ids: Sequence[str]) -> Sequence[Row]:
        """See `Rows`."""
        ...

    def linking_to(self, ids: Collection[str]) -> Sequence[Row]:
        """See `Rows`."""
        ...

    def overwrite(self, changed: Sequence[tuple[Row, MemoryRecord]]) -> None:
        """See `Rows`."""
        ...


def sources_of(links: Iterable[Link]) -> list[Link]:
    """The links to the records whose words a record was made of."""
    return [link for link in links if link.relation in DERIVING]


def loses_source(before: MemoryRecord, after: MemoryRecord) -> bool:
    """True if a record is not made any more of the words of a record that it was made of; then earlier texts are
    dropped, in which these words may be."""
    return bool({link.id for link in sources_of(before.links)}.difference(link.id for link in sources_of(after.links)))


def says_nothing(before: MemoryRecord, after: MemoryRecord) -> bool:
    """True if a note has lost the last record that it had read or made."""
    return not after.text and _has_noted(before) and not _has_noted(after)


def is_within(link: Link, scope: Scope) -> bool:
    """True if a link names a record of the agent, session and collection of a scope."""
    bounds = (scope.agent, link.agent), (scope.session, link.session), (scope.collection, link.collection)
    return all(wanted in (None, named) for wanted, named in bounds)


def insist_on_sources(rows: LinkedRows, new: Sequence[MemoryRecord], known: Collection[Link] = ()) -> None:
    """Refuse records of which a source is gone, was left or has changed since it was read.

    Args:
        known: Links that the records had before: what has become of their sources since is no reason to refuse.

    Raises:
        ConflictError: Naming the record and its source.
    """
    before = {reading_of(link) for link in known}
    named = [(record, link) for record in new for link in sources_of(record.links) if reading_of(link) not in before]
    wanted = {link.id for _, link in named}
    if not wanted:
        return
    sources = {row.record.id: row.record for row in rows.with_ids(sorted(wanted))} | {one.id: one for one in new}
    for record, link in named:
        if (problem := _problem(sources.get(link.id), link)) is not None:
            raise ConflictError(
                f"the memory {record.id!r} was made of the words of {link.id!r}, which {problem}; nothing was written, "
                "read that memory again"
            )


def restated(rows: LinkedRows, before: MemoryRecord, after: MemoryRecord) -> MemoryRecord:
    """A stored record whose words or sources are given again, as its sources are: left, or shown again.

    Raises:
        ConflictError: A source of new words, or a new one, is gone, was left or has changed since it was read.
    """
    insist_on_sources(rows, [after], before.links if before.text == after.text else ())
    return as_sources_are(rows, before, after)


def as_changed(rows: LinkedRows, before: MemoryRecord, after: MemoryRecord, patch: Patch) -> MemoryRecord:
    """A stored record that somebody has patched, as its sources are, if the links were changed.

    Raises:
        ConflictError: A new source is gone, was left or has changed since it was read; or the record is resumed while
            one of its sources is left, or reads otherwise than it was read.
    """
    if not are_same_links(before.links, after.links):
        insist_on_sources(rows, [after], before.links)
        after = after if isinstance(patch.left, bool) else as_sources_are(rows, before, after)
    if before.left and not after.left:
        _insist_on_shown(rows, after)
    return after


def as_sources_are(rows: LinkedRows, before: MemoryRecord, after: MemoryRecord) -> MemoryRecord:
    """A stored record after a change of its sources: left if one of them is left or has changed, else shown."""
    if not sources_of((*before.links, *after.links)):
        return after
    is_left = _untrue(rows, after) is not None
    return after if after.left == is_left else replace(after, left=is_left)


def _insist_on_shown(rows: LinkedRows, record: MemoryRecord) -> None:
    if (found := _untrue(rows, record)) is not None:
        link, problem = found
        raise ConflictError(
            f"the memory {record.id!r} was made of the words of {link.id!r}, which {problem}, so it stays left; "
            "nothing was written"
        )


def _untrue(rows: LinkedRows, record: MemoryRecord) -> tuple[Link, str] | None:
    """The first link of a record to a source that is left or has changed, and which of both."""
    links = sources_of(record.links)
    known = {row.record.id: row.record for row in rows.with_ids([link.id for link in links])} if links else {}
    problems = ((link, _problem(known[link.id], link)) for link in links if link.id in known)
    return next(((link, problem) for link, problem in problems if problem is not None), None)


def made_of(rows: LinkedRows, ids: Collection[str]) -> list[Row]:
    """The records that were made of the words of these, of what was made of them, and so on."""
    found: dict[str, Row] = {}
    latest = set(ids)
    while latest:
        derived = [row for row in rows.linking_to(latest) if _is_made_of(row.record, latest)]
        latest = {row.record.id for row in derived}.difference(found, ids)
        found |= {row.record.id: row for row in derived if row.record.id in latest}
    return list(found.values())


def outdated(rows: LinkedRows, ids: Collection[str]) -> list[Row]:
    """The records that are left because of these: when their time is over, nothing can bring it back."""
    if not ids or not (made := [row for row in rows.linking_to(ids) if row.record.left]):
        return []
    known = {row.record.id: row.record for row in rows.with_ids(sorted(ids))}
    return [row for row in made if any(_problem(known.get(link.id), link) for link in _those(row.record, known))]


def pass_on(rows: LinkedRows, gone: Sequence[Head], now: datetime) -> list[Row]:
    """Let what was made of derived records whose time is over name their sources, so that these still reach it. Returns
    what would have more links than a record can have."""
    made = {head.id: sources_of(head.links) for head in gone if sources_of(head.links)}
    too_many: list[Row] = []
    for row in rows.linking_to(made.keys()) if made else ():
        if row.record.id in made or not _those(row.record, made):
            continue
        links = _with_sources(row.record, made)
        if len(links) > MAX_LINKS:
            too_many.append(row)
        elif links != row.record.links:
            record = replace(row.record, links=links, updated_at=now, version=row.record.version + 1)
            rows.overwrite([(row, record)])
    return too_many


def _with_sources(record: MemoryRecord, made: Mapping[str, Sequence[Link]]) -> tuple[Link, ...]:
    """The links of a record, and those to the sources of its sources among `made`, and so on."""
    links = {link.id: link for link in sources_of(record.links)}
    latest = [id_ for id_ in links if id_ in made]
    while latest:
        found = {link.id: link for id_ in latest for link in made[id_] if link.id not in links}
        links |= found
        latest = [id_ for id_ in found if id_ in made]
    known = {link.id for link in sources_of(record.links)}
    return (*record.links, *(replace(link, relation="derived_from") for id_, link in links.items() if id_ not in known))


def expand(rows: LinkedRows, gone: Sequence[Head], now: datetime) -> None:
    """Make turns active again that summaries had compacted which are gone."""
    for head in gone:
        _expand(rows, head.id, _summarised(head.links), now)


def give_back(rows: LinkedRows, gone: Sequence[Head], now: datetime) -> None:
    """Undo what derived records did that are gone: what they had superseded is as it was before, unless a record that
    stays has superseded them; then that one supersedes it. Turns that a summary had compacted are active again."""
    for head in gone:
        if sources_of(head.links):
            _reinstate(rows, head, now)
            _expand(rows, head.id, _summarised(head.links), now)


def say_again(rows: LinkedRows, gone: Sequence[Head], now: datetime) -> None:
    """Let be said again what has gone with a source, by whom it was made: its other sources and the turns that confirm
    it are read again, and equal statements that were merged into it are active. What somebody else has read of them
    stays read, so that what a person has deleted of it stays deleted."""
    _say_again(rows, {head.id: head.links for head in gone if sources_of(head.links)}, now)


def _say_again(rows: LinkedRows, lost: Mapping[str, Sequence[Link]], now: datetime) -> None:
    """Let be said again what is gone or left; the links of each name what may be read again."""
    linking = rows.linking_to(lost.keys()) if lost else ()
    replaced = set(chain.from_iterable(superseded_by(row.record) for row in linking))  # which nobody misses
    confirming = {id_: () if id_ in replaced else _confirming(links) for id_, links in lost.items()}
    again = {id_: {link.id for link in (*sources_of(links), *confirming[id_])} for id_, links in lost.items()}
    for row in linking:
        by_note = [again[link.id] for link in row.record.links if link.relation == "made" and link.id in again]
        read = frozenset(chain.from_iterable(by_note))
        _rewrite_note(
            rows, row, tuple(link for link in row.record.links if link.relation != "read" or link.id not in read), now
        )
    for id_, links in confirming.items():
        _expand(rows, id_, {link.id for link in links}, now, _standing_for)


def stay_read(rows: LinkedRows, gone: Sequence[Head], now: datetime) -> None:
    """Let the sources of what a person has deleted stay read, also if it was left, and they were to be read again."""
    made = {head.id: sources for head in gone if (sources := sources_of(head.links))}
    wanted = {link.id for links in made.values() for link in links}
    known = {row.record.id for row in rows.with_ids(sorted(wanted))} if wanted else set[str]()
    _note_reading(rows, {id_: [link for link in links if link.id in known] for id_, links in made.items()}, now)


def _note_reading(rows: LinkedRows, made: Mapping[str, Sequence[Link]], now: datetime) -> None:
    """Let the notes that have made these records have read their sources, which are given with them."""
    for row in rows.linking_to(made.keys()) if made else ():
        by_note = [made[link.id] for link in row.record.links if link.relation == "made" and link.id in made]
        read = [replace(link, relation="read") for link in chain.from_iterable(by_note)]
        _rewrite_note(rows, row, tuple(dict.fromkeys([*row.record.links, *read])), now)


def _rewrite_note(rows: LinkedRows, row: Row, links: tuple[Link, ...], now: datetime) -> None:
    if links != row.record.links:
        record = replace(row.record, links=links, updated_at=now, version=row.record.version + 1)
        rows.overwrite([(row, record)])


def uncover(rows: LinkedRows, before: MemoryRecord, after: MemoryRecord) -> None:
    """Make turns active again that a summary covered, and does not cover any more, or not while it is left."""
    if uncovered := _covered(before).difference(_covered(after)):
        _expand(rows, after.id, uncovered, after.updated_at)


def follow(rows: LinkedRows, before: MemoryRecord, after: MemoryRecord) -> None:
    """Leave what was made of the words of a record that has changed or was left, or resume it."""
    if (before.rev, before.left) != (after.rev, after.left):
        _follow(rows, {after.id}, after.updated_at)


def _follow(rows: LinkedRows, changed: Collection[str], now: datetime) -> None:
    if changed and not (isinstance(rows, HidingRows) and rows.hide_to_follow(changed, now)):
        follow_sources(rows, [row for row in rows.linking_to(changed) if _is_made_of(row.record, changed)], now)


def follow_sources(rows: LinkedRows, made: Sequence[Row], now: datetime) -> None:
    """Leave records, or resume them, as their sources are, with what was made of their words."""
    wanted = {link.id for row in made for link in sources_of(row.record.links)}
    known = {source.record.id: source.record for source in rows.with_ids(sorted(wanted))} if wanted else {}
    changed: list[tuple[Row, MemoryRecord]] = []
    for row in made:
        is_left = not all(holds(known[link.id], link) for link in _those(row.record, known))
        if is_left != row.record.left:
            version = row.record.version + 1
            changed.append((row, replace(row.record, left=is_left, updated_at=now, version=version)))
    rows.overwrite(changed)
    for row, after in changed:
        uncover(rows, row.record, after)
    shown = [after for _, after in changed if not after.left]
    _note_reading(
        rows, {each.id: [link for link in each.links if link.relation == "summarizes"] for each in shown}, now
    )
    _say_again(rows, {after.id: _held(after, known) for _, after in changed if after.left}, now)
    _follow(rows, {after.id for _, after in changed}, now)


def _held(record: MemoryRecord, known: Mapping[str, MemoryRecord]) -> list[Link]:
    """The links of a record without those to sources that are left, or read otherwise."""
    return [
        link
        for link in record.links
        if link.relation not in DERIVING or (link.id in known and holds(known[link.id], link))
    ]


def holds(source: MemoryRecord, link: Link) -> bool:
    """True if a record that was made of the words of this one, with this link, holds."""
    return _problem(source, link) is None


def _problem(source: MemoryRecord | None, link: Link) -> str | None:
    """The reason why a record that was made of the words of another one does not hold; `None` if it holds."""
    if source is None:
        return "is gone"
    if source.left:
        return "was left"
    return "has changed" if link.rev not in (None, source.rev) else None


def _has_noted(record: MemoryRecord) -> bool:
    return any(link.relation in ("read", "made") for link in record.links)


def _those(record: MemoryRecord, ids: Collection[str]) -> list[Link]:
    return [link for link in sources_of(record.links) if link.id in ids]


def _is_made_of(record: MemoryRecord, ids: Collection[str]) -> bool:
    return bool(_those(record, ids))


def _reinstate(rows: LinkedRows, head: Head, now: datetime) -> None:
    old = [link.id for link in head.links if link.relation == "supersedes"]
    if not old:
        return
    heir = next((row for row in rows.linking_to({head.id}) if head.id in superseded_by(row.record)), None)
    for row in rows.with_ids(old):
        restored = reinstated(row.record, now)
        if heir is not None and restored is not row.record:
            restored = replace(retired(restored, heir.record), version=row.record.version + 1)
        if restored is not row.record:
            rows.overwrite([(row, restored)])
    if heir is not None:
        links = tuple(link for link in heir.record.links if (link.relation, link.id) != ("supersedes", head.id))
        inherited = (*links, *(Link("supersedes", one) for one in old))
        rows.overwrite([(heir, replace(heir.record, links=inherited, version=heir.record.version + 1))])


def _summarised(links: Iterable[Link]) -> set[str]:
    return {link.id for link in links if link.relation == "summarizes"}


def _confirming(links: Iterable[Link]) -> list[Link]:
    """The links to turns that say the same, and to equal statements that were merged."""
    return [link for link in links if link.relation == "confirmed_by"]


def _covered(record: MemoryRecord) -> set[str]:
    """The turns in whose place a summary is shown."""
    return set() if record.left else _summarised(record.links)


def _standing_for(record: MemoryRecord) -> set[str]:
    """The records in whose place a summary, or an equal statement, is shown."""
    return set() if record.left else _summarised(record.links) | {link.id for link in _confirming(record.links)}


def _expand(
    rows: LinkedRows,
    lost: str,
    named: Collection[str],
    now: datetime,
    covered_by: Callable[[MemoryRecord], Collection[str]] = _covered,
) -> None:
    """Make those records active again in whose place one was shown that is not any more, and no other one is shown."""
    found = rows.with_ids(sorted(named)) if named else ()
    compacted = {row.record.id: row for row in found if row.record.state == "compacted"}
    others = (row.record for row in (rows.linking_to(compacted.keys()) if compacted else ()) if row.record.id != lost)
    covered = set(chain.from_iterable(map(covered_by, others)))
    again = [row for id_, row in compacted.items() if id_ not in covered]
    rows.overwrite(
        [(row, replace(row.record, state="active", updated_at=now, version=row.record.version + 1)) for row in again]
    )
