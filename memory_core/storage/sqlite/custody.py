"""What whoever runs a store does with all of it: who is in it, whether it is whole, giving space back."""

from __future__ import annotations

import logging
import sqlite3
from typing import Final

from memory_core.models import Scope
from memory_core.retrieval.features import features
from memory_core.storage.sqlite.erasing import scrub, write_anew
from memory_core.storage.sqlite.fingerprints import held
from memory_core.storage.sqlite.rows import COLUMNS, to_record

logger = logging.getLogger(__name__)

_OWNERS: Final = (
    "SELECT app, user FROM owner WHERE EXISTS (SELECT 1 FROM record WHERE record.owner = owner.id) ORDER BY app, user"
)
_LOST: Final = {
    "records no search by words can find": "SELECT count(*) FROM record WHERE key NOT IN (SELECT key FROM lexical)",
    "analysed texts without a record": "SELECT count(*) FROM lexical WHERE key NOT IN (SELECT key FROM record)",
    "pieces of texts without a record": "SELECT count(*) FROM chunk WHERE record NOT IN (SELECT key FROM record)",
    "earlier texts without a record": "SELECT count(*) FROM revision WHERE record NOT IN (SELECT key FROM record)",
    "texts without pieces": "SELECT count(*) FROM record WHERE text <> '' AND key NOT IN (SELECT record FROM chunk)",
    "records without an owner": "SELECT count(*) FROM record WHERE owner NOT IN (SELECT id FROM owner)",
    "records in the range of another owner": "SELECT count(*) FROM record WHERE key >> 32 <> owner",
}
"""What must not be there, and how it is counted."""
MAX_FINDINGS: Final = 20


def owners(db: sqlite3.Connection) -> list[Scope]:
    """Everybody who has a record."""
    return [Scope(app, user) for app, user in db.execute(_OWNERS)]


def check(db: sqlite3.Connection) -> list[str]:
    """What is wrong with the pages of the file and with what was derived from the records, one sentence each."""
    pages = [str(row[0]) for row in db.execute(f"PRAGMA integrity_check({MAX_FINDINGS})")]
    found = [] if pages == ["ok"] else [f"a page of the file is damaged: {finding}" for finding in pages]
    if found:
        return found
    counts = {what: db.execute(query).fetchone()[0] for what, query in _LOST.items()}
    counts["vectors of another length than the embedder's"] = _misfits(db)
    counts["texts whose words are filed as those of another text"] = _misfiled(db)
    return [f"there are {count} {what}" for what, count in counts.items() if count]


def _misfits(db: sqlite3.Connection) -> int:
    fingerprint = held(db)
    if fingerprint is None:
        return 0
    stored = 2 * fingerprint.dimensions  # float16
    (count,) = db.execute("SELECT count(*) FROM chunk WHERE length(vector) <> ?", (stored,)).fetchone()
    return int(count)


def _misfiled(db: sqlite3.Connection) -> int:
    rows = db.execute(f"SELECT {COLUMNS}, terms, flags, words FROM record JOIN lexical USING (key)")
    found = ((features(to_record(row, "", "")), row[-3:]) for row in rows)
    return sum((wanted.packed, wanted.flags, wanted.words) != filed for wanted, filed in found)


def tidy(db: sqlite3.Connection) -> None:
    """What is better done while nobody waits: fold the write-ahead log in, and count what the query planner goes by."""
    db.execute("PRAGMA analysis_limit = 400")  # rows an index: enough for the planner, and no long wait
    db.execute("PRAGMA optimize")
    db.execute("PRAGMA wal_checkpoint(PASSIVE)")


def vacuum(db: sqlite3.Connection) -> None:
    """Write the file anew without its gaps and fold the write-ahead log in."""
    write_anew(db)
    db.execute("PRAGMA optimize")
    if not scrub(db):
        logger.info("the write-ahead log stays for now: another process reads an older state of the file")
