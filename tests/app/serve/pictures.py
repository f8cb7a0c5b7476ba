"""Takes the pictures of the docs from the page itself: `make pictures`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.app.serve.conftest import filled, running
from tests.chromium import page

FOLDER = Path(__file__).parents[3] / "docs" / "pictures"
QUESTION = "where+is+the+spare+key"


def main() -> None:
    """Fill a memory, open it in Chromium, and store what it shows."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        ids = asyncio.run(filled(Path(folder) / "memory.db"))
        places = {
            "search": (f"?q={QUESTION}", 1200, False),
            "record": (f"/records/{ids['turn']}", 1200, False),
            "phone": (f"?q={QUESTION}", 390, True),
        }
        with running(Path(folder) / "memory.db", "--write") as server, page(Path(folder) / "profile") as tab:
            tab.open(server.link)
            for name, (place, width, dark) in places.items():
                tab.look(width=width, height=500, dark=dark)
                tab.open(f"{server.address}/o/default/ann{place}")
                if name == "search":
                    tab.click("main .score summary")  # the parts of the first score as numbers
                (FOLDER / f"{name}.png").write_bytes(tab.picture())


if __name__ == "__main__":
    main()
