"""The values that callers pass and receive, frozen and without I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, make_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from memory_core.errors import InvalidInputError, ScopeError
from memory_core.values.checks import check_key, shown
from memory_core.values.html_tables import html_table
from memory_core.values.partial_schema import partial_schema
from memory_core.values.unset import UNSET, Unset
from memory_core.values.value import Value, brief

if TYPE_CHECKING:
    Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
    """The type of the values in `Draft.data`: JSON."""
else:
    Json = Any  # pydantic, and with it FastAPI, does not support recursive aliases


State = Literal["active", "compacted", "archived"]
Role = Literal["user", "assistant", "tool", "system"]
"""The speaker: a person, the model, a tool, or the application that instructs the model."""
Tier = Literal["raw", "medium", "high", "summary"]
Mode = Literal["substring", "lexical", "vector", "hybrid"]
Order = Literal["newest", "oldest", "importance", "accessed"]
Relation = Literal["supersedes", "summarizes", "derived_from", "confirmed_by", "read", "made", "follows"]
TimeField = Literal["created_at", "updated_at", "accessed_at", "occurred_at", "expires_at", "valid_from", "valid_to"]
NumberField = Literal["importance", "confidence", "access_count", "rev", "version"]
NameField = Literal["id", "source_key", "role", "kind", "tier", "author", "emotion", "agent", "session", "collection"]
"""The fields of a record that a `FieldCondition` compares as moments, as numbers, and by equality."""

STATES: Final[tuple[State, ...]] = ("active", "compacted", "archived")
RELATIONS: Final[tuple[Relation, ...]] = (
    "supersedes",
    "summarizes",
    "derived_from",
    "confirmed_by",
    "read",
    "made",
    "follows",
)
DERIVING: Final[tuple[Relation, ...]] = ("summarizes", "derived_from")
"""The relations of a record to those whose words it was made of: it has their life."""
ROLES: Final[tuple[Role, ...]] = ("user", "assistant", "tool", "system")
TIERS: Final[tuple[Tier, ...]] = ("raw", "medium", "high", "summary")

PASSAGE_END: Final = "\f"
"""The form feed, which ends a page, and so separates passages in a text."""


@dataclass(frozen=True, slots=True)
class Scope(Value):
    """The owner whose memories a handle reads and writes, and the provenance it requires.

    `(app, user)` is the owner: the unit of isolation. The other keys are provenance; a key that is
    not `None` is set on every record written and required of every record read, changed or deleted.
    """

    app: str
    user: str | None = None
    """`None` leaves the user open: the handle has to be bound to a user before it can do anything."""
    agent: str | None = None
    session: str | None = None
    collection: str | None = None

    def __post_init__(self) -> None:
        check_key("app", self.app, ScopeError)
        for name in ("user", "agent", "session", "collection"):
            value = getattr(self, name)
            if value is not None:
                check_key(name, value, ScopeError)


@dataclass(frozen=True, slots=True, order=True)
class Link(Value):
    """The relation of a record to another record of its owner: `Link("summarizes", id)`.

    A record that is added with a `supersedes` link replaces the other record, which is archived in the same transaction
    and stays valid until the new one becomes valid. A `confirmed_by` link names a record that says the same; a note
    has `read` links to what somebody read, and `made` links to what was made of it or confirmed by it, and is deleted
    with the last record that it names. Deleting a record also deletes the links to it.

    A record with a `derived_from` or `summarizes` link was made of the words of the other record, and has its life: it
    is not stored if that is gone, was left or has changed; it is deleted with it; and it is left, as a message that a
    person has left, while that is left or reads otherwise than it was read. If the other record expires, the link
    stays.
    """

    relation: Relation
    id: str
    rev: int | None = field(default=None, compare=False)
    """The `rev` of the other record that was read; `None` if any will do."""
    session: str | None = field(default=None, compare=False)
    """This and the others of the other record, so that erasing a session, collection or agent also reaches what was
    made of a record of it that has expired."""
    collection: str | None = field(default=None, compare=False)
    agent: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, repr=False)
class Draft(Value):
    """A record to be stored, as a caller describes it: `Draft("Ann drinks tea", kind="preference")`.

    Only text or data is required.

    Times are aware datetimes; the core stores UTC microseconds, and the offset of `occurred_at`. `agent`, `session` and
    `collection` may not contradict what the handle is bound to.
    """

    text: str = ""
    _: KW_ONLY
    role: Role | None = None
    """The speaker in a conversation: a person, the model, a tool or the application; `None` if there is no speaker,
    several, or an unknown one. A record with a role and a session is a turn and is ranked together with the turns
    around it."""
    kind: str = "note"
    """Any word; `TIER_OF_KIND` lists the kinds with a specific tier."""
    tier: Tier | None = None
    author: str | None = None
    """The speaker's name as people would write it; searchable, and part of the ranking."""
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Any JSON object; returned unchanged."""
    tags: Sequence[str] = ()
    importance: float = 0.5
    confidence: float = 1.0
    emotion: str | None = None
    occurred_at: datetime | None = None
    """The time at which it was said or happened; now, if not given. Its zone says on which day that was for the
    person, so its offset from UTC is kept, in whole minutes; a time in UTC names no place, and gets the zone of the
    handle."""
    expires_at: datetime | None = None
    """The moment from which no read returns it."""
    valid_from: datetime | None = None
    """The moment from which it is true; `occurred_at`, if not given."""
    valid_to: datetime | None = None
    """The moment from which it is no longer true; used by `Where.as_of` only."""
    links: Sequence[Link] = ()
    source_key: str | None = None
    """Idempotency key within the owner, such as a message id: adding it again updates text, role, author, data and tags
    if they differ (a role is never removed), else changes nothing; once deleted it stays forgotten."""
    id: str | None = None
    """Chosen by the caller, unique within the owner; a UUIDv7, if not given."""
    agent: str | None = None
    session: str | None = None
    collection: str | None = None
    passages: Sequence[str] = ()
    """Parts that are each embedded alone, so that a search finds the record by the nearest of them, not by an average:
    the facts of an item, say. The record's `text` is this text, if any, and the passages, with form feeds between."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoryRecord(Value):
    """One stored memory. Its fields are those of `Draft`, completed.

    Times are UTC, but for `occurred_at`, which has the offset of the place where it was said or happened.
    """

    id: str
    text: str
    role: Role | None
    kind: str
    tier: Tier
    author: str | None
    data: Mapping[str, Json]
    tags: tuple[str, ...]
    importance: float
    confidence: float
    emotion: str | None
    created_at: datetime
    updated_at: datetime
    accessed_at: datetime | None
    occurred_at: datetime
    access_count: int
    expires_at: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    state: State
    left: bool = False
    """True if a person has left this message in the record of its framework, by an edit or another branch. Reads skip
    it, nothing is deleted, and it may be resumed. Independent of `state`."""
    former_state: State | None = None
    """The state before another record superseded this one, for taking that back; `None` if none did."""
    former_valid_to: datetime | None = None
    """The same of `valid_to`."""
    source_key: str | None
    rev: int
    """1 at first, incremented by every change of the text."""
    version: int
    """1 at first, incremented by every change of any field; counted reads do not change it."""
    agent: str | None
    session: str | None
    collection: str | None
    links: tuple[Link, ...] = ()
    app: str
    user: str

    def __repr__(self) -> str:
        author = "" if self.author is None else f", author={brief(self.author)}"
        return f"MemoryRecord({brief(self.text)}, kind={self.kind!r}{author}, id={self.id!r})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Patch(Value):
    """Changes to a record; fields left `UNSET` stay unchanged."""

    text: str | Unset = UNSET
    role: Role | Unset | None = UNSET
    kind: str | Unset = UNSET
    tier: Tier | Unset = UNSET
    author: str | Unset | None = UNSET
    data: Mapping[str, Json] | Unset = UNSET
    tags: Sequence[str] | Unset = UNSET
    importance: float | Unset = UNSET
    confidence: float | Unset = UNSET
    emotion: str | Unset | None = UNSET
    occurred_at: datetime | Unset = UNSET
    expires_at: datetime | Unset | None = UNSET
    valid_from: datetime | Unset | None = UNSET
    valid_to: datetime | Unset | None = UNSET
    state: State | Unset = UNSET
    left: bool | Unset = UNSET
    links: Sequence[Link] | Unset = UNSET

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: Any) -> Any:  # pydantic's types
        return partial_schema(cls, handler)


