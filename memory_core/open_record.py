"""Making records by the thousand."""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from typing import Final, cast

from memory_core.models import MemoryRecord
from memory_core.plain import Value

OpenRecord: Final = cast(
    "type[MemoryRecord]",
    make_dataclass(
        "OpenRecord",
        [(each.name, object) for each in fields(MemoryRecord)],
        bases=(Value,),
        slots=True,
        kw_only=True,
        eq=False,
    ),
)
"""A record whose fields can still be set, all of which must be given; see `sealed`."""


def sealed(record: MemoryRecord) -> MemoryRecord:
    """Make an `OpenRecord` the `MemoryRecord` it is going to be: for records that are made by the thousand.

    A frozen dataclass sets its 27 fields by `object.__setattr__`, which takes three times as long as an assignment; an
    open record has the same slots and is not frozen.
    """
    record.__class__ = MemoryRecord
    return record
