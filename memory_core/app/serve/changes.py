"""The changes that a person makes on the page: each form, what it does, and how to undo it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated, Final

from memory_core.app.serve.api import known
from memory_core.app.serve.conditions import query_of
from memory_core.app.serve.page import receipt_page
from memory_core.app.serve.problems import sentence, status_of
from memory_core.app.serve.record_page import shown as shown_with
from memory_core.app.serve.served import path_name
from memory_core.app.serve.visits import Form, Visit, form, gone_to, visit
from memory_core.errors import ConflictError, InvalidInputError
from memory_core.models import Draft, MemoryRecord, Patch
from memory_core.profile import PINNED
from memory_core.values.checks import shown

try:
    from fastapi import APIRouter, Depends, Response
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

routes = APIRouter(include_in_schema=False)
Sent = Annotated[Form, Depends(form)]
_RECORD: Final = "/o/{app}/{user}/records/{id}"
_STALE: Final = "this memory has changed since the page was opened; nothing was written"


def _drawn_again(work: Callable[[Form], Awaitable[Response]]) -> Callable[[Form], Awaitable[Response]]:
    """The same form of a record's page; if it is refused, the page is drawn again with what was typed."""

    @wraps(work)
    async def answer(sent: Sent) -> Response:
        try:
            return await work(sent)
        except (ConflictError, InvalidInputError) as refused:
            record = await known(sent.visit.owner, _id(sent))
            return sent.visit.drawn(
                "record.html",
                status_of(refused),
                shown=await shown_with(sent.visit.owner, record),
                done=None,
                refused=sentence(str(refused)),
                typed={sent.name: sent.fields.get("text", "")},
                back=sent.back,
            )

    return answer


@routes.post("/o/{app}/{user}/add")
async def add(sent: Sent) -> Response:
    """Remember a text."""
    kind = sent.fields.get("kind", "").strip()
    draft = Draft(sent.text("text"), kind=kind or "note")
    added = await sent.visit.owner.add(draft)
    return _shown_after(sent, added, "added")


@routes.post(_RECORD + "/correct")
@_drawn_again
async def correct(sent: Sent) -> Response:
    """Correct a text that was wrong from the beginning."""
    return await _changed(sent, Patch(text=sent.text("text")), "corrected")


@routes.post(_RECORD + "/revert")
@_drawn_again
async def revert(sent: Sent) -> Response:
    """Bring back an earlier text."""
    id = _id(sent)  # noqa: A001  (the record's own word)
    history = await sent.visit.owner.history(id)
    wanted = sent.fields.get("rev", "")
    text = next((each.text for each in history if each.id == id and str(each.rev) == wanted), None)
    if text is None:
        raise InvalidInputError(f"memory {shown(id)} has no earlier text number {shown(wanted)}")
    return await _changed(sent, Patch(text=text), "reverted")


@routes.post(_RECORD + "/supersede")
@_drawn_again
async def supersede(sent: Sent) -> Response:
    """Say what is true now instead of what was true before."""
    try:
        added = await sent.visit.owner.supersede(_id(sent), sent.text("text"), expected_version=sent.version())
    except ConflictError as conflict:
        raise ConflictError(_STALE) from conflict
    return _shown_after(sent, added, "superseded")


@routes.post(_RECORD + "/undo-supersede")
@_drawn_again
async def undo_supersede(sent: Sent) -> Response:
    """Make what was superseded true again; what superseded it is archived."""
    owner = sent.visit.owner
    new = await _insist_on_version(sent)
    old = [link.id for link in new.links if link.relation == "supersedes"]
    if not old:
        raise InvalidInputError(f"memory {shown(new.id)} replaces no other memory")
    rest = [link for link in new.links if link.relation != "supersedes"]
    try:
        await owner.update(new.id, Patch(state="archived", links=rest), expected_version=new.version)
    except ConflictError as conflict:
        raise ConflictError(_STALE) from conflict
    return _shown_after(sent, await known(owner, old[0]), "restored")


@routes.post(_RECORD + "/pin")
@_drawn_again
async def pin(sent: Sent) -> Response:
    """Keep a memory active, whatever maintenance would do."""
    record = await _insist_on_version(sent)
    return await _changed(sent, Patch(tags=[*record.tags, PINNED]), "pinned")


@routes.post(_RECORD + "/unpin")
@_drawn_again
async def unpin(sent: Sent) -> Response:
    """Treat a memory like any other again."""
    record = await _insist_on_version(sent)
    return await _changed(sent, Patch(tags=[tag for tag in record.tags if tag != PINNED]), "unpinned")


@routes.post(_RECORD + "/archive")
@_drawn_again
async def archive(sent: Sent) -> Response:
    """Take a memory out of searches and prompts; it can be brought back."""
    return await _changed(sent, Patch(state="archived"), "archived")


@routes.post(_RECORD + "/restore")
@_drawn_again
async def restore(sent: Sent) -> Response:
    """Bring a memory back."""
    return await _changed(sent, Patch(state="active"), "restored")


@routes.post(_RECORD + "/forget")
@_drawn_again
async def forget(sent: Sent) -> Response:
    """Delete a memory for good."""
    try:
        gone = await sent.visit.owner.delete(_id(sent), expected_version=sent.version())
    except ConflictError as conflict:
        raise ConflictError(_STALE) from conflict
    back = sent.back or sent.visit.base
    return gone_to(f"{back}{'&' if '?' in back else '?'}done=forgotten&derived={gone.derived}")


@routes.get("/o/{app}/{user}/erase")
async def erase_form(found: Annotated[Visit, Depends(visit)]) -> Response:
    """Ask before a person is erased."""
    return found.drawn("erase.html", stats=await found.owner.stats())


@routes.post("/o/{app}/{user}/erase")
async def erase(sent: Sent) -> Response:
    """Erase a person; the answer has the receipt."""
    owner = sent.visit.owner
    sent.visit.served.insist_on(sent.visit.caller, owner, "all")
    if sent.fields.get("name", "") != owner.scope.user:
        raise InvalidInputError("nothing was erased: the name that you typed is not that of the person; go back")
    return receipt_page(sent.visit, await owner.erase(), owner.scope)


def _id(sent: Form) -> str:
    return path_name(sent.visit.request, "id")


async def _insist_on_version(sent: Form) -> MemoryRecord:
    """The record, if it is still the one that the form shows.

    Raises:
        ConflictError: It has changed since.
        RecordNotFoundError: It is gone.
    """
    record = await known(sent.visit.owner, _id(sent))
    if record.version != sent.version():
        raise ConflictError(_STALE)
    return record


async def _changed(sent: Form, patch: Patch, done: str) -> Response:
    seen = sent.version()
    try:
        record = await sent.visit.owner.update(_id(sent), patch, expected_version=seen)
    except ConflictError as conflict:
        raise ConflictError(_STALE) from conflict
    return _shown_after(sent, record, "unchanged" if record.version == seen else done)


def _shown_after(sent: Form, record: MemoryRecord, done: str) -> Response:
    """The page of a record after a change; see `done.done_of`."""
    way_back = [("back", sent.back)] if sent.back else []
    query = query_of([("done", done), ("version", str(record.version)), *way_back])
    return gone_to(sent.visit.record_address(record.id, query))
