"""`python -m memory_core` is the command line."""

from __future__ import annotations

import sys

from memory_core.app.main import main

if __name__ == "__main__":
    sys.exit(main())