@dataclass(frozen=True, slots=True)
class Component(Value):
    """One part of the score of a hit."""

    raw: float
    """The measured value, in the unit of the component: BM25, cosine, a 0..1 match."""
    weighted: float
    """Its share of the score."""


@dataclass(frozen=True, slots=True)
class Passage(Value):
    """A part of a text: `record.text[start:stop]`."""

    start: int
    stop: int
    text: str


def whole_passage(text: str) -> Passage:
    """All of a text."""
    return Passage(0, len(text), text)


@dataclass(frozen=True, slots=True)
class Relevance(Value):
    """The degree to which a record says something about the query itself, in spreads of the cosines of unrelated texts.

    Unlike scores, these values are comparable between searches.
    """

    strength: float
    """The evidence of the record alone, without its neighbors and without preferences for kinds of records."""
    chance: float
    """The strength that the best of as many unrelated records reaches by chance."""
    small_talk: float
    """The nearness of the query to greetings, thanks, sums, jokes and other phrases that ask for nothing remembered."""

    @property
    def surplus(self) -> float:
        """The distance by which the strength exceeds both; above 0, the query is about something that the record
        says."""
        return self.strength - max(self.chance, self.small_talk)


@dataclass(frozen=True, slots=True, repr=False)
class Hit(Value):
    """A record found by a search."""

    record: MemoryRecord
    score: float
    """Higher is better; comparable only within one search."""
    similarity: float | None
    """Cosine between query and text clamped to [0, 1]; `None` if no vector was compared."""
    components: Mapping[str, Component] | None = None
    """With `explain=True`: every part of the score by name; the weighted parts sum to `score`."""
    passage: Passage | None = None
    """The best-matching part of a long text, or all of a short one."""
    relevance: Relevance | None = None
    """The relevance of the record to the query itself; `None` in searches by substring or by vectors alone."""

    def __repr__(self) -> str:
        return f"Hit({self.score:.3f}, {self.record!r})"


