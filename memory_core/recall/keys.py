"""The key of a record in a recall, which may read the memories of several owners."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from memory_core.models import MemoryRecord

Key = tuple[str, str, str]
"""The app, the user and the id of a record: two owners may have records with the same id."""

key_of: Final[Callable[[MemoryRecord], Key]] = attrgetter("app", "user", "id")
"""The key of a record."""
