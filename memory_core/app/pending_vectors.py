"""Vectors that are pending, for commands that compute them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from memory_core.app.command import Invocation
from memory_core.handle import settled
from memory_core.models import Scope
from memory_core.operator import Operator
from memory_core.values.progress import Progress


async def pending_vectors(operator: Operator) -> Mapping[Scope, int]:
    """The number of pending vectors, for each owner who has some."""
    return {owner: each.vectors_pending for owner, each in (await operator.stats()).items() if each.vectors_pending}


async def compute_vectors(invocation: Invocation, operator: Operator, owners: Collection[Scope]) -> None:
    """Compute what is pending of these owners, behind a bar."""
    if owners:
        with invocation.progress("computing vectors") as tell:
            for number, owner in enumerate(owners):
                tell(Progress(number, len(owners)))
                await settled(operator.handle(owner))
