"""The visit that every route of the page needs: it says who visits whose memories, and checks that a form was sent
by the page itself."""

from __future__ import annotations

import hmac
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import parse_qsl, quote, urlsplit

from memory_core.app.serve.callers import THE_OPERATOR, Caller
from memory_core.app.serve.served import Served, path_name, served_by
from memory_core.app.serve.templates import drawn, part
from memory_core.errors import InvalidInputError
from memory_core.handle import BoundMemory

try:
    from fastapi import Depends, HTTPException, Request
    from fastapi.responses import HTMLResponse, RedirectResponse
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error

CSRF: Final = "csrf"
_MOST_FIELDS: Final = 50
_MOST_BACK: Final = 2_000
"""Characters of the way back to a list."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody who is signed in, at the memories of an owner."""

    request: Request
    served: Served
    caller: Caller
    owner: BoundMemory
    cookie: str

    @property
    def reach(self) -> BoundMemory:
        """The memories that an agent of the owner reads."""
        return self.served.reach(self.owner)

    def may_change(self) -> bool:
        """True if the visitor may change the memories."""
        return self.served.writable and self.served.may(self.caller, self.owner, "write")

    @property
    def base(self) -> str:
        """The address of the owner's memories."""
        return base_of(self.owner.scope.app, self.owner.scope.user or "")

    def drawn(self, template: str, status: int = 200, /, **values: object) -> HTMLResponse:
        """A page with what all of them have."""
        return drawn(
            template,
            status,
            app=self.owner.scope.app,
            user=self.owner.scope.user,
            base=self.base,
            csrf=self.served.signer.form_token(self.cookie),
            writable=self.may_change(),
            may_erase=self.served.writable and self.served.may(self.caller, self.owner, "all"),
            is_operator=self.caller == THE_OPERATOR,
            visitor=self.caller.user or "operator",
            label=self.served.label_of(self.owner.scope.app, self.owner.scope.user),
            own=self._own_base(),
            spaces={label: base_of(self.served.owner.app, space.owner) for label, space in self.served.spaces.items()},
            labels={space.owner: label for label, space in self.served.spaces.items()},
            now=self.owner.now(),
            path=self.request.url.path,
            **{"back": None, **values},
        )

    def _own_base(self) -> str:
        """The address of the visitor's own memories."""
        scope = self.served.own(self.caller).scope
        return base_of(scope.app, scope.user or "")

    def record_address(self, id: str, query: str = "") -> str:  # noqa: A002  (the record's own word)
        """The address of a record's page."""
        return f"{self.base}/records/{part(id)}{query}"


@dataclass(frozen=True, slots=True)
class Form:
    """A visit that sent a form of the page."""

    visit: Visit
    fields: dict[str, str]

    def text(self, name: str) -> str:
        """A field that the form must have.

        Raises:
            InvalidInputError: It has none, or an empty one.
        """
        text = self.fields.get(name, "")
        if not text.strip():
            raise InvalidInputError(f"{name} must not be empty")
        return text.replace("\r\n", "\n")  # what browsers send for a line's end

    @property
    def name(self) -> str:
        """The name of what the form does: the last part of its address."""
        return self.visit.request.url.path.rpartition("/")[2]

    @property
    def back(self) -> str | None:
        """The list from which somebody came to the memory."""
        return own_address(self.fields.get("back", ""))

    def version(self) -> int:
        """The version of the record that the form shows.

        Raises:
            InvalidInputError: It names none.
        """
        text = self.fields.get("version", "")
        if not (text.isascii() and text.isdecimal() and len(text) < 16):
            raise InvalidInputError("the form names no version; open the page of the memory again")
        return int(text)


def base_of(app: str, user: str) -> str:
    """The address of an owner's memories."""
    return f"/o/{part(app)}/{part(user)}"


def own_address(text: str) -> str | None:
    """The text if it is an address on this server, since a link of somebody else must not lead elsewhere, and so short
    that each link of a page can have it."""
    is_path = text.startswith("/") and not text.startswith(("//", "/\\"))
    return text if is_path and len(text) <= _MOST_BACK and text.isascii() and text.isprintable() else None


def cookie_name(request: Request) -> str:
    """The name of the cookie: browsers send cookies to all ports of a host, so it contains the port."""
    return f"memory_core_{request.url.port or 0}"


def signed_in(request: Request) -> tuple[Caller, str]:
    """The caller who is signed in, and their cookie.

    Raises:
        HTTPException: Nobody is; a browser is led to the page that asks for a token.
    """
    cookie = request.cookies.get(cookie_name(request), "")
    caller = served_by(request).signer.caller(cookie, time.time())
    if caller is None:
        if request.method != "GET":
            raise HTTPException(401, "you are not signed in, so nothing was done")
        # htmx would follow a redirection and draw the form for the token in the midst of the page.
        status, header = (401, "HX-Redirect") if is_fragment(request) else (303, "Location")
        raise HTTPException(status, headers={header: f"/sign-in?then={quote(_page_of(request), safe='')}"})
    return caller, cookie


def is_fragment(request: Request) -> bool:
    """True if htmx asks for a part of a page."""
    return request.headers.get("hx-request") == "true"


def _page_of(request: Request) -> str:
    """Path and query of the page that a browser shows or asks for."""
    page = urlsplit(request.headers.get("hx-current-url", "") if is_fragment(request) else str(request.url))
    return page.path + (f"?{page.query}" if page.query else "")


async def visit(request: Request) -> Visit:
    """The visit of a request: its caller, and the memories that the path names."""
    caller, cookie = signed_in(request)
    served = served_by(request)
    named = "app" in request.path_params
    owner = served.named(caller, path_name(request, "app"), path_name(request, "user")) if named else served.own(caller)
    return Visit(request, served, caller, owner, cookie)


async def form(request: Request, found: Annotated[Visit, Depends(visit)]) -> Form:
    """The form that the visitor sent, if this page made it and memories may be changed.

    Raises:
        HTTPException: The form is not from this page, or the server only reads.
    """
    fields = await fields_of_form(request)
    insist_on_own_form(found.served, found.cookie, fields)
    found.served.insist_on(found.caller, found.owner, "write")
    return Form(found, fields)


def insist_on_own_form(served: Served, cookie: str, fields: Mapping[str, str]) -> None:
    """Refuse a form that this page did not make for the browser with this cookie.

    Raises:
        HTTPException: It did not.
    """
    expected = served.signer.form_token(cookie)
    if not hmac.compare_digest(expected.encode(), fields.get(CSRF, "").encode(errors="replace")):
        raise HTTPException(403, "this form was not made by this page, or is older than the server; open it again")


async def fields_of_form(request: Request, *, most_bytes: int = sys.maxsize) -> dict[str, str]:
    """The fields of a form, as browsers send them.

    Args:
        most_bytes: Of a form that anybody may send.

    Raises:
        InvalidInputError: It is not one.
        HTTPException: It is longer.
    """
    body = bytearray()
    async for some in request.stream():
        body += some
        if len(body) > most_bytes:
            raise HTTPException(413, f"this form has at most {most_bytes} bytes")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as cause:
        raise InvalidInputError("the form cannot be read; open the page again") from cause
    return dict(pairs)


def gone_to(address: str) -> RedirectResponse:
    """The answer that sends a browser on after a form, so that loading the page again sends nothing."""
    return RedirectResponse(address, 303)
