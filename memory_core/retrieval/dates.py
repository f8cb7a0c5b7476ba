"""How well the date of a record fits a date that a query names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.timex import DateMention

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

SLACK_DAYS: Final = 14
"""People speak of a day for about two weeks after it."""

_DAY: Final = 86_400_000_000
_MONTH_DAYS: Final = 31


def date_fit(occurred: Rows, mentions: Sequence[DateMention]) -> Floats:
    """1 for records of the named day, month or year, falling to 0 over the two weeks after it."""
    fit: Floats = np.zeros(len(occurred), np.float32)
    stamps = occurred.astype("datetime64[us]")
    for mention in mentions:
        if mention.month is None:
            year = stamps.astype("datetime64[Y]").astype(np.int64) + 1970
            fit = np.maximum(fit, (year == mention.year).astype(np.float32))
            continue
        years = stamps.astype("datetime64[Y]")
        if mention.year is not None:
            years = np.full(len(occurred), np.datetime64(mention.year - 1970, "Y"))
        start = (years + np.timedelta64(mention.month - 1, "M")).astype("datetime64[D]")
        start = start + np.timedelta64((mention.day or 1) - 1, "D")
        days = (stamps - start.astype("datetime64[us]")).astype(np.int64) / _DAY
        length = 1 if mention.day else _MONTH_DAYS
        late = 1 - (days - length) / SLACK_DAYS
        inside = np.where((days >= -1) & (days <= length), 1.0, np.where(days > length, np.clip(late, 0, 1), 0.0))
        fit = np.maximum(fit, inside.astype(np.float32))
    return fit
