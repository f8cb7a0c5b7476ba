"""The fit of the day of a record to a date that a query names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.retrieval.arrays import Floats, Rows
from memory_core.retrieval.time_expressions import DateMention

Moments = NDArray[np.datetime64]

SLACK_DAYS: Final = 14
"""People mention a day for about two weeks after it."""

_DAY: Final = 86_400_000_000
_MONTH_DAYS: Final = 31
_DECEMBER: Final = 12
"""Spoken of until the middle of January: without a year, that of the year before may be meant."""


def date_fit(occurred: Rows, mentions: Sequence[DateMention]) -> Floats:
    """1 for records of the named day, month or year, falling to 0 over the two weeks after the day or month.

    A month has 31 days. Without a year the nearest such month counts.

    Args:
        occurred: Microseconds since 1970 on the clocks of the place: moments of UTC, so many minutes later as those
            are ahead of it.
        mentions: The dates in the query; the one that fits best counts.
    """
    fit: Floats = np.zeros(len(occurred), np.float32)
    stamps: Moments = occurred.astype("datetime64[us]")
    own: Moments = stamps.astype("datetime64[Y]")
    for mention in mentions:
        if mention.month is None:
            fit = np.maximum(fit, (own.astype(np.int64) + 1970 == mention.year).astype(np.float32))
        elif mention.year is not None:
            years = np.full(len(occurred), np.datetime64(mention.year - 1970, "Y"))
            fit = np.maximum(fit, _fit(stamps, years, mention))
        else:
            for away in (-1, 0) if mention.month == _DECEMBER else (0,):
                fit = np.maximum(fit, _fit(stamps, own + np.timedelta64(away, "Y"), mention))
    return fit


def _fit(stamps: Moments, years: Moments, mention: DateMention) -> Floats:
    """The fit of each moment to the day or month of the year beside it."""
    start = (years + np.timedelta64((mention.month or 1) - 1, "M")).astype("datetime64[D]")
    start = start + np.timedelta64((mention.day or 1) - 1, "D")
    days = (stamps - start.astype("datetime64[us]")).astype(np.int64) / _DAY
    late = days - (1 if mention.day else _MONTH_DAYS)
    fit: Floats = np.where(days < 0, 0.0, np.clip(1 - late / SLACK_DAYS, 0, 1)).astype(np.float32)
    return fit
