"""Namespaces of a store that are in the memory of another owner, such as a team or a company."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from memory_core import BoundMemory, FieldCondition, ScopeError, SharedMemory
from memory_langchain.items import Reading, items, page_of
from memory_langchain.namespaces import Namespace, check_namespaces, from_path

try:
    from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, Result, SearchOp
except ImportError as error:
    raise ImportError("`MemoryStore` needs langgraph: pip install 'memory-core[langgraph]'") from error

EVERYWHERE: Final = "*"
"""Stands for all memories together, for operations that name no first label."""
OWN: Final = ""
"""Stands for the store's own memory; no label is empty."""

_DIRECTLY: Final = (FieldCondition("collection", "eq", None),)
"""A condition on the items of a space that have no namespace below its label."""


class SharedNamespaces:
    """Which operations reach which memory. A namespace that begins with the label of a space is in that space.

    Args:
        own: The memory of all other namespaces.
        shared: The handle of each space, by its label.
        writable: Labels of the spaces that may be written to.

    Raises:
        InvalidNamespaceError: LangGraph refuses a label.
        ScopeError: A handle leaves its user open, is bound to a collection, or has the owner of another one.
        InvalidInputError: `writable` has an unknown label, or there are too many spaces.
    """

    def __init__(self, own: BoundMemory, shared: Mapping[str, BoundMemory], writable: Collection[str]) -> None:
        self.together = SharedMemory(own, shared, writable=writable)
        self._handles = {OWN: own, **shared}
        for label, handle in shared.items():
            check_namespaces(GetOp((label,), ""))
            if handle.scope.collection is not None:
                raise ScopeError(f"a store manages collections itself; share a handle without {handle.scope!r}")

    @property
    def handles(self) -> Mapping[str, BoundMemory]:
        """The store's own handle, then those of the spaces, by label."""
        return self._handles

    def may_change(self, label: str) -> bool:
        """Whether items of the space may be put, deleted, and extended in their expiry by reading."""
        return label == OWN or self.together.spaces[label] == "write"

    def parts(self, ops: Sequence[Op]) -> dict[str, dict[int, Op]]:
        """The operations by memory and place, with namespaces as they are there.

        Raises:
            ScopeError: A put names a space that is shared for reading only.
        """
        parts: dict[str, dict[int, Op]] = {}
        for place, op in enumerate(ops):
            label, inner = self._located(op)
            if isinstance(op, PutOp) and not self.may_change(label):
                raise ScopeError(
                    f"the namespace {op.namespace!r} is in the space {label!r}, which is shared for reading only; "
                    "grant more with MemoryStore(..., writable=[...]), or put the item elsewhere"
                )
            parts.setdefault(label, {})[place] = inner
        return parts

    def _located(self, op: Op) -> tuple[str, Op]:
        match op:
            case GetOp() | PutOp() if op.namespace[:1] and op.namespace[0] in self._handles:
                return op.namespace[0], op._replace(namespace=op.namespace[1:])
            case SearchOp() if not op.namespace_prefix:
                return EVERYWHERE, op
            case SearchOp() if op.namespace_prefix[0] in self._handles:
                return op.namespace_prefix[0], op._replace(namespace_prefix=op.namespace_prefix[1:])
            case ListNamespacesOp():
                return EVERYWHERE, op
            case _:
                return OWN, op

    async def across(self, op: Op, reading: Reading) -> Result:
        """The result of an operation on all memories together."""
        return page_of(op, await self._namespaces()) if isinstance(op, ListNamespacesOp) else await reading.result(op)

    async def _namespaces(self) -> list[Namespace]:
        found: list[Namespace] = []
        for label, handle in self._handles.items():
            above = (label,) if label else ()
            found += [(*above, *from_path(path)) for path in await handle.collections(items())]
            if above and (await handle.list(where=items(matching=_DIRECTLY), limit=1)).records:
                found.append(above)
        return found
