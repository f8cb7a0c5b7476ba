"""The API: `/v1` for the memories of the token, `/v1/owners/{app}/{user}` for those that an operator names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Final, cast
from urllib.parse import quote

from memory_core.app.serve.bodies import (
    Block,
    Conversation,
    Explained,
    Found,
    Limit,
    NewRecord,
    Owners,
    Question,
    Remembered,
    Search,
)
from memory_core.app.serve.callers import THE_OPERATOR, Caller
from memory_core.app.serve.conditions import JSON, LISTS, NAMES, given_in
from memory_core.app.serve.problems import Problem
from memory_core.app.serve.served import Grant, TokenFirst, bearer, path_name, served_by
from memory_core.conversation.recalling import block_in_session
from memory_core.errors import InvalidInputError, RecordNotFoundError
from memory_core.handle import BoundMemory, correcting
from memory_core.models import Deleted, Draft, ErasureReceipt, Hit, MemoryRecord, Order, Page, Patch, Stats, Version
from memory_core.profile import with_profile
from memory_core.recall.values import PULLED, PUSHED, Considered
from memory_core.short_page import count_within, short_page
from memory_core.transfer.jsonl import exported
from memory_core.values.checks import check_key, shown
from memory_core.values.json_text import encode_json
from memory_core.values.limits import PAGE_BYTES
from memory_core.where.where import Where

try:
    from fastapi import APIRouter, Depends, Header, HTTPException, Path, Query, Request, Response
    from fastapi.responses import StreamingResponse
    from pydantic import TypeAdapter
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {  # FastAPI's type
    status: {"description": said, "content": {"application/problem+json": {"schema": Problem.REF}}}
    for status, said in {
        401: "There is no such token.",
        403: "This caller, origin or server may not do that.",
        404: "There is no such record or owner.",
        409: "The id, key or predecessor is taken.",
        410: "The source key is forgotten.",
        412: "The record has changed since it was read.",
        413: "The request is too large.",
        422: "A value cannot be used.",
        503: "The store or the embedder does not answer now.",
    }.items()
}

records = APIRouter(responses=PROBLEMS, route_class=TokenFirst)
"""The routes of the memories of one owner."""
others = APIRouter(responses=PROBLEMS, route_class=TokenFirst)
"""The routes of the operator."""


async def owner_of_call(request: Request, caller: Annotated[Caller, Depends(bearer)]) -> BoundMemory:
    """The memory that a call reaches: that of its token, or the one that the path names."""
    served = served_by(request)
    if "app" not in request.path_params:
        return served.own(caller)
    return served.named(caller, path_name(request, "app"), path_name(request, "user"))


def owner_to(wanted: Grant) -> Callable[..., Awaitable[BoundMemory]]:
    """The same for a call that changes something, or that removes everything."""

    async def allowed(
        request: Request,
        caller: Annotated[Caller, Depends(bearer)],
        owner: Annotated[BoundMemory, Depends(owner_of_call)],
    ) -> BoundMemory:
        served_by(request).insist_on(caller, owner, wanted)
        return owner

    return allowed


async def named_owner(
    app: Annotated[str, Path(description="The app of the owner.")],
    user: Annotated[str, Path(description="The user of the owner.")],
) -> None:
    """Declares the path of an owner; `owner_of_call` reads it."""


async def record_id(request: Request, id: Annotated[str, Path(description="The id of a record.")]) -> str:  # noqa: A002, ARG001
    """The id in the path, decoded."""
    return path_name(request, "id")


Owner = Annotated[BoundMemory, Depends(owner_of_call)]
Writable = Annotated[BoundMemory, Depends(owner_to("write"))]
Erasable = Annotated[BoundMemory, Depends(owner_to("all"))]
Id = Annotated[str, Depends(record_id)]
IfMatch = Annotated[
    str | None, Header(description="The `ETag` of the record when it was read: nothing is written if it has changed.")
]


@records.post("/remember")
async def remember(given: Conversation, owner: Writable) -> Remembered:
    """Remember a conversation: every message once, however often and in whatever parts it is sent."""
    return Remembered(await owner.remember(given.messages, session=given.session, data=given.data))


@records.post("/recall")
async def recall(given: Question, owner: Owner, request: Request) -> Block:
    """The block of memories that an agent gets for a question, from the owner's memories and the shared spaces."""
    options = replace(PULLED if given.pulled else PUSHED, where=given.where)
    chosen = {name: value for name in ("max_chars", "limit") if (value := getattr(given, name)) is not None}
    options = replace(options, **chosen)
    owner = owner if given.collection is None else owner.bind(collection=given.collection)
    reach = served_by(request).reach(owner)
    found = await block_in_session(
        reach,
        given.query,
        given.session,
        options,
        explain=given.explain,
        counts_reads=served_by(request).writable,  # a server that only reads cannot count who read what
    )
    text = await with_profile(owner, found.text) if given.profile else found.text
    count = count_within(found.records, PAGE_BYTES)
    rest = [record.id for record in found.records[count:]]
    return Block(text, list(found.records[:count]), rest, [_explained(each) for each in found.considered])


