"""The caller whose share of the server a request takes."""

from __future__ import annotations

import time
from collections.abc import Callable

from memory_core.app.serve.callers import OPERATOR
from memory_core.app.serve.served import Served, caller_by_token
from memory_core.app.serve.visits import cookie_name

try:
    from starlette.requests import Request
    from starlette.types import Scope
except ImportError as error:
    raise ImportError("`memory-core serve` needs fastapi: pip install 'memory-core[serve]'") from error


def share_of(served: Served) -> Callable[[Scope], str | None]:
    """A function that returns the name of the caller of a request, however they have signed in: a new cookie, or a
    token in other letters, is no further share. A request whose token and cookie are nobody's has none."""

    def named(scope: Scope) -> str | None:
        request = Request(scope)
        caller = caller_by_token(request, served)
        if caller is None:
            caller = served.signer.caller(request.cookies.get(cookie_name(request), ""), time.time())
        return None if caller is None else caller.user or OPERATOR

    return named
