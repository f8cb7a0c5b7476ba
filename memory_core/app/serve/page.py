"""The page: what a person sees and does. Every address also works without scripts; htmx only fetches less."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final
from urllib.parse import quote

from memory_core.app.serve.api import known
from memory_core.app.serve.callers import THE_OPERATOR, Caller, caller_with
from memory_core.app.serve.conditions import FIELDS, Pairs, query_of, where_in
from memory_core.app.serve.done import done_of
from memory_core.app.serve.listed import browsed, searched
from memory_core.app.serve.problems import sentence
from memory_core.app.serve.record_page import shown
from memory_core.app.serve.served import path_name, served_by
from memory_core.app.serve.shapes import (
    MOST_CHIPS,
    Facet,
    chips_of,
    considered_line,
    considered_lines,
    facets_of,
    legend_of,
    line_of,
)
from memory_core.app.serve.templates import drawn
from memory_core.app.serve.visits import (
    Visit,
    base_of,
    cookie_name,
    fields_of_form,
    gone_to,
    insist_on_own_form,
    is_fragment,
    own_address,
    signed_in,
    visit,
)
from memory_core.app.why import NOTHING_IN_COMMON, explained, looked_at
from memory_core.errors import InvalidInputError
from memory_core.made_of import sources_of
from memory_core.models import ErasureReceipt, Scope, Stats
from memory_core.recall.values import PUSHED_CHARS
from memory_core.transfer.jsonl import exported
from memory_core.values.checks import check_count, check_query
from memory_core.where.where import ANY_STATE

try:
    from fastapi import APIRouter, Depends, Query, Request, Response
    from fastapi.responses import StreamingResponse
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

MOST_COLLECTIONS: Final = 500
MOST_SUGGESTED: Final = 5
MOST_BLOCK_CHARS: Final = 100_000
CHARS_OF_A_TOKEN: Final = 4
"""About; a model counts its own way."""

routes = APIRouter(include_in_schema=False)
Visited = Annotated[Visit, Depends(visit)]
Text = Annotated[str, Query()]


def sorry(request: Request, status: int, said: str) -> Response:
    """A page that says why something was not done, and leads back."""
    values = {"said": sentence(said), "title": _TITLES.get(status, "Not done"), "back": _back_from(request, status)}
    return drawn("_problem.html" if is_fragment(request) else "problem.html", status, **values)


_TITLES: Final = {401: "Sign in first", 404: "Not found"}


def _back_from(request: Request, status: int) -> str:
    """The page of the memory that a path is about, or of the person; the sign-in leads there."""
    parts = request.url.path.split("/")
    is_record = parts[4:5] == ["records"] and status not in {401, 404}
    page = "/".join(parts[: 6 if is_record else 4]) if parts[1] == "o" and len(parts) > 3 else "/"
    return f"/sign-in?then={quote(page, safe='')}" if status == 401 else page


@routes.get("/")
async def start(request: Request) -> Response:
    """The first page: the memories of the caller; for an operator who has none, the people."""
    caller, _ = signed_in(request)
    served = served_by(request)
    scope = served.own(caller).scope
    if caller == THE_OPERATOR and scope not in await served.memory.operator().owners():
        return gone_to("/owners")
    return gone_to(base_of(scope.app, scope.user or ""))


@routes.get("/sign-in")
async def sign_in_form(request: Request, key: Text = "", then: Text = "/") -> Response:
    """Ask for a token; the link that the server printed has it already.

    A link on a page signs nobody in: it could have the token of somebody else, who would get what is typed then. A page
    of this server has such a link as a way back that somebody else made.
    """
    is_led_here = request.headers.get("sec-fetch-site", "none") != "none"
    caller = caller_with(served_by(request).tokens, key) if key and not is_led_here else None
    if caller is not None:
        return _signed_in(request, caller, then)
    is_refused = bool(key) and not is_led_here
    return drawn("sign_in.html", 403 if is_refused else 200, then=then, refused=is_refused)


@routes.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Sign in with a token."""
    fields = await fields_of_form(request, most_bytes=_MOST_SIGN_IN)
    caller = caller_with(served_by(request).tokens, fields.get("token", "").strip())
    then = fields.get("then", "/")
    if caller is None:
        return drawn("sign_in.html", 403, then=then, refused=True)
    return _signed_in(request, caller, then)