def _explained(each: Considered) -> Explained:
    hit = each.hit
    text = hit.record.text if hit.passage is None else hit.passage.text
    parts = dict(hit.components or {})
    return Explained(hit.record.id, text, each.rank, hit.score, each.reason, each.of, each.later, parts)


@records.post("/search", response_model=Found)
async def search(given: Search, owner: Owner) -> Response:
    """Find memories by meaning and words, best first; long ones make fewer hits than `limit`, and `rest` names the
    others."""
    hits = await owner.search(
        given.query,
        limit=given.limit,
        where=given.where,
        mode=given.mode,
        every_word=given.every_word,
        floor=given.floor,
        explain=given.explain,
        diversity=given.diversity,
        recency=given.recency,
        importance=given.importance,
        most_bytes=PAGE_BYTES,
    )
    return StreamingResponse(_in_parts(hits, hits.rest), media_type="application/json")


_HITS_A_PART: Final = 100


async def _in_parts(hits: Sequence[Hit], rest: Sequence[str]) -> AsyncGenerator[bytes]:
    """`Found` as JSON. To write 10,000 hits takes 100 ms, so others get their turn in between."""
    yield b'{"hits":['
    for start in range(0, len(hits), _HITS_A_PART):
        part = _hits_as_json().dump_json(list(hits[start : start + _HITS_A_PART]))
        yield (b"," if start else b"") + part[1:-1]
        await asyncio.sleep(0)
    yield b'],"rest":' + encode_json(rest).encode() + b"}"


@cache
def _hits_as_json() -> TypeAdapter[list[Hit]]:
    return TypeAdapter(list[Hit])


PLAIN: Final = [
    {
        "name": name,
        "in": "query",
        "schema": {"type": "array", "items": {"type": "string"}} if name in (*LISTS, "links") else {"type": "string"},
        "description": f"The condition `{name}`" + (", as JSON." if name in JSON else "."),
    }
    for name in NAMES
]
"""The conditions, each as a parameter."""


@records.get("/records", openapi_extra={"parameters": PLAIN})
async def list_records(
    request: Request,
    owner: Owner,
    where: Annotated[
        str | None, Query(description="Conditions as a JSON object.", examples=['{"kinds": ["fact"]}'])
    ] = None,
    order: Order = "newest",
    limit: Annotated[Limit, Query()] = 50,
    cursor: Annotated[str | None, Query(description="`cursor` of the page before.")] = None,
) -> Page:
    """Records without ranking, one page at a time; long ones make a page of fewer than `limit`."""
    conditions = _conditions(request, where)
    return await short_page(owner, where=conditions, order=order, limit=limit, cursor=cursor, most_bytes=PAGE_BYTES)


def _conditions(request: Request, text: str | None) -> Where:
    """The conditions in the parameters, together with those of the object."""
    plain = given_in([pair for pair in request.query_params.multi_items() if pair[0] in NAMES])
    given = {} if text is None else _object(text)
    if twice := plain.keys() & given.keys():
        raise InvalidInputError(f"{min(twice)} is a parameter and in where; give it once")
    read = Where.from_dict(plain)
    return replace(Where.from_dict(given, place="where"), **{name: getattr(read, name) for name in plain})


def _object(text: str) -> dict[str, object]:
    try:
        given: object = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"where must be a JSON object, not {shown(text)}")
    return dict(cast("Mapping[str, object]", given))


