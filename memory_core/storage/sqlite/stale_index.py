"""An index and the rows of its owner in the file have the same records; one that does not is stale.

Whatever made it so, that is no damage: `searching.found` drops a stale index, loads it again, and searches once more.
"""

from __future__ import annotations


class StaleIndexError(Exception):
    """An index names a record that the file lacks, or lacks one that the file has."""