class Known(NamedTuple):
    """The part of a stored message that a conversation compares with its framework's record."""

    key: str
    """Its `source_key`."""
    id: str
    rev: int
    version: int
    state: State
    left: bool

    @classmethod
    def of(cls, record: MemoryRecord) -> Known:
        """This part of a record, which has a source key."""
        return cls(record.source_key or "", record.id, record.rev, record.version, record.state, record.left)


@dataclass(frozen=True, slots=True)
class Version(Value):
    """The text of a record during a period, as `history` returns it."""

    id: str
    """Id of the record."""
    rev: int
    text: str
    since: datetime
    until: datetime | None
    """The time at which another text replaced it; `None` if it is the current one."""


@dataclass(frozen=True, slots=True, repr=False)
class Page(Value):
    """One page of a listing: `for record in page`."""

    records: tuple[MemoryRecord, ...]
    cursor: str | None
    """Pass it to the next call to continue after the last record; `None` at the end."""

    def __iter__(self) -> Iterator[MemoryRecord]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"Page({len(self.records)} records, cursor={self.cursor!r})"

    def _repr_html_(self) -> str:
        rows = [(each.text, each.kind, each.author, each.occurred_at, each.id) for each in self.records]
        return html_table(("text", "kind", "author", "occurred at", "id"), rows)