@records.post("/records", status_code=201)
async def add_record(
    given: NewRecord,
    owner: Writable,
    response: Response,
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(description="The `source_key` of a record that has none: sending the same again adds nothing."),
    ] = None,
) -> MemoryRecord:
    """Store a record."""
    added = await owner.add(_keyed(given, idempotency_key))
    response.headers["Location"] = f"{request.url.path}/{quote(added.id, safe='')}"
    return _tagged(added, response)


def _keyed(draft: Draft, key: str | None) -> Draft:
    if key is None or draft.source_key is not None:
        return draft
    return replace(draft, source_key=check_key("Idempotency-Key", key))


@records.get("/records/{id}")
async def get_record(id: Id, owner: Owner, response: Response) -> MemoryRecord:  # noqa: A002
    """A record, in any state."""
    return _tagged(await known(owner, id), response)


@records.patch("/records/{id}")
async def change_record(
    id: Id,  # noqa: A002
    given: Patch,
    owner: Writable,
    response: Response,
    if_match: IfMatch = None,
) -> MemoryRecord:
    """Change the given fields of a record; earlier texts stay in its history."""
    return _tagged(await owner.update(id, given, expected_version=_version(if_match)), response)


@records.delete("/records/{id}")
async def delete_record(id: Id, owner: Writable, if_match: IfMatch = None) -> Deleted:  # noqa: A002
    """Delete a record for good; the answer counts it and what was made of its words, which has gone, too."""
    return await owner.delete(id, expected_version=_version(if_match))


@records.post("/records/{id}/supersede", status_code=201)
async def supersede_record(
    id: Id,  # noqa: A002
    given: NewRecord,
    owner: Writable,
    request: Request,
    response: Response,
    if_match: IfMatch = None,
) -> MemoryRecord:
    """Replace a record that is no longer true; the old one is archived and stays in the history.

    Fields that are not given keep their values.
    """
    named = {name: getattr(given, name) for name in await request.json()}
    draft = correcting(owner, await known(owner, id), given.text)
    return _tagged(await owner.supersede(id, replace(draft, **named), expected_version=_version(if_match)), response)


@records.get("/records/{id}/history")
async def history_of_record(id: Id, owner: Owner) -> list[Version]:  # noqa: A002
    """The earlier texts of a record, and what replaced each, oldest first."""
    return await owner.history(id)


@records.get("/stats")
async def stats(owner: Owner) -> Stats:
    """Counts of the owner's records."""
    return await owner.stats()


@records.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}},
)
async def export(
    owner: Owner, request: Request, *, vectors: Annotated[bool, Query(description="Include vectors.")] = False
) -> StreamingResponse:
    """All records of the owner as JSON Lines, which `memory-core import` reads; the last line counts them."""
    lines = exported(served_by(request).memory, owner=owner.scope, vectors=vectors)
    return StreamingResponse(lines, media_type="application/x-ndjson")


@records.post("/erase")
async def erase(owner: Erasable) -> ErasureReceipt:
    """Remove everything of the owner from every file; the answer is the receipt."""
    return await owner.erase()


@others.get("/owners")
async def owners(request: Request, caller: Annotated[Caller, Depends(bearer)]) -> Owners:
    """The owners that have a record; for the operator."""
    if caller != THE_OPERATOR:
        raise HTTPException(403, "only the operator's token may see all owners")
    return Owners(await served_by(request).memory.operator().owners())


@others.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request, _: Annotated[Caller, Depends(bearer)]) -> dict[str, Any]:
    """The description of this API."""
    schema: dict[str, Any] = request.app.openapi()
    return schema


async def known(owner: BoundMemory, id: str) -> MemoryRecord:  # noqa: A002
    """The record of an owner.

    Raises:
        RecordNotFoundError: There is no such record.
    """
    record = await owner.get(id)
    if record is None:
        raise RecordNotFoundError(f"there is no memory {shown(id)}, or it has expired")
    return record


def _tagged(record: MemoryRecord, response: Response) -> MemoryRecord:
    response.headers["ETag"] = f'"{record.version}"'
    return record


def _version(tag: str | None) -> int | None:
    """The version of a record that an `If-Match` names; `*` is any."""
    if tag is None or tag.strip() == "*":
        return None
    text = tag.strip().strip('"')
    if not (text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS):
        raise HTTPException(412, f'If-Match must be the ETag of the record, such as "1", not {shown(tag)}')
    return int(text)


_MOST_DIGITS: Final = 16
