"""The fate of what an importer yields."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory_core import Draft, Memory
from memory_core.app.batches import PUT_AT_ONCE, Batches
from memory_core.app.command import Invocation
from memory_core.app.mapping import Ownership
from memory_core.app.settings import Settings
from memory_core.models import STATES
from memory_core.transfer.formats import Found, Refused
from memory_core.where.where import Where


def settings(path: Path) -> Settings:
    return Settings(str(path), "default", "ann", "none", named_user=True)


async def imported(path: Path, drafts: list[Draft], *, dry_run: bool) -> Batches:
    """Store these, as an importer finds them."""

    async def found() -> AsyncIterator[Found | Refused]:
        for number, draft in enumerate(drafts):
            yield Found(f"item {number}", draft)

    invocation = Invocation(settings(path))
    batches = Batches(invocation, Ownership(invocation.settings), dry_run=dry_run)
    try:
        await batches.take(found(), lambda _: None)
    finally:
        await invocation.close()
    return batches


@pytest.mark.parametrize("dry_run", [False, True])
async def test_what_has_expired_in_a_source_is_left_out_and_stops_nothing(tmp_path: Path, *, dry_run: bool) -> None:
    """Also in a batch of which everything or only the first one has expired."""
    past, later = datetime.now(UTC) - timedelta(seconds=1), datetime.now(UTC) + timedelta(days=9)
    drafts = [
        Draft("expired", expires_at=past, source_key="expired"),
        Draft("expires later", expires_at=later, source_key="later"),
        Draft("never expires", source_key="never"),
        *(Draft(f"expired too {number}", expires_at=past) for number in range(PUT_AT_ONCE)),
        Draft("the last one"),
    ]
    for round_ in range(2):
        report = (await imported(tmp_path / "m.db", drafts, dry_run=dry_run)).report
        assert report.refused == []
        assert report.read == len(drafts)
        known = 2 if round_ and not dry_run else 0
        assert (report.new, report.known, report.forgotten) == (3 - known, known, 0)
    assert (tmp_path / "m.db").exists() is not dry_run
    if not dry_run:
        async with Memory(tmp_path / "m.db", embedder=None) as memory:
            page = await memory.bind(user="ann").list(where=Where(states=STATES))
            texts = {record.text for record in page.records}
        assert texts == {"expires later", "never expires", "the last one"}
