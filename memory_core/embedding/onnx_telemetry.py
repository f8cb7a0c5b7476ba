"""The usage telemetry of onnxruntime: it is off before every import of onnxruntime that this package causes, unless the
application chose otherwise.

By default onnxruntime reports to its vendor: its import writes an id of the device and a queue of events below the home
directory, and looks up a collector. It reads `ORT_DISABLE_TELEMETRY` while it is imported. Its function
`disable_telemetry_events()` comes too late: when it can be called, the files are there.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import Final

VARIABLE: Final = "ORT_DISABLE_TELEMETRY"
REPORTING: Final = (
    "onnxruntime was imported before memory_core turned its telemetry off, so it reports to its vendor (an id of this "
    f"device and events, below the home directory and over the network); set {VARIABLE}=1 before the program starts"
)

logger = logging.getLogger(__name__)

_is_said = threading.Lock()
"""Locked for good by the thread that warns; models are loaded in several at once."""


def turn_off() -> None:
    """Call this before an import of onnxruntime, or of a package that imports it; warns once if that comes too late.

    A value that the application gave the variable stays: `0` asks for telemetry.
    """
    if is_on_unasked():
        if _is_said.acquire(blocking=False):
            logger.warning(REPORTING)
    elif not os.environ.get(VARIABLE):
        # The variable stays set. If it were removed again, a child process that imports onnxruntime before this package
        # would report, and native threads may be reading the environment meanwhile. That it is set when onnxruntime is
        # loaded also tells `is_on_unasked` who was first.
        os.environ[VARIABLE] = "1"


def is_on_unasked() -> bool:
    """True if onnxruntime was imported first, by something else, and nobody has said whether it may report."""
    return sys.modules.get("onnxruntime") is not None and not os.environ.get(VARIABLE)
