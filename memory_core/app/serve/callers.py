"""The callers: a user or the operator, known by a bearer token, by the cookie of the page, or by the local socket."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memory_core.values.checks import check_key
from memory_core.values.tokens import digest_of, names_by_token, tokens_in_file

OPERATOR: Final = "*"
"""The name of the operator in a file of tokens."""
SESSION_SECONDS: Final = 12 * 3_600
"""The time for which a browser stays signed in: a working day."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who is known."""

    user: str | None
    """`None` for the operator, who may name any owner."""


THE_OPERATOR: Final = Caller(None)


def tokens_in(path: Path) -> Mapping[bytes, Caller]:
    """Read tokens from a file with a JSON object such as `{"ann": "…", "*": "…"}`; `*` is the operator.

    Returns:
        The caller for the hash of each token; the tokens themselves are not kept.

    Raises:
        InvalidInputError: The file cannot be read, other users can read it, or it is not such an object.
    """
    return tokens_of(tokens_in_file(path))


def tokens_of(given: Mapping[str, object]) -> Mapping[bytes, Caller]:
    """The caller for the hash of each token.

    Raises:
        InvalidInputError: There are no tokens, one is not a string or too short, or two callers share one.
    """
    return {
        token: THE_OPERATOR if name == OPERATOR else Caller(check_key("user", name))
        for token, name in names_by_token(given).items()
    }


def caller_with(tokens: Mapping[bytes, Caller], token: str) -> Caller | None:
    """The caller whose token it is, if anybody's."""
    return tokens.get(digest_of(token))


@dataclass(frozen=True, slots=True, repr=False)
class Signer:
    """Makes and reads the cookies of signed-in browsers. One is valid for half a day, or until the process ends or its
    caller signs out, in whatever browser."""

    secret: bytes
    _ends: Counter[str | None] = field(default_factory=Counter[str | None])
    """The number of times that each caller has signed out: a cookie from before is no longer valid."""

    def cookie(self, caller: Caller, now: float) -> str:
        """The cookie of a caller; `now` in seconds since 1970."""
        lasts = caller.user, int(now) + SESSION_SECONDS, self._ends[caller.user]
        said = urlsafe_b64encode(json.dumps(lasts).encode()).decode()
        return f"{said}.{self._signature('cookie', said)}"

    def caller(self, cookie: str, now: float) -> Caller | None:
        """The caller that a cookie was made for, or `None` if it was not made here or has expired."""
        said, _, signature = cookie.partition(".")
        if not hmac.compare_digest(self._signature("cookie", said).encode(), signature.encode(errors="replace")):
            return None
        user, until, ends = json.loads(urlsafe_b64decode(said))
        return Caller(user) if now < until and ends == self._ends[user] else None

    def end(self, caller: Caller) -> None:
        """Make every cookie of a caller invalid."""
        self._ends[caller.user] += 1

    def form_token(self, cookie: str) -> str:
        """The token that every form of the page has to send back, so that no other site can send one."""
        return self._signature("form", cookie)

    def _signature(self, purpose: str, said: str) -> str:
        return hmac.new(self.secret, f"{purpose}\0{said}".encode(errors="replace"), hashlib.sha256).hexdigest()
