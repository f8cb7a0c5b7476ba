"""Run maintenance: change one record at a time, while other callers read and write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal

from memory_core.all_owners import Operator
from memory_core.checks import MAX_LIMIT
from memory_core.draft_to_record import complete
from memory_core.errors import ConflictError, DuplicateIdError, RecordNotFoundError
from memory_core.handle import BoundMemory
from memory_core.lifecycle.deriving import Helpers, derived, of_periods
from memory_core.lifecycle.planning import merge_of, plan
from memory_core.lifecycle.proposals import Extractor, Reflector
from memory_core.lifecycle.values import DEFAULT_POLICY, Change, MaintainPolicy, Maintenance, Step
from memory_core.models import STATES, Draft, MemoryRecord, Scope
from memory_core.progress import Progress, ProgressCallback
from memory_core.protocols import Summarizer
from memory_core.recall.quoting import cut_query
from memory_core.where.value import Where

MAX_LIKE: Final = 20
"""Number of most similar records that a new one is compared with."""


async def maintain(
    handle: BoundMemory,
    policy: MaintainPolicy = DEFAULT_POLICY,
    *,
    extractor: Extractor | None = None,
    summarizer: Summarizer | None = None,
    reflector: Reflector | None = None,
    dry_run: bool = False,
    progress: ProgressCallback | None = None,
) -> Maintenance:
    """Merge records that say the same, find statements that later ones correct, and archive records that fade; derive
    facts, summaries and patterns before that, if asked to.

    Every change is its own transaction and applies only to the version of the record that it was planned for. So this
    can run beside writers and other processes, can be interrupted at any point, and continues when it is called again.
    A second call changes nothing. Nothing is deleted unless the policy says so (`delete_after`), and
    `undo_maintenance` reverts all other changes.

    Args:
        handle: The records to maintain, limited by its agent, session and collection.
        policy: What to do with the findings.
        extractor: Extracts facts from the turns of people: `PatternExtractor()`, or one that asks a model.
        summarizer: Summarises sessions: `ExtractiveSummarizer()`, or one that asks a model, of which the former takes
            the place where it fails.
        reflector: Finds patterns in many memories: `PatternReflector()`, or one that asks a model.
        dry_run: Only report what would be done; models are asked all the same.
        progress: Called with the number of steps taken.
    """
    now = handle.memory.clock()
    records = await _records(handle, replace(policy.where, states=STATES))
    helpers = Helpers(extractor=extractor, summarizer=summarizer, reflector=reflector)
    additions = await derived(records, helpers, now)
    known = {record.id for record in records}
    new = [draft for step in additions for draft in step.added if draft.id not in known]
    expected = [*records, *(complete(draft, handle.scope, now) for draft in new)]
    if summarizer is not None:
        additions += [step async for step in of_periods(expected, policy.periods, summarizer, now)]
    steps = [*additions, *await asyncio.to_thread(plan, expected, policy, now)]
    wishes = {"duplicate": policy.duplicates, "correction": policy.contradictions}
    proposed = tuple(step for step in steps if wishes.get(step.reason) == "propose")
    wanted = [step for step in steps if wishes.get(step.reason) != "propose"]
    if dry_run:
        return Maintenance(steps=tuple(wanted), proposed=proposed, is_dry_run=True)
    return replace(await apply_steps(handle, wanted, progress=progress), proposed=proposed)


async def maintain_all(
    operator: Operator,
    policy: MaintainPolicy = DEFAULT_POLICY,
    *,
    extractor: Extractor | None = None,
    summarizer: Summarizer | None = None,
    reflector: Reflector | None = None,
    dry_run: bool = False,
) -> Mapping[Scope, Maintenance]:
    """`maintain` for every owner in turn; returns the result for each owner."""
    done: dict[Scope, Maintenance] = {}
    for owner in await operator.owners():
        done[owner] = await maintain(
            operator.handle(owner),
            policy,
            extractor=extractor,
            summarizer=summarizer,
            reflector=reflector,
            dry_run=dry_run,
        )
    return done


async def add_once(
    handle: BoundMemory, entry: str | Draft, *, embed: Literal["now", "later"], on_duplicate: str
) -> MemoryRecord:
    """`BoundMemory.add` for `on_duplicate="merge"` and `"refuse"`."""
    draft = complete(entry, handle.scope, handle.memory.clock())
    query = cut_query(draft.text)
    like_it = Where(kinds=[draft.kind])
    hits = await handle.search(query, limit=MAX_LIKE, mode="lexical", floor=False, where=like_it, apart=True)
    like = [hit.record for hit in hits if merge_of(hit.record, draft) is not None]
    if like and on_duplicate == "refuse":
        return like[0]
    added = await handle.add(entry, embed=embed)
    step = merge_of(like[0], added) if like else None
    if step is None or added.id == like[0].id:  # the same source key
        return added
    await apply_steps(handle, [step])
    gone = {change.id for change in step.changes if change.patch.state == "compacted"}
    return await handle.get(added.id if like[0].id in gone else like[0].id) or added


async def apply_steps(
    handle: BoundMemory, steps: Iterable[Step], *, progress: ProgressCallback | None = None
) -> Maintenance:
    """Apply steps that `maintain` proposed or reported in a dry run; returns the result."""
    wanted, done, skipped = list(steps), list[Step](), list[Step]()
    for place, step in enumerate(wanted):
        if progress is not None:
            progress(Progress(place, len(wanted)))
        (done if await _apply(handle, step) else skipped).append(step)
    if progress is not None:
        progress(Progress(len(wanted), len(wanted)))
    return Maintenance(steps=tuple(done), skipped=tuple(skipped))


async def undo_maintenance(handle: BoundMemory, maintenance: Maintenance) -> tuple[Change, ...]:
    """Revert what `maintain` did, the last step first; returns the changes that were not reverted because their records
    have been changed since. Records that it added are deleted, unless they have been changed since."""
    versions: dict[str, int] = {}
    left: list[Change] = []
    for step in reversed((*maintenance.steps, *maintenance.skipped)):
        for change in reversed(step.changes):
            expected = versions.get(change.id, change.version + 1)
            try:
                record = await handle.update(change.id, change.undo, expected_version=expected)
            except (ConflictError, RecordNotFoundError):
                left.append(change)
            else:
                versions[change.id] = record.version
        for draft in step.added:
            added = await handle.get(str(draft.id))
            if added is not None and added.version == versions.get(added.id, 1):
                await handle.delete_where(Where(ids=[added.id], states=STATES), forget=False)
    return tuple(left)


async def _apply(handle: BoundMemory, step: Step) -> bool:
    """Whether the whole step could be applied."""
    if step.added:
        try:
            await handle.add_many(step.added)  # without those whose source key is forgotten
        except DuplicateIdError:  # another caller was faster
            return False
    for change in step.changes:
        try:
            await handle.update(change.id, change.patch, expected_version=change.version)
        except (ConflictError, RecordNotFoundError):  # another caller was faster
            return False
    for id, version in step.deleted.items():  # noqa: A001  (the record's own word)
        record = await handle.get(id)
        if record is None or record.version != version:
            return False
        await handle.delete_where(Where(ids=[id], states=["archived"]))
    return True


async def _records(handle: BoundMemory, where: Where) -> list[MemoryRecord]:
    records: list[MemoryRecord] = []
    cursor: str | None = None
    while True:
        page = await handle.list(where=where, order="oldest", limit=MAX_LIMIT, cursor=cursor)
        records += page.records
        if (cursor := page.cursor) is None:
            return records
