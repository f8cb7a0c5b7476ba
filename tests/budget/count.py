"""The kept figures of the budget: count them, compare them, write them.

    python -m tests.budget.count                   # every figure, and what is wrong
    python -m tests.budget.count --details search  # what an operation consists of, the most frequent first
    python -m tests.budget.count --write           # keep the counted figures
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from memory_core.adapting import core_loop
from tests.budget.counting import ROOT, Counter, Counts
from tests.budget.measuring import Counted
from tests.budget.operations import count_operations
from tests.budget.turns import count_turns


async def both(counter, folder):
    return await count_operations(counter, folder) | await count_turns(counter, folder)
if __name__=="__main__":
    t=time.time()
    counter = Counter()
    core_loop()
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        found = runner.run(both(counter, Path(folder)))
    for name, each in found.items():
        print(f"{name:60}", *each.counts)
    print(time.time()-t)
    if len(sys.argv)>1: print(found[sys.argv[1]].details)