@dataclass(frozen=True, slots=True)
class Stats(Value):
    """Counts of the records a handle reaches, in every state and also those that were left; expired ones do not count.

    `bytes` is the size of the texts in UTF-8 and of data, tags and links as JSON; earlier texts, vectors and indexes
    are not included.
    """

    records: int
    by_kind: Mapping[str, int]
    by_tier: Mapping[str, int]
    by_state: Mapping[str, int]
    left: int
    """The number of them that were left, in whatever state."""
    sessions: int
    oldest: datetime | None
    newest: datetime | None
    average_importance: float | None
    average_confidence: float | None
    vectors_pending: int
    """Pieces of text with a pending vector; they are found by their words meanwhile."""
    bytes: int | None  # of texts, data, tags and links; `None` if the store does not count them


EMPTY_STATS: Final = Stats(0, {}, {}, {}, 0, 0, None, None, None, None, 0, 0)
"""The counts of an owner without records."""


@dataclass(frozen=True, slots=True)
class Finding(Value):
    """Something that a check of a memory found."""

    problem: str
    """The problem, in one sentence."""
    is_damage: bool = False
    """True if a checksum or the database itself proves that data is not as it was written. Anything else may as well
    be a defect of this library, and is no reason to return to a backup."""

    def __str__(self) -> str:
        return self.problem


@dataclass(frozen=True, slots=True)
class Deleted(Value):
    """Receipt of a deletion: how many records went."""

    records: int
    """The number of records that were named, or satisfied the conditions."""
    derived: int = 0
    """Other records that went with them, because they were made of their words."""

    def __bool__(self) -> bool:
        """True if anything was deleted."""
        return self.records > 0


@dataclass(frozen=True, slots=True)
class ErasureReceipt(Value):
    """Receipt of an erasure: what was removed, and whether the files are clean of it."""

    records: int
    sessions: int
    at: datetime
    files_clean: bool
    """No bytes remain in freed pages and logs; `False` while a reader needs an older state: then erase again later."""
    derived: int = 0
    """Records outside of what was erased that went with it, because they were made of its words."""
    out_of_reach: str = (
        "backups, snapshots of a copy-on-write file system, the spare cells of an SSD, and blocks of the disk that a "
        "file gave back earlier can still hold copies"
    )
    """The copies that may remain, which no erasure of a file reaches: one sentence."""


@dataclass(frozen=True, slots=True)
class Fingerprint(Value):
    """Identifies the embedder of a vector. Vectors of different fingerprints are never compared."""

    name: str
    revision: str
    dimensions: int
    normalised: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Limits of what each owner of a memory can store; `None` means unlimited. Counted as in `Stats`.

    A write that increases what an owner stores beyond the quota raises `QuotaExceededError`, and nothing of it is
    stored. Expired records and their bytes count until they are swept: the add of a single record begins with a
    thousand of them, and any other write deletes all of them before it is refused. Deletions, and updates that make a
    record smaller, are always allowed. Vectors and indexes do not count, nor do earlier texts, of which the last 20 of
    each record are kept: with them, an owner may have 21 times as many bytes of texts.
    """

    records: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("records", "bytes"):
            value: object = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise InvalidInputError(f"a quota of {name} must be a whole number from 0, or None, not {shown(value)}")


OpenRecord: Final = cast(
    "Callable[..., MemoryRecord]",
    make_dataclass(
        "OpenRecord",
        [(each.name, object) for each in fields(MemoryRecord)],
        bases=(Value,),
        slots=True,
        eq=False,
    ),
)
"""Makes a record whose fields can still be set, from the fields in their order or by name; `sealed` ends that."""


def sealed(record: MemoryRecord) -> MemoryRecord:
    """Turn an `OpenRecord` into a `MemoryRecord`: for records that are created by the thousand.

    A frozen dataclass sets all its fields by `object.__setattr__`, which takes three times as long as an assignment; an
    open record has the same slots and is not frozen.
    """
    record.__class__ = MemoryRecord
    return record
