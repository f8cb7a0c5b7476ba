"""The calibration curves of the floor: what is kept and what stays silent at each slack, corpus by corpus.

    python tests/benchmarks/calibration.py [CORPUS ...]

`kept` is the share of the answerable questions that keep all the evidence they have without the floor, `silent` the
share of the unanswerable ones that find nothing; in per cent.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))  # a script finds only what is in its own folder

from memory_core.retrieval.floor import SLACK
from tests.corpora.calibration import curve
from tests.corpora.loading import CORPORA

SLACKS: Final = (2.0, 1.5, 1.25, 1.0, 0.8, 0.6, 0.4, 0.0, -0.5, -1.0)


async def main(corpora: Sequence[str]) -> None:
    print(f"{'':16} slack " + "".join(f"{f'{slack:g}' + '*' * (slack == SLACK):>7}" for slack in SLACKS))
    for corpus in corpora:
        points = await curve(corpus, SLACKS)
        for name in ("kept", "silent"):
            shares = "".join(f"{100 * getattr(point, name):7.1f}" for point in points.values())
            print(f"{corpus if name == 'kept' else '':16} {name:6}{shares}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or CORPORA))
