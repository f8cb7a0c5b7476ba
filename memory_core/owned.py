"""Whose memories a call of a framework may reach: for adapters."""

from __future__ import annotations

from memory_core.checks import check_key
from memory_core.errors import ScopeError
from memory_core.handle import BoundMemory


def owned_by(handle: BoundMemory, user: object) -> BoundMemory:
    """The handle for the user a framework names on this call.

    An open handle takes that user; a handle that fixes one accepts only the same, so that a shared handle never mixes
    two people.

    Raises:
        ScopeError: The framework named nobody (missing, empty, not a string), or somebody else.
    """
    return handle.bind(user=check_key("user", user, ScopeError))
