"""A file with texts of memories has mode 0600 from its beginning, whatever the umask: no other user reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


def new_private_file(path: Path) -> IO[bytes]:
    """Create a file of mode 0600 and open it for writing.

    Raises:
        FileExistsError: There is one already, which stays as it is.
    """
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
