"""Store what importers find, in batches of one owner, with a report.

Invariant: everything that an importer finds is stored, was known, or is in the report; so no item of a source replaces
another one, although both have the same id there.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from rich.text import Text

from memory_core.addresses import exists
from memory_core.app import showing
from memory_core.app.command import Answer, Invocation
from memory_core.app.mapping import Ownership
from memory_core.app.showing import counted
from memory_core.conversation.messages.own_words import in_own_words
from memory_core.errors import InvalidInputError
from memory_core.handle import BoundMemory
from memory_core.models import Draft, MemoryRecord, Scope
from memory_core.records.draft_to_record import check_draft, has_expired
from memory_core.records.kinds import MESSAGE_KIND
from memory_core.transfer.formats import Found, Refused
from memory_core.values.checks import check_key
from memory_core.values.progress import Progress
from memory_core.values.times import utc_now
from memory_core.where.where import ANY_STATE

PUT_AT_ONCE: Final = 256
"""Memories of an owner in one transaction."""
MAX_SHOWN: Final = 10
"""Refusals that are printed; `--json` has all of them."""


@dataclass(slots=True)
class Report:
    """The outcome of everything in a source."""

    read: int = 0
    new: int = 0
    known: int = 0
    """Imported before; changed if their text, author, data or tags differ."""
    forgotten: int = 0
    """Deleted here since, and not imported again."""
    refused: list[Refused] = field(default_factory=list[Refused])
    left_out: list[Refused] = field(default_factory=list[Refused])
    """Left out on purpose."""
    expired: int = 0
    """Expired over there, and left out."""
    undated: int = 0
    """Without a time in the source: they are dated now."""

    def to_dict(self) -> dict[str, object]:
        """The report as JSON."""
        listed = {"refused": self.refused, "left_out": self.left_out}
        named = {key: [{"place": it.place, "reason": it.reason} for it in items] for key, items in listed.items()}
        return {**asdict(self), **named}


async def import_all(
    invocation: Invocation, found: AsyncIterator[Found | Refused], owners: Ownership, *, dry_run: bool, total: int
) -> Answer:
    """Store everything that an importer finds.

    Args:
        total: The number of memories, for a bar.
    """
    batches = Batches(invocation, owners, dry_run=dry_run)
    with invocation.progress("importing") as tell:
        await batches.take(found, lambda done: tell(Progress(done, max(done, total))))
        tell(Progress(batches.read, batches.read))
    report = batches.report
    for refused in report.refused[:MAX_SHOWN]:
        showing.note(f"{refused.place}: {refused.reason}")
    for left_out in report.left_out:
        showing.note(f"{left_out.place}: {left_out.reason}")
    if report.expired:
        showing.note(f"{report.expired} of {counted(report.read, 'memory')}: expired over there, so left out")
    if report.undated:
        dated = "would be dated" if dry_run else "dated"
        read = f"{report.undated} of {counted(report.read, 'memory')}"
        showing.note(f"{read}: no time that can be read, so {dated} now (--time-from names its field)")
    if len(report.refused) > MAX_SHOWN:
        showing.note(f"… and {len(report.refused) - MAX_SHOWN} more")
    if batches.others:
        names = ", ".join(f"{app}/{user}" for app, user in sorted(batches.others)[:MAX_SHOWN])
        more = f" and {len(batches.others) - MAX_SHOWN} more" if len(batches.others) > MAX_SHOWN else ""
        showing.note(f"the source names their owners: {names}{more} (choose with --app and --user)")
    if report.refused:
        showing.note(
            f"{len(report.refused)} of {counted(report.read + len(report.refused), 'memory')} could not be used"
        )
    new = "would be new" if dry_run else "of them new"
    forgotten = f", {report.forgotten} forgotten here before" if report.forgotten else ""
    view = Text(f"{counted(report.read, 'memory')} read, {report.new} {new}, {report.known} known{forgotten}")
    return Answer({**report.to_dict(), "dry_run": dry_run}, view, 1 if report.refused else 0)


class Batches:
    """Stores what importers yield, in batches of one owner, and counts."""

    def __init__(self, invocation: Invocation, owners: Ownership, *, dry_run: bool) -> None:
        self._invocation = invocation
        self._owners = owners
        self._dry_run = dry_run
        self.others: set[tuple[str, str]] = set()
        """Other owners than the one of the command."""
        self._waiting: dict[Scope, list[Draft]] = {}
        self._texts: defaultdict[tuple[Scope, str], dict[bytes, int]] = defaultdict(dict)
        """By owner and source key, digests of the texts that the source has under it, numbered from 1."""
        self._seen: set[tuple[Scope, str]] = set()
        """Source keys of a dry run, which stores none of them."""
        self.report = Report()

    @property
    def read(self) -> int:
        """The number of items that importers have yielded so far."""
        return self.report.read + len(self.report.refused)

    async def take(self, found: AsyncIterator[Found | Refused], tell: Callable[[int], None]) -> None:
        """Store everything that an importer yields, and tell how much that is so far."""
        async for item in found:
            try:
                self._accept(item)
            except InvalidInputError as error:
                self.report.refused.append(Refused(item.place, str(error)))
            for owner in [owner for owner, drafts in self._waiting.items() if len(drafts) == PUT_AT_ONCE]:
                await self._put(owner)
            tell(self.read)
        for owner in list(self._waiting):
            await self._put(owner)

    def _accept(self, item: Found | Refused) -> None:
        if isinstance(item, Refused):
            (self.report.left_out if item.is_meant else self.report.refused).append(item)
            return
        owner, draft = self._owners.of(item)
        said = in_own_words(draft) if draft.kind == MESSAGE_KIND else draft
        if said is None:
            raise InvalidInputError("this memory wrote it, and nobody said it")
        self._waiting.setdefault(owner, []).append(self._told_apart(owner, check_draft(said)))
        self.report.read += 1
        self.report.undated += said.occurred_at is None
        if owner != self._owners.default:
            self.others.add((owner.app, owner.user or ""))

    def _told_apart(self, owner: Scope, draft: Draft) -> Draft:
        """The draft; with a number in its key if the source has another text under the same key."""
        if draft.source_key is None:
            return draft
        texts = self._texts[owner, draft.source_key]
        number = texts.setdefault(hashlib.blake2b(draft.text.encode(), digest_size=16).digest(), len(texts) + 1)
        if number == 1:
            return draft
        return replace(draft, source_key=check_key("source_key", f"{draft.source_key}:{number}"))

    async def _put(self, owner: Scope) -> None:
        now, waiting = utc_now(), self._waiting.pop(owner)
        drafts = [draft for draft in waiting if not has_expired(draft, now)]  # gone over there, too
        self.report.expired += len(waiting) - len(drafts)
        known = await self._known(owner, {draft.source_key for draft in drafts if draft.source_key is not None})
        stored: list[MemoryRecord | None] = []
        if not self._dry_run:
            stored = await (await self._handle(owner)).add_many(drafts)
        keys = [draft.source_key for draft in drafts]
        again = sum(key in known or key in keys[:place] for place, key in enumerate(keys) if key is not None)
        self.report.forgotten += stored.count(None)
        self.report.known += again
        self.report.new += len(drafts) - again - stored.count(None)

    async def _known(self, owner: Scope, keys: set[str]) -> set[str]:
        """The source keys that the owner has already."""
        before = {key for key in keys if (owner, key) in self._seen}
        if self._dry_run:
            self._seen.update((owner, key) for key in keys)
            if not exists(self._invocation.settings.file):
                return before
        where = replace(ANY_STATE, source_keys=tuple(keys))
        page = await (await self._handle(owner)).list(where=where, limit=PUT_AT_ONCE)
        return before | {record.source_key for record in page.records if record.source_key is not None}

    async def _handle(self, owner: Scope) -> BoundMemory:
        memory = await self._invocation.memory(create=not self._dry_run)
        return memory.bind(app=owner.app, user=owner.user)
