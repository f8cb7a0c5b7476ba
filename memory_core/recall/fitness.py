"""The records that may stand in a block, whatever brought them there: the search, a link, or a turn beside a hit."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from memory_core.models import MemoryRecord
from memory_core.recall.values import Reason, RecallOptions

if TYPE_CHECKING:
    from memory_core.recall.asking import InContext


def unfit(record: MemoryRecord, asked: InContext, options: RecallOptions, now: datetime) -> Reason | None:
    """The reason why a record may not stand in a block; `None` if it may.

    Args:
        now: Memories that were valid until an earlier time count as superseded, unless the past is asked for.
    """
    if not record.text.strip():
        return "no text"
    shows_the_past = options.where.as_of is not None or "archived" in options.where.states
    if not shows_the_past and record.valid_to is not None and record.valid_to <= now:
        return "superseded"
    return "excluded" if record.text in asked.said or asked.prompt.shows(record) else None
