"""The proposals of maintenance, to accept or refuse one by one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from memory_core.app.serve.conditions import query_of
from memory_core.app.serve.visits import Form, Visit, form, gone_to, visit
from memory_core.errors import ConflictError
from memory_core.handle import BoundMemory
from memory_core.lifecycle import MaintainPolicy, Maintenance, Proposed, Step, apply_steps, proposed, undo_maintenance
from memory_core.values.limits import PAGE_BYTES

try:
    from fastapi import APIRouter, Depends, Query, Response
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

routes = APIRouter(include_in_schema=False)
MOST_SHOWN: Final = 50
SHOWN_CHARS: Final = 400
_POLICY: Final = MaintainPolicy(duplicates="propose")
_STALE: Final = "the memories of this proposal have changed; open the proposals again. Nothing was written"
_REASONS: Final = {
    "duplicate": "They say the same.",
    "alike": "They look alike, and may mean something else.",
    "correction": "A later one corrects an earlier one.",
}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A step that a person may accept."""

    key: str
    """Names the step and the versions of its records, so that another step is never taken for it."""
    reason: str
    kept: str
    gone: Sequence[str]
    ids: Sequence[str]
    """The memories that are archived."""


@routes.get("/o/{app}/{user}/proposals")
async def proposals(
    found: Annotated[Visit, Depends(visit)],
    done: Annotated[str, Query()] = "",
    id: Annotated[list[str] | None, Query()] = None,  # noqa: A002  (the record's own word)
) -> Response:
    """The page with what maintenance proposes now; `id` names the memories that an accepted proposal archived."""
    now = await _proposed(found.owner)
    shown = [_proposal(step) for step in now.steps[:MOST_SHOWN]]
    more = len(now.steps) > MOST_SHOWN
    looked_at = None if now.is_all else now.looked_at
    return found.drawn("proposals.html", proposals=shown, more=more, looked_at=looked_at, done=done, ids=id or ())


@routes.post("/o/{app}/{user}/proposals/accept")
async def accept(sent: Annotated[Form, Depends(form)]) -> Response:
    """Do what is proposed."""
    step = await _chosen(sent)
    done = await apply_steps(sent.visit.owner, [step])
    if done.skipped:
        raise ConflictError(_STALE)
    archived = [("id", each) for each in _archived(step)]
    return gone_to(f"{sent.visit.base}/proposals{query_of([('done', 'accepted'), *archived])}")


@routes.post("/o/{app}/{user}/proposals/refuse")
async def refuse(sent: Annotated[Form, Depends(form)]) -> Response:
    """Keep everything as it is; no later run does or proposes the same."""
    # Undoing a step that was never applied changes no record: their versions are those from before it.
    await undo_maintenance(sent.visit.owner, Maintenance(steps=(await _chosen(sent),)))
    return gone_to(f"{sent.visit.base}/proposals?done=refused")


async def _proposed(owner: BoundMemory) -> Proposed:
    return await proposed(owner, _POLICY, most_bytes=PAGE_BYTES)


async def _chosen(sent: Form) -> Step:
    wanted = sent.text("step")
    for step in (await _proposed(sent.visit.owner)).steps:
        if _key(step) == wanted:
            return step
    raise ConflictError(_STALE)


def _proposal(step: Step) -> Proposal:
    gone = [text[:SHOWN_CHARS] for text in step.gone]
    reason = _REASONS.get(step.reason, step.reason)
    return Proposal(_key(step), reason, step.kept[:SHOWN_CHARS], gone, _archived(step))


def _archived(step: Step) -> list[str]:
    return [change.id for change in step.changes if change.patch.state in {"archived", "compacted"}]


def _key(step: Step) -> str:
    """The reason, and the records with their versions: the rest of a step follows from these."""
    said = [step.reason, [[change.id, change.version] for change in step.changes]]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
