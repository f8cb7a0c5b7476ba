"""A test for the attributes of objects."""

from __future__ import annotations


def has(owner: object, name: str) -> bool:
    """True if an object has an attribute, without its `__getattr__`, which may look for what was meant."""
    return hasattr(type(owner), name) or name in getattr(owner, "__dict__", ())
