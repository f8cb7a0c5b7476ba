"""The place where something is kept: the path of a file, or the address of a server.

What has the form of an address is never the path of a file: every call and every command refuses it before anything is
opened or made, and no message shows what may be a key in it. A path of that form is written with `./` before it.
"""

from __future__ import annotations

import os
import re
from typing import Final

from memory_core.errors import InvalidInputError

_ADDRESS: Final = re.compile(r"[^/\\]{2,}:[/\\]|[^/\\:]{2,}:[^/\\]*@")
"""A scheme has two letters at least, unlike a drive of Windows; `pathlib` makes one slash of two."""
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_KEY_OR_MORE: Final = re.compile(r"[?#].*@", re.DOTALL)


def is_address(place: str | os.PathLike[str]) -> bool:
    """True if it has the form of an address, with whatever scheme, instead of a path."""
    return _ADDRESS.match(os.fspath(place)) is not None


def check_path(name: str, place: str | os.PathLike[str], otherwise: str = "") -> None:
    """Refuse an address where the path of a file or a folder belongs.

    Args:
        name: A noun for the place, as the subject of a sentence.
        otherwise: The end of the sentence, where an address can be given in another way.

    Raises:
        InvalidInputError: It is an address; the message shows its scheme only.
    """
    if is_address(place):
        scheme = _scheme(os.fspath(place))
        raise InvalidInputError(
            f"{name} must be a path, and that is an address ({scheme}://…); give the path of the file only, such as "
            f"memory.db{otherwise}"
        )


def without_key(place: str | os.PathLike[str]) -> str:
    """A place for messages: a path as it is, an address without what may be a key: user, password, options."""
    given = os.fspath(place)
    if not is_address(given):
        return given
    rest = given.partition(":")[2].lstrip("/\\")
    if _KEY_OR_MORE.search(rest):  # a key with a question mark, or an option with an @
        return f"{_scheme(given)}://…"
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    host = f"…@{rest.rpartition('@')[2]}" if "@" in rest else rest
    return f"{_scheme(given)}://{host}"


def _scheme(address: str) -> str:
    scheme = address.partition(":")[0]
    return scheme if _SCHEME.fullmatch(scheme) else "…"
