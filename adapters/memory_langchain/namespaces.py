"""Conversion between namespaces of a LangGraph store and collection paths of the memory.

Each label is one segment of the path, with `/`, `%` and white space percent-encoded as UTF-8. The encoding is
injective and reversible and preserves prefixes: `("a",)` is the parent of `("a", "b")` and a sibling of `("ab",)`.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from langgraph.store.base import InvalidNamespaceError

if TYPE_CHECKING:
    from langgraph.store.base import MatchCondition

Namespace = tuple[str, ...]

MAX_PATH_CHARS: Final = 512
"""Longest encoded namespace, slashes included; the core's limit for a collection."""

_ENCODED: Final = re.compile(r"[%/\s]")
_REFUSED: Final = re.compile(r"[%.*\0]|^l(?=anggraph$)")


def namespace_label(value: str | int | uuid.UUID) -> str:
    """Encode any id, such as an e-mail address, as a label: `store.put((namespace_label(user),), …)`.

    LangGraph rejects labels with a period or a NUL and the first label `langgraph`, and matches any label with `*`.
    These and the percent sign are percent-encoded, so that two ids never share a label. Numbers and UUIDs are
    converted to strings.

    Raises:
        InvalidNamespaceError: The id is empty or has another type.
    """
    if isinstance(value, uuid.UUID) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    if not isinstance(value, str) or not value:
        raise InvalidNamespaceError(f"a namespace label is a non-empty string, a number or a UUID, not {value!r:.80}")
    return _REFUSED.sub(lambda found: f"%{ord(found[0]):02X}", value)


def id_of_label(label: str) -> str:
    """Decode a label of `namespace_label`; the id is returned as a string."""
    return unquote(label)


def to_path(namespace: Iterable[str]) -> str:
    """Convert a namespace to a collection.

    Raises:
        InvalidNamespaceError: The namespace is empty or too long.
    """
    path = "/".join(_ENCODED.sub(lambda found: quote(found[0], safe=""), label) for label in namespace)
    if not path:
        raise InvalidNamespaceError("Namespace cannot be empty.")
    if len(path) > MAX_PATH_CHARS:
        raise InvalidNamespaceError(
            f"the namespace has {len(path)} characters, but at most {MAX_PATH_CHARS} fit; shorten its labels: "
            f"{path:.80}"
        )
    return path


@lru_cache(maxsize=4_096)
def from_path(path: str) -> Namespace:
    """Convert a collection to a namespace."""
    return tuple(map(unquote, path.split("/")))


def matches(namespace: Namespace, condition: MatchCondition) -> bool:
    """True if a namespace begins or ends with the labels of a condition, in which `*` stands for any label."""
    if condition.match_type not in {"prefix", "suffix"}:
        raise ValueError(f"match_type must be 'prefix' or 'suffix', not {condition.match_type!r}")
    wanted, room = condition.path, len(namespace) - len(condition.path)
    labels = namespace if condition.match_type == "prefix" else namespace[max(room, 0) :]
    return room >= 0 and all(one in {"*", label} for one, label in zip(wanted, labels, strict=False))
