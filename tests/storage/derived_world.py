"""The model of what a memory has to hold while records are derived, changed and deleted.

Each text of a record that is not derived is one word that no other text has, and a derived text is all the words of its
sources. So whether anything is left of a source that has gone is a search for its words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Literal

from memory_core import Link, MemoryRecord

Place = tuple[str | None, str | None, str | None]
"""An agent, a session and a collection."""
_WORD = re.compile(r"zq\d{6}x")


def place_of(one: MemoryRecord | Link) -> Place:
    """The place of a record, or of the one that a link names."""
    return (one.agent, one.session, one.collection)


def is_at(place: Place, bounds: Place) -> bool:
    """True if a place is within bounds, of which `None` bounds nothing."""
    return all(bound in (None, name) for bound, name in zip(bounds, place, strict=True))


def words_of(text: str) -> set[str]:
    """The words by which texts are followed."""
    return set(_WORD.findall(text))


@dataclass
class Entry:
    """The knowledge of a record."""

    id: str
    text: str
    place: Place
    rev: int = 1
    words: set[str] = field(default_factory=set[str])
    """The words that came into the memory with a text of this record."""
    sources: Mapping[str, int] = field(default_factory=dict[str, int])
    """The `rev` that was read of each record that it was made of."""
    places: frozenset[Place] = frozenset()
    """The places of its sources."""
    left: bool = False
    """By a person, not because of a source."""
    expires_at: datetime | None = None
    replaced_by: str | None = None
    is_compacted: bool = False
    """Because a summary covers it."""
    is_summary: bool = False
    by_upkeep: bool = False
    source_key: str | None = None
    is_sure: bool = True
    """True if this model knows its state: what a plain record replaced stays archived when that is deleted."""


@dataclass
class World:
    """The records that a memory must have, and the words that nothing may have."""

    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    gone_words: set[str] = field(default_factory=set[str])
    replaced_words: set[str] = field(default_factory=set[str])
    """The words of texts that were edited: they may be in what is left and in histories, and nothing shows them."""
    final: dict[bool, set[tuple[str, int]]] = field(default_factory=lambda: {True: set(), False: set()})
    """The readings of which a person has deleted what upkeep made: for summaries, and for facts."""
    made: int = 0

    def word(self) -> str:
        """One that no text has had."""
        self.made += 1
        return f"zq{self.made:06}x"

    def stored(self, record: MemoryRecord, words: Iterable[str] = (), *, by_upkeep: bool = False) -> Entry:
        """Note a new record."""
        entry = Entry(
            record.id,
            record.text,
            place_of(record),
            words=set(words),
            expires_at=record.expires_at,
            by_upkeep=by_upkeep,
            source_key=record.source_key,
        )
        self._link(entry, record)
        self.entries[record.id] = entry
        for link in record.links:
            if link.relation == "supersedes" and link.id in self.entries:
                self.entries[link.id].replaced_by = record.id
        return entry

    def restated(self, record: MemoryRecord) -> None:
        """Note other words, or other sources, under a known source key."""
        entry = self.entries[record.id]
        self._link(entry, record)
        if entry.text != record.text:
            entry.rev += 1
            self.replaced_words |= words_of(entry.text) & entry.words
            entry.text = record.text
        self.expand()

    def _link(self, entry: Entry, record: MemoryRecord) -> None:
        read = [link for link in record.links if link.relation in ("derived_from", "summarizes")]
        entry.sources = {link.id: link.rev or 0 for link in read}
        entry.places = frozenset(map(place_of, read))
        entry.is_summary = any(link.relation == "summarizes" for link in read)

    def edited(self, id: str, text: str) -> None:  # noqa: A002  (the record's own word)
        """Note another text."""
        entry = self.entries[id]
        entry.rev += 1
        self.replaced_words |= words_of(entry.text) & entry.words
        entry.text = text
        entry.words |= words_of(text)
        self.expand()

    def removed(self, ids: Collection[str]) -> set[str]:
        """Note a deletion; returns the ids of the derived records that have gone with it."""
        gone = self.made_of(ids)
        for id_ in gone:
            self.gone_words |= self.entries[id_].words
        for entry in self.entries.values():
            if entry.id not in gone:
                self._give_back(entry, gone)
        for id_ in gone:
            del self.entries[id_]
        self.expand()
        return gone.difference(ids)

    def deleted(self, ids: Collection[str]) -> None:
        """Note that a person has deleted these."""
        for entry in (self.entries[id_] for id_ in ids):
            if entry.by_upkeep:
                self.final[entry.is_summary] |= set(entry.sources.items())
        self.removed(ids)

    def expand(self) -> None:
        """Note that what no summary covers any more, of those that are shown, is active again."""
        covered = {id_ for e in self.entries.values() if e.is_summary and not self.is_left(e) for id_ in e.sources}
        for entry in self.entries.values():
            entry.is_compacted = entry.is_compacted and entry.id in covered

    def made_of(self, ids: Collection[str]) -> set[str]:
        """These records, and what was made of their words, and so on."""
        found = set(ids)
        while more := {e.id for e in self.entries.values() if e.id not in found and not found.isdisjoint(e.sources)}:
            found |= more
        return found

    def made_within(self, bounds: Place) -> set[str]:
        """The records within bounds and what was made of the words of one, also of one that has expired."""
        return {e.id for e in self.entries.values() if any(is_at(place, bounds) for place in (e.place, *e.places))}

    def expired(self, now: datetime) -> None:
        """Note what has expired by now, and has taken with it what is left because of it."""
        over = {e.id for e in self.entries.values() if e.expires_at is not None and e.expires_at <= now}
        hidden = {e.id for e in self.entries.values() if any(map(partial(self._is_otherwise, e), over))}
        self.removed(self.made_of(hidden - over) - over)
        for entry in self.entries.values():
            self._inherit(entry, over)
        for id_ in over:
            del self.entries[id_]
        self.expand()

    def is_left(self, entry: Entry) -> bool:
        """True if a record is left, by a person or because of a source."""
        return entry.left or any(map(partial(self._is_otherwise, entry), self.entries))

    def _is_otherwise(self, entry: Entry, id: str) -> bool:  # noqa: A002
        """True if something was made of the words of a record that has changed or was left."""
        return id in entry.sources and (entry.sources[id] != self.entries[id].rev or self.is_left(self.entries[id]))

    def problem(self, sources: Sequence[MemoryRecord]) -> bool:
        """True if something that was made of these records as they were read must be refused."""
        known = [self.entries.get(source.id) for source in sources]
        return any(
            entry is None or entry.rev != source.rev or self.is_left(entry)
            for entry, source in zip(known, sources, strict=True)
        )

    def state(self, entry: Entry) -> Literal["active", "compacted", "archived"] | None:
        """The state that it must have; `None` if any will do."""
        if not entry.is_sure:
            return None
        if entry.replaced_by is not None:
            return "archived"
        return "compacted" if entry.is_compacted else "active"

    def shown(self) -> Iterator[Entry]:
        """The entries that every read without conditions must find."""
        return (e for e in self.entries.values() if self.state(e) == "active" and not self.is_left(e))

    def _inherit(self, entry: Entry, over: set[str]) -> None:
        """Note that the sources of sources whose time is over are now its own."""
        while new := [
            source
            for id_ in over.intersection(entry.sources)
            if (source := self.entries[id_]).sources.keys() - entry.sources
        ]:
            for source in new:
                entry.sources = {**source.sources, **entry.sources}
                entry.places |= source.places

    def _give_back(self, entry: Entry, gone: set[str]) -> None:
        while entry.replaced_by in gone:
            heir = self.entries[str(entry.replaced_by)]
            entry.is_sure = entry.is_sure and bool(heir.sources)
            entry.replaced_by = heir.replaced_by
