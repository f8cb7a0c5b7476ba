"""`move`: bring in another program's memories, after a look at what they would become."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final

import typer
from rich.console import Group, RenderableType

from memory_core.app import showing
from memory_core.app.command import Answer, DryRun, Invocation, Work, Yes
from memory_core.app.formats import IMPORTERS, entry_of, format_of, sources
from memory_core.app.intake import carry
from memory_core.app.mapping import PERSON_KEYS, Keys, Ownership
from memory_core.errors import InvalidInputError
from memory_core.models import Draft, Scope
from memory_core.records.draft_to_record import check_draft
from memory_core.transfer.foreign_values import fields_of, name_of
from memory_core.transfer.formats import Found, Importer, Refused

MOST_OWNERS: Final = 20
"""Owners in the table; the rest are counted."""
UNASKED: Final = "nothing is moved yet, and nobody is there to ask; look with --dry-run, and confirm with --yes"
_NAMES_KEPT: Final = 1_000
"""Names of people kept for each field."""


def _key(metavar: str, what: str) -> Any:  # typer's option
    return typer.Option(metavar=metavar, help=f"The field of the source that {what}.")


async def move(  # noqa: PLR0913  (an option each)
    invocation: Invocation,
    *,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A file, a folder or an address.")],
    format_: Annotated[
        str | None,
        typer.Option("--format", help="What the source is, if that cannot be seen.", autocompletion=sources),
    ] = None,
    user_from: Annotated[str | None, _key("KEY", "names the user of each memory")] = None,
    session_from: Annotated[str | None, _key("KEY", "names the session")] = None,
    time_from: Annotated[str | None, _key("KEY", "says when")] = None,
    kind_from: Annotated[str | None, _key("KEY", "names the kind")] = None,
    author_from: Annotated[str | None, _key("KEY", "names who said it")] = None,
    one_user: Annotated[
        bool, typer.Option("--one-user", help="Everything becomes --user's, also what the source gives to others.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> Answer:
    """Bring in the memories of another program. First shows what they would become; moving twice adds nothing.

    Users that the source names are owners of their own; what names none is --user's. An interrupted move is run again.
    """
    if user_from is not None and one_user:
        raise InvalidInputError("--user-from names many users and --one-user one; give only one of them")
    importer: Importer = entry_of(IMPORTERS, format_ or format_of(source))
    keys = Keys(user=user_from, session=session_from, time=time_from, kind=kind_from, author=author_from)
    ownership = Ownership(invocation.settings, keys, one_user=one_user)
    look = await _looked(importer(source), ownership)
    if ownership.may_merge:
        look.insist_on_one_person(ownership.default)
        look.insist_on_an_owner()
    if not dry_run and not yes:
        showing.console(errors=True).print(look.table())
        invocation.confirm("Move them?", yes=False, unasked=UNASKED)
    total = sum(share.memories for share in look.shares.values())
    done = await carry(invocation, [(source, importer)], ownership, dry_run=dry_run, total=total)
    view = Group(look.table(), done.view) if dry_run and done.view is not None else done.view
    return Answer({"owners": look.to_dict(), **fields_of(done.json)}, view, done.code)


@dataclass(slots=True)
class _Share:
    """The memories that one owner would get."""

    memories: int = 0
    sessions: set[str] = field(default_factory=set[str])
    kinds: Counter[str] = field(default_factory=Counter[str])
    speakers: Counter[str] = field(default_factory=Counter[str])
    """Roles; authors of memories without a role."""
    first: datetime | None = None
    last: datetime | None = None
    undated: int = 0
    """Memories without a time, which would be dated now."""
    sample: str = ""

    def add(self, draft: Draft) -> None:
        self.memories += 1
        self.kinds[draft.kind] += 1
        if draft.session is not None:
            self.sessions.add(draft.session)
        if speaker := draft.role or draft.author:
            self.speakers[speaker] += 1
        if (at := draft.occurred_at) is not None:
            self.first, self.last = min(self.first or at, at), max(self.last or at, at)
        self.undated += draft.occurred_at is None
        self.sample = self.sample or draft.text


@dataclass(slots=True)
class Look:
    """The memories that a source would become."""

    shares: defaultdict[Scope, _Share] = field(default_factory=lambda: defaultdict[Scope, _Share](_Share))
    people: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict[str, set[str]](set[str]))
    """By field, the names in it of what would become the default owner's."""

    of_somebody: int = 0
    """Memories that may be anybody's."""

    def insist_on_one_person(self, default: Scope) -> None:
        """Refuse to make one owner of several people.

        Raises:
            InvalidInputError: A field that usually names people names several of them.
        """
        for key, found in self.people.items():
            if len(found) > 1:
                some = ", ".join(sorted(found)[:3]) + (", ..." if len(found) > 3 else "")
                raise InvalidInputError(
                    f"the field {key!r} names {len(found)} people ({some}), who would all become "
                    f"{default.app}/{default.user}; give each an owner with --user-from {key}, or make everything "
                    "--user's with --one-user"
                )

    def insist_on_an_owner(self) -> None:
        """Refuse to guess whose memories are that may be anybody's.

        Raises:
            InvalidInputError: The source does not say it.
        """
        if self.of_somebody:
            raise InvalidInputError(
                f"the source does not say whose its {self.of_somebody} memories are; if all of them are --user's, "
                "say so with --one-user"
            )

    def table(self) -> RenderableType:
        """An owner a line, with a sample."""
        head = ("owner", "memories", "sessions", "from", "to", "undated", "kinds", "by", "such as")
        rows = [
            (
                f"{owner.app}/{owner.user}",
                share.memories,
                len(share.sessions),
                share.first,
                share.last,
                share.undated or "",
                _counted(share.kinds),
                _counted(share.speakers),
                showing.line(share.sample, 60),
            )
            for owner, share in list(self.shares.items())[:MOST_OWNERS]
        ]
        more = len(self.shares) - len(rows)
        return showing.table(head, [*rows, *([(f"and {more} more", *[""] * 8)] if more else [])])

    def to_dict(self) -> list[dict[str, Any]]:
        """The shares as JSON."""
        return [
            {
                "app": owner.app,
                "user": owner.user,
                "memories": share.memories,
                "sessions": len(share.sessions),
                "first": share.first and share.first.isoformat(),
                "last": share.last and share.last.isoformat(),
                "undated": share.undated,
                "kinds": dict(share.kinds),
                "sample": share.sample,
            }
            for owner, share in self.shares.items()
        ]


def _counted(names: Mapping[str, int]) -> str:
    ordered = sorted(names.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {count}" for name, count in ordered[:3]) + (", ..." if len(ordered) > 3 else "")


async def _looked(found: AsyncIterator[Found | Refused], ownership: Ownership) -> Look:
    """Read a source to its end; what it refuses is reported when it is moved."""
    look = Look()
    async for item in found:
        if isinstance(item, Refused):
            continue
        try:
            owner, draft = ownership.of(item)
            check_draft(draft)
        except InvalidInputError:
            continue
        look.shares[owner].add(draft)
        look.of_somebody += item.is_of_somebody
        if owner == ownership.default and item.user is None:
            fields = {**item.given, **item.draft.data}
            for key in (*PERSON_KEYS, *item.people):
                name = name_of(fields.get(key))
                if name is not None and len(look.people[key]) < _NAMES_KEPT:
                    look.people[key].add(name)
    return look


COMMANDS: Final[Mapping[str, Work]] = {"move": move}
