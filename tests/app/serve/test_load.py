"""The load test of `load.py`, for seconds: nothing is lost, and nobody gets an answer of a defect."""

from __future__ import annotations

import sys

import pytest

from tests.app.serve.load import PARTS, Load, report, run

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


def test_good_users_lose_nothing_among_slow_aborting_and_greedy_clients() -> None:
    load = Load(seconds=4, users=4, adds=40, searches=24, slow=10, aborting=2, greedy=4)
    seen = run(load)
    assert seen.acknowledged > 0
    assert sum(map(len, (seen.alone, seen.among, seen.again))) == sum(seen.statuses.values())
    assert seen.lost == 0
    assert set(seen.statuses) <= {200, 201}
    assert {status for status in seen.others if status >= 500} == set()
    assert not {name for name in seen.unanswered if not name.startswith("greedy")}
    assert seen.exit_code == 0  # it worked on nothing when it was asked to end
    assert len(seen.memory_mb) == PARTS
    assert "lost: 0; goal: 0: reached" in report(load, seen)
