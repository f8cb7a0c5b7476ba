"""The gateway below the rules of a write: the rows of one owner within one transaction.

A database offers these eleven functions, and decides nothing. What a write means (identity, forgotten source keys,
superseding, links, expiry) stands above them in the other files of this folder. `Rows` are made for one transaction;
if a rule raises, the transaction is rolled back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable

from memory_core.models import Link, MemoryRecord, Scope
from memory_core.storage.shared.prepared import Prepared
from memory_core.where.where import Where


class Row(NamedTuple):
    """A stored record."""

    key: int
    """By which the database knows it; in order of arrival."""
    record: MemoryRecord


class Head(NamedTuple):
    """The fields of a stored record that deleting reads."""

    key: int
    id: str
    source_key: str | None
    version: int
    links: Sequence[Link] = ()
    size: int = 0
    """Bytes of content, for a database that counts them."""


class StoredRows(Protocol):
    """The reads. They find records of every state, and expired ones until they are removed."""

    def with_ids(self, ids: Sequence[str]) -> Sequence[Row]:
        """The records of these ids that exist."""
        ...

    def with_source_keys(self, source_keys: Sequence[str]) -> Mapping[str, Row | None]:
        """The record of each source key; `None` for a forgotten one without a record. Unknown keys are left out."""
        ...

    def linking_to(self, ids: Collection[str]) -> Sequence[Row]:
        """The records with a link to one of these ids."""
        ...

    def earlier(self, row: Row) -> Sequence[tuple[int, str, datetime]]:
        """The earlier texts of a record, oldest first: revision, text, until when."""
        ...

    def matching(self, scope: Scope, where: Where, now: datetime) -> Sequence[Head]:
        """The records in scope that satisfy the conditions (`memory_core.where.meaning.satisfies`)."""
        ...

    def expired(self, scope: Scope, now: datetime, new: Sequence[MemoryRecord] = ()) -> Sequence[Head]:
        """Records in scope whose `expires_at` is not after `now`: all of them, or as many as one transaction should
        delete, and those that have the id or the source key of a new record. Empty if nothing has expired."""
        ...


class ChangedRows(Protocol):
    """The writes. They keep derived rows and counts up to date and check nothing but uniqueness."""

    def append(self, new: Sequence[Prepared]) -> None:
        """Write new records, in order of arrival.

        Raises:
            DuplicateIdError: An id or a source key is taken, or repeated among them.
        """
        ...

    def rewrite(self, row: Row, item: Prepared) -> None:
        """Write a changed record and everything derived from it in the place of a row.

        A text that did not change keeps its stored vectors if the item has none and the pieces are the same; a text
        that changed becomes an earlier version (`earlier`), and a record that loses a source has no earlier versions
        (`deriving.loses_source`).
        """
        ...

    def overwrite(self, changed: Sequence[tuple[Row, MemoryRecord]]) -> None:
        """Write records of which no searched field changed (`merging.is_searched_differently`). One that loses a source
        has no earlier versions."""
        ...

    def remove(self, gone: Sequence[Head]) -> None:
        """Delete records and everything derived from them; links to them stay."""
        ...

    def forget(self, source_keys: Sequence[str], *, forgotten: bool) -> None:
        """Remember that these keys are forgotten, also when nothing else is left of their owner, or are free again."""
        ...


@runtime_checkable
class HidingRows(Protocol):
    """The methods that a database may offer in addition, so that a change of a record of whose words much was made
    takes no long transaction."""

    def hide_made_of(self, gone: Sequence[Head], now: datetime) -> int:
        """Hide what was made of the words of these from all reads, these functions included, and delete it soon after
        this transaction, with `deleting.take_away`; returns how many records these are, 0 if there are so few that
        they are to be deleted at once."""
        ...

    def hide_to_follow(self, changed: Collection[str], now: datetime) -> bool:
        """Hide what was made of the words of these records from all reads, but not from these functions, and let it
        follow soon after this transaction, with `deriving.follow_sources`; `False` if that is so little that it is to
        follow at once."""
        ...


class Rows(StoredRows, ChangedRows, Protocol):
    """The rows of one owner within one transaction."""
