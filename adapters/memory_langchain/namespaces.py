"""Namespaces of a LangGraph store as paths of the memory's collections: one path a namespace, and back.

A label is a step of the path, with `/`, `%` and white space percent-encoded as UTF-8. The encoding is injective, keeps
prefixes (`("a",)` is above `("a", "b")`, beside `("ab",)`), and is read back exactly.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from functools import lru_cache
from itertools import starmap
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

try:
    from langgraph.store.base import (
        GetOp,
        InvalidNamespaceError,
        ListNamespacesOp,
        PutOp,
        SearchOp,
        validate_op_namespace,
    )
except ImportError as error:
    raise ImportError("`MemoryStore` needs langgraph: pip install 'memory-core[langgraph]'") from error

if TYPE_CHECKING:
    from langgraph.store.base import MatchCondition, Op

Namespace = tuple[str, ...]

MAX_PATH_CHARS: Final = 512
"""Longest encoded namespace, slashes included: what a collection of the memory may have."""

_ENCODED: Final = re.compile(r"[%/\s]")
_REFUSED: Final = re.compile(r"[%.\0]")


def namespace_label(value: str | int | uuid.UUID) -> str:
    """A label that LangGraph accepts for any id, such as an e-mail address: `store.put((namespace_label(user),), …)`.

    LangGraph refuses labels with a period or a NUL; these, and the percent sign, are percent-encoded, so that two ids
    never share a label. Numbers and UUIDs stand for their usual text.

    Raises:
        InvalidNamespaceError: The id is empty, or something else.
    """
    if isinstance(value, uuid.UUID) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    if not isinstance(value, str) or not value:
        raise InvalidNamespaceError(f"a namespace label is a non-empty string, a number or a UUID, not {value!r:.80}")
    return _REFUSED.sub(lambda found: f"%{ord(found[0]):02X}", value)


def id_of_label(label: str) -> str:
    """The id that `namespace_label` made the label of, as text."""
    return unquote(label)


def check_namespaces(op: Op) -> None:
    """Refuse an operation on a namespace that LangGraph would refuse, from whatever version of it the operation comes.

    Raises:
        InvalidNamespaceError: A label is empty, no text, or holds a period or a NUL.
    """
    validate_op_namespace(op)
    if any("\0" in label for label in _labels(op)):  # langgraph-checkpoint before 4.3.2 lets it pass
        raise InvalidNamespaceError(f"a label of a namespace holds a NUL character: {_labels(op)!r:.200}")


def _labels(op: Op) -> list[str]:
    match op:
        case GetOp() | PutOp():
            return list(op.namespace)
        case SearchOp():
            return list(op.namespace_prefix)
        case ListNamespacesOp():
            return [label for condition in op.match_conditions or () for label in condition.path]
    return []


def to_path(namespace: Iterable[str]) -> str:
    """The collection of a namespace.

    Raises:
        InvalidNamespaceError: The namespace is empty or too long.
    """
    path = "/".join(_ENCODED.sub(lambda found: quote(found[0], safe=""), label) for label in namespace)
    if not path:
        raise InvalidNamespaceError("Namespace cannot be empty.")
    if len(path) > MAX_PATH_CHARS:
        raise InvalidNamespaceError(
            f"the namespace has {len(path)} characters and at most {MAX_PATH_CHARS} are stored; shorten its labels: "
            f"{path:.80}"
        )
    return path


@lru_cache(maxsize=4_096)
def from_path(path: str) -> Namespace:
    """The namespace of a collection."""
    return tuple(map(unquote, path.split("/")))


def matching(namespaces: Iterable[Namespace], conditions: Iterable[MatchCondition]) -> list[Namespace]:
    """The namespaces that satisfy every condition; `*` in a condition stands for any label."""
    wanted = list(conditions)
    return [namespace for namespace in namespaces if all(_matches(namespace, condition) for condition in wanted)]


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    size = len(condition.path)
    if condition.match_type == "prefix":
        part = namespace[:size]
    elif condition.match_type == "suffix":
        part = namespace[-size:] if size else ()
    else:
        raise ValueError(f"namespaces are matched by 'prefix' or 'suffix', not by {condition.match_type!r}")
    return len(part) == size and all(starmap(_same_label, zip(part, condition.path, strict=True)))


def _same_label(label: str, wanted: str) -> bool:
    return wanted in {"*", label}
