"""The records of the days that a query names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memory_core.retrieval.arrays import Floats, Rows
from memory_core.retrieval.time_expressions import DateMention


def date_fit(occurred: Rows, mentions: Sequence[DateMention]) -> Floats:
    """1 for records of a named day, month or year, else 0; what a date leaves open may be anything.

    Args:
        occurred: Microseconds since 1970 on the clocks of the place: moments of UTC, so many minutes later as those
            are ahead of it.
        mentions: The dates in the query.
    """
    days = occurred.astype("datetime64[us]").astype("datetime64[D]")
    months, years = days.astype("datetime64[M]"), days.astype("datetime64[Y]")
    year, month = years.astype(np.int64) + 1970, months.astype(np.int64) % 12 + 1
    day = (days - months.astype("datetime64[D]")).astype(np.int64) + 1
    found = np.zeros(len(occurred), np.bool_)
    for mention in mentions:
        named = ((year, mention.year), (month, mention.month), (day, mention.day))
        found |= np.logical_and.reduce([of_rows == one for of_rows, one in named if one is not None])
    return found.astype(np.float32)
