"""Run maintenance: change one record at a time, while other callers read and write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory_core.concurrency.threads import in_slices
from memory_core.errors import ConflictError, DuplicateIdError, RecordNotFoundError
from memory_core.every_record import every_record
from memory_core.handle import BoundMemory, whole_owner
from memory_core.lifecycle.deriving import KNOWN_KINDS, Helpers, derived, of_periods
from memory_core.lifecycle.manager import Manager
from memory_core.lifecycle.planning import plan
from memory_core.lifecycle.proposals import Reflector
from memory_core.lifecycle.values import DEFAULT_POLICY, MaintainPolicy, Maintenance, Step, Usage, insist_on_kinds
from memory_core.models import STATES, MemoryRecord, Scope
from memory_core.operator import Operator
from memory_core.records.draft_to_record import complete, has_expired, patched
from memory_core.records.undone import UNDONE, Undone, noted, undone_by, undone_of
from memory_core.short_page import each_record, short_page
from memory_core.supplied import ChatModel, Summarizer
from memory_core.values.limits import MAX_LIMIT
from memory_core.values.progress import Progress, ProgressCallback
from memory_core.where.where import Where


async def maintain(
    handle: BoundMemory,
    policy: MaintainPolicy = DEFAULT_POLICY,
    *,
    model: ChatModel | Manager | None = None,
    summarizer: Summarizer | None = None,
    reflector: Reflector | None = None,
    dry_run: bool = False,
    progress: ProgressCallback | None = None,
) -> Maintenance:
    """Merge records with equal texts, find those that look alike, and archive records that fade; before that, have a
    model draw facts from conversations and correct known ones, and derive summaries and patterns, if asked to.

    Every change is its own transaction and applies only to the version of the record that it was planned for. So this
    can run beside writers and other processes, can be interrupted at any point, and continues when it is called again.
    A second call changes nothing. Nothing is deleted unless the policy says so (`delete_after`), and
    `undo_maintenance` reverts all other changes, which no later run repeats.

    What a model answers is stored before it is asked again: if a call fails, the next run asks only for the rest.

    Args:
        handle: The records to maintain, limited by its agent, session and collection. Spaces are not maintained.
        policy: The rules for the findings.
        model: Reads each conversation once and says what to add, to correct and to pin; a `Manager` has its settings.
            It may name only facts of this owner that it was shown, and corrects only as the policy says.
        summarizer: Summarises sessions: `ExtractiveSummarizer()`, or one that asks a model, of which the former takes
            the place where it fails.
        reflector: Finds patterns in many memories: `PatternReflector()`, or one that asks a model.
        dry_run: Only report what would be done. Models are asked all the same, so apply what they said with
            `apply_steps` instead of asking again; facts of this run are not shown to the model.
        progress: Called with the number of steps taken, after those that derive records.

    Raises:
        InvalidInputError: A model, summarizer or reflector lacks its method; or the policy has times for a kind of
            which this owner has no record.
        Exception: Whatever the model, after its last attempt, or a reflector raises, except `UnreadableAnswerError`.
    """
    insist_on_kinds(policy, (await whole_owner(handle).stats()).by_kind)
    helpers = Helpers(manager=_managing(model), summarizer=summarizer, reflector=reflector)
    return await _maintained(handle, policy, helpers, dry_run=dry_run, progress=progress)


async def _maintained(
    handle: BoundMemory,
    policy: MaintainPolicy,
    helpers: Helpers,
    *,
    dry_run: bool,
    progress: ProgressCallback | None = None,
) -> Maintenance:
    handle, now = handle.own, handle.now()
    await handle.memory.touched()
    known = await every_record(whole_owner(handle), Where(kinds=KNOWN_KINDS, states=STATES))
    first, expected = await _derived(handle, policy, helpers, known, now, dry_run=dry_run)
    steps = await in_slices(plan, expected, policy, now, undone_by(known))
    wishes = tuple(step for step in steps if _is_proposed(step, policy))
    wanted = [step for step in steps if not _is_proposed(step, policy)]
    usage = sum(helpers.spent, Usage())
    if dry_run:
        return Maintenance(steps=(*first.steps, *wanted), proposed=wishes, is_dry_run=True, usage=usage)
    then = await apply_steps(handle, wanted, progress=progress)
    skipped = (*first.skipped, *then.skipped)
    return Maintenance(steps=(*first.steps, *then.steps), proposed=wishes, skipped=skipped, usage=usage)


@dataclass(frozen=True, slots=True)
class Proposed:
    """The steps that a policy proposes for the newest active records of an owner."""

    steps: Sequence[Step]
    looked_at: int
    """The number of these records."""
    is_all: bool
    """True if there are no others."""


async def proposed(handle: BoundMemory, policy: MaintainPolicy, *, most_bytes: int) -> Proposed:
    """The steps that a policy proposes for the newest active records, which have `most_bytes` together: it takes some
    seconds for each ten million characters, and `maintain` reads all that an owner has."""
    handle = handle.own
    page = await short_page(
        handle, where=policy.where, order="newest", limit=MAX_LIMIT, cursor=None, most_bytes=most_bytes
    )
    undone = await _undone_about(handle, frozenset(record.id for record in page.records))
    steps = await in_slices(plan, page.records, policy, handle.now(), undone)
    found = [step for step in steps if _is_proposed(step, policy)]
    return Proposed(found, len(page.records), page.cursor is None)


async def _undone_about(handle: BoundMemory, ids: frozenset[str]) -> Undone:
    """The steps that were taken back, as far as they are about these records; a few notes are in memory at a time."""
    notes = each_record(whole_owner(handle), Where(kinds=[UNDONE], states=STATES))
    steps = {(reason, *sorted(ids.intersection(about))) async for note in notes for reason, *about in noted(note)}
    return undone_of(steps)


def _is_proposed(step: Step, policy: MaintainPolicy) -> bool:
    wishes = {
        "duplicate": policy.duplicates,
        "alike": policy.alike,
        "correction": policy.contradictions,
        "contradiction": "propose",
    }
    return wishes.get(step.reason) == "propose"


def _managing(model: ChatModel | Manager | None) -> Manager | None:
    return model if model is None or isinstance(model, Manager) else Manager(model)


async def _derived(
    handle: BoundMemory,
    policy: MaintainPolicy,
    helpers: Helpers,
    known: Sequence[MemoryRecord],
    now: datetime,
    *,
    dry_run: bool,
) -> tuple[Maintenance, list[MemoryRecord]]:
    """The derived records, and the records to maintain after that."""
    wanted = replace(policy.where, states=STATES)
    records = await every_record(handle, wanted)
    taken, missed = list[Step](), list[Step]()

    async def take(found: AsyncIterator[Step]) -> list[MemoryRecord]:
        """Apply each step before the next answer of a model is waited for, which may never come."""
        async for step in found:
            (taken if dry_run or await _apply(handle, step) else missed).append(step)
        if missed:  # another run or writer was faster, so what is stored is not what was planned
            return await every_record(handle, wanted)
        return _after(taken, records, handle.scope, now)

    expected = await take(derived(handle, records, known, helpers, now))
    if helpers.summarizer is not None:
        await take(of_periods(expected, policy.periods, helpers.summarizer, now, known))
    return Maintenance(steps=tuple(taken), skipped=tuple(missed)), expected


def _after(steps: Iterable[Step], records: Iterable[MemoryRecord], scope: Scope, now: datetime) -> list[MemoryRecord]:
    """The records after the steps."""
    left = {record.id: record for record in records}
    for step in steps:
        for draft in step.added:
            left.setdefault(str(draft.id), complete(draft, scope, now))
        for change in step.changes:
            if change.id in left:
                left[change.id] = patched(left[change.id], change.patch, now)
    return list(left.values())


async def maintain_all(
    operator: Operator,
    policy: MaintainPolicy = DEFAULT_POLICY,
    *,
    model: ChatModel | Manager | None = None,
    summarizer: Summarizer | None = None,
    reflector: Reflector | None = None,
    dry_run: bool = False,
) -> Mapping[Scope, Maintenance]:
    """`maintain` for every owner in turn; returns the result for each owner.

    Raises:
        InvalidInputError: As for `maintain`; a kind is known if one of the owners has a record of it.
    """
    owners = {owner: operator.handle(owner) for owner in await operator.owners()}
    insist_on_kinds(policy, {kind for handle in owners.values() for kind in (await handle.stats()).by_kind})
    manager, done = _managing(model), dict[Scope, Maintenance]()
    for owner, handle in owners.items():
        helpers = Helpers(manager=manager, summarizer=summarizer, reflector=reflector)
        done[owner] = await _maintained(handle, policy, helpers, dry_run=dry_run)
    return done


async def apply_steps(
    handle: BoundMemory, steps: Iterable[Step], *, progress: ProgressCallback | None = None
) -> Maintenance:
    """Apply steps that `maintain` proposed or reported in a dry run; returns the result."""
    handle, wanted, done, skipped = handle.own, list(steps), list[Step](), list[Step]()
    for place, step in enumerate(wanted):
        if progress is not None:
            progress(Progress(place, len(wanted)))
        (done if await _apply(handle, step) else skipped).append(step)
    if progress is not None:
        progress(Progress(len(wanted), len(wanted)))
    return Maintenance(steps=tuple(done), skipped=tuple(skipped))


async def _apply(handle: BoundMemory, step: Step) -> bool:
    """True if the whole step could be applied."""
    now = handle.memory.clock()
    if any(has_expired(draft, now) for draft in step.added):  # with the turn that it was read from
        return False
    if step.added:
        try:
            await handle.add_many(step.added)  # without those whose source key is forgotten
        except (DuplicateIdError, ConflictError):  # another caller was faster, or has taken away what was read
            return False
    for change in step.changes:
        try:
            await handle.update(change.id, change.patch, expected_version=change.version)
        except (ConflictError, RecordNotFoundError):  # another caller was faster
            return False
    try:
        if step.deleted:
            await handle.delete_exactly(step.deleted, keeps_derived=True)
    except ConflictError:  # another caller was faster
        return False
    return True