_MOST_SIGN_IN: Final = 10_000
"""Bytes of the form with a token and the way back, which strangers send, too."""


def _signed_in(request: Request, caller: Caller, then: str) -> Response:
    answer = gone_to(own_address(then) or "/")
    cookie = served_by(request).signer.cookie(caller, time.time())
    is_secure = request.url.scheme == "https"
    answer.set_cookie(cookie_name(request), cookie, httponly=True, samesite="strict", secure=is_secure)
    return answer


@routes.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End every session of the caller, in this browser and in all others."""
    caller, cookie = signed_in(request)
    insist_on_own_form(served_by(request), cookie, await fields_of_form(request))
    served_by(request).signer.end(caller)
    answer = gone_to("/sign-in")
    answer.delete_cookie(cookie_name(request), httponly=True, samesite="strict")
    return answer


@routes.get("/o/{app}/{user}")
async def memories(
    found: Visited, q: Text = "", cursor: Text = "", done: Text = "", derived: Text = "", shown: Text = ""
) -> Response:
    """Search, or browse by conditions."""
    pairs = _pairs(found)
    if _blanks(found) and not is_fragment(found.request):
        return gone_to(found.base + query_of([*_asked(q), *pairs]))
    where = where_in(pairs)
    query = check_query(q).strip()
    asked = [*_asked(q), *pairs]
    wanted = int(shown) if _is_number(shown) else 0
    listed = await (searched(found, query, where, asked, wanted) if query else browsed(found, where, pairs, cursor))
    rest = [("shown", shown)] if wanted and query else [("cursor", cursor)] if cursor else []
    template = "_results.html" if is_fragment(found.request) else "memories.html"
    return found.drawn(
        template,
        q=q,
        where=where,
        pairs=pairs,
        fields={name: next((value for key, value in pairs if key == name), "") for name in FIELDS},
        chips=chips_of(where, _asked(q)),
        done=done,
        derived=int(derived) if _is_number(derived) else 0,
        query=query_of(asked),
        listed=listed,
        legend=legend_of([*listed.lines, *listed.beyond]),
        back=own_address(found.base + query_of([*asked, *rest])),
    )


def _pairs(found: Visit) -> Pairs:
    """The conditions in the address."""
    pairs = found.request.query_params.multi_items()
    return [pair for pair in pairs if pair[0] not in _NO_CONDITIONS and pair not in _BLANKS]


def _blanks(found: Visit) -> bool:
    """True if the address has fields of a form that nobody filled in."""
    return not _BLANKS.isdisjoint(found.request.query_params.multi_items())


_NO_CONDITIONS: Final = ("q", "cursor", "done", "derived", "id", "words", "shown")
_BLANKS: Final = frozenset((name, "") for name in (*FIELDS, "keywords", "q"))


def _asked(q: str) -> list[tuple[str, str]]:
    return [("q", q)] if q else []


@routes.get("/o/{app}/{user}/missing")
async def missing(found: Visited, q: Text = "", words: Text = "") -> Response:
    """Memories that contain some words, to ask why one of them was not found."""
    lines = []
    if words.strip():
        hits = await found.reach.search(words, limit=MOST_SUGGESTED, where=ANY_STATE, mode="substring")
        hits = hits or await found.reach.search(words, limit=MOST_SUGGESTED, where=ANY_STATE, floor=False)
        lines = [line_of(hit.record) for hit in hits]
    template = "_missing.html" if is_fragment(found.request) else "missing.html"
    return found.drawn(template, q=q, words=words, lines=lines)


@routes.get("/o/{app}/{user}/why")
async def why(found: Visited, id: Text, q: Text = "") -> Response:  # noqa: A002  (the record's own word)
    """The page that says why a memory is in the block for a question, or is not."""
    record = await known(found.reach, id)
    each = await explained(found.reach, q, id) if q.strip() else None
    line = line_of(record) if each is None else considered_line(each)
    sources = [line_of(source) async for source in sources_of(found.reach, record)]
    return found.drawn("why.html", q=q, line=line, said=line.said or NOTHING_IN_COMMON, sources=sources)


@routes.get("/o/{app}/{user}/facets")
async def facets(found: Visited, q: Text = "") -> Response:
    """The values to browse by, besides the kinds and the conditions of the list: tiers, states and collections."""
    together = found.served.together(found.owner)
    counts = [await owner.stats() for owner in together]
    collections = {name for owner in together for name in await owner.collections()}
    others = [*_asked(q), *_pairs(found)]
    is_short = own_address(found.base + query_of(others)) is not None
    most = MOST_COLLECTIONS if is_short else MOST_CHIPS  # each link has the query
    first = dict.fromkeys(sorted(collections)[:most])
    return found.drawn(
        "_facets.html", facets=_facets(counts, others) | {"Collections": facets_of("under", first, others)}
    )


def _facets(counts: Sequence[Stats], others: Pairs) -> dict[str, list[Facet]]:
    """By title, the values that records have."""
    return {
        "Tiers": facets_of("tiers", _summed(each.by_tier for each in counts), others),
        "States": facets_of("states", _summed(each.by_state for each in counts), others),
    }


def _summed(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total = Counter[str]()
    for each in counts:
        total.update(each)
    return total


@routes.get("/o/{app}/{user}/block")
async def block(found: Visited, q: Text = "", max_chars: Text = "") -> Response:
    """The block that an agent would get for a question, and what was considered for it."""
    chars = check_count("max_chars", _number(max_chars), 0, MOST_BLOCK_CHARS)
    recalled = await looked_at(found.reach, check_query(q), max_chars=chars)
    return found.drawn(
        "block.html",
        q=q,
        max_chars=chars,
        text=recalled.text,
        tokens=-(-len(recalled.text) // CHARS_OF_A_TOKEN),
        lines=considered_lines(recalled.considered),
    )


@routes.get("/o/{app}/{user}/profile")
async def profile(found: Visited) -> Response:
    """The profile that every prompt gets, whatever is asked."""
    held = await found.owner.profile()
    return found.drawn(
        "profile.html",
        text=held.text,
        tokens=-(-len(held.text) // CHARS_OF_A_TOKEN),
        left_out=held.left_out,
        lines=[line_of(record) for record in held.records],
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _number(text: str) -> int:
    if not text:
        return PUSHED_CHARS
    if not _is_number(text):
        raise InvalidInputError(f"max_chars must be a whole number from 0 to {MOST_BLOCK_CHARS}")
    return int(text)


@routes.get("/o/{app}/{user}/stats")
async def stats(found: Visited) -> Response:
    """The counts, and the number of pending vectors."""
    counted = await found.owner.stats()
    return found.drawn(
        "stats.html", stats=counted, facets={"Kinds": facets_of("kinds", counted.by_kind, []), **_facets([counted], [])}
    )


@routes.get("/o/{app}/{user}/export")
async def export(found: Visited) -> Response:
    """All memories of the owner as a file."""
    lines = exported(found.served.memory, owner=found.owner.scope, vectors=False)
    headers = {"content-disposition": 'attachment; filename="memories.jsonl"'}
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


@routes.get("/o/{app}/{user}/records/{id}")
async def record(found: Visited, done: Text = "", version: Text = "", back: Text = "") -> Response:
    """Everything about one memory; `back` is the list from which somebody came."""
    whole = await shown(found.owner, await known(found.owner, path_name(found.request, "id")))
    return found.drawn(
        "record.html", shown=whole, done=done_of(done, version, whole), refused=None, typed={}, back=own_address(back)
    )


def receipt_page(found: Visit, receipt: ErasureReceipt, owner: Scope) -> Response:
    """The receipt of an erasure, and the same as a file."""
    said = {"app": owner.app, "user": owner.user, **receipt.to_dict()}
    text = json.dumps(said, ensure_ascii=False, indent=2)
    return found.drawn("receipt.html", receipt=receipt, file=b64encode(text.encode()).decode())
