"""Bearer tokens of a configuration: whose each of them is. Only hashes of the tokens are kept."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from memory_core.errors import InvalidInputError
from memory_core.values.checks import shown

MIN_TOKEN_CHARS: Final = 20
"""Shortest accepted token; shorter ones could be guessed."""


def tokens_in_file(path: Path) -> Mapping[str, object]:
    """The JSON object in a file, such as `{"ann": "…", "bob": "…"}`, for `names_by_token`.

    Raises:
        InvalidInputError: The file cannot be read, other users can read it, or it is not such an object.
    """
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) else "it is not text in UTF-8"
        raise InvalidInputError(f"the tokens in {str(path)!r} cannot be read: {reason}") from cause
    if os.name == "posix" and mode & 0o077:
        raise InvalidInputError(f"other users of this machine can read {str(path)!r}; run `chmod 600` on it first")
    try:
        given: object = json.loads(text)
    except (ValueError, RecursionError):  # whose message might contain part of a token
        given = None
    if not isinstance(given, dict):
        raise InvalidInputError(f'{str(path)!r} does not contain a JSON object such as {{"ann": "<token>"}}')
    return cast("dict[str, object]", given)


def names_by_token(given: Mapping[str, object]) -> dict[bytes, str]:
    """The user of each token, by the hash of the token.

    Raises:
        InvalidInputError: There are no tokens, one is not a string or too short, or two share one.
    """
    names: dict[bytes, str] = {}
    for name, token in given.items():
        if not isinstance(token, str) or len(token) < MIN_TOKEN_CHARS or token != token.strip():
            raise InvalidInputError(
                f"the token of {shown(name)} must be a string of at least {MIN_TOKEN_CHARS} characters, without white "
                "space before or after them, which a request does not have; create one "
                "with `python -c 'import secrets; print(secrets.token_urlsafe())'`"
            )
        other = names.setdefault(digest_of(token), name)
        if other != name:
            raise InvalidInputError(f"{shown(other)} and {shown(name)} have the same token; give each a different one")
    if not names:
        raise InvalidInputError("no tokens are given, so every call would be refused; list users and tokens")
    return names


def digest_of(token: str) -> bytes:
    """The hash of a token. Hashes are compared, so the time taken says nothing about a token."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
